#ifndef COACCEL_CUDA_PLAN_PLAN_INSTANCES_HPP
#define COACCEL_CUDA_PLAN_PLAN_INSTANCES_HPP

#include "context/library_resources.hpp"
#include "cuda/plan/plan_recording.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace coaccel::cuda {

/// An instance, and how far it is loaded.
struct plan_entry {
    plan_entry(backend& b, copy_kernels& copies, const detail::plan_load_head& head, void* const* operands)
        : instance(b, copies, head, operands)
    {}

    plan_instance instance;
    /// Until the instance is loaded, and for ever if that fails.
    std::optional<plan_recording> recording;
    bool uses_recorder = false;
};

/// The instances of a context, and the streams on which graphs are recorded.
///
/// Such a stream belongs to a chain: the graphs of a chain never run at the same time, so they can share the workspaces
/// of its libraries, which no other work uses.
class plan_instances final : public detail::library_resources {
public:
    static constexpr coaccel::library lib = coaccel::library::plan;

    explicit plan_instances(backend& b);

    /// Null if it is not loaded.
    plan_instance* find(std::uint64_t id) noexcept;

    /// Starts loading an instance. Errors: the plan cannot run here.
    result<plan_entry*> add(const detail::plan_load_head& head, void* const* operands);

    /// Removes an instance that is disposed of.
    void remove(std::uint64_t id) noexcept;

    void destroy() noexcept override;
    std::size_t count() const noexcept override;

private:
    struct recorder {
        stream_state* stream = nullptr;
        /// Zero: no instance uses it, and any chain may.
        std::uint64_t chain = 0;
        std::size_t instances = 0;
    };

    result<recorder*> recorder_of(std::uint64_t chain);

    backend& backend_;
    copy_kernels copies_;
    std::map<std::uint64_t, std::unique_ptr<plan_entry>> all_;
    /// Their streams belong to the backend.
    std::vector<recorder> recorders_;
};

} // namespace coaccel::cuda

#endif
