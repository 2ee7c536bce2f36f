#ifndef COACCEL_WORKER_CHILD_RECEIVED_KERNELS_HPP
#define COACCEL_WORKER_CHILD_RECEIVED_KERNELS_HPP

#include "worker/protocol/wire.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <memory>

namespace coaccel::worker {

/// The compiled kernels received from the parent, by the parent's ids.
class COACCEL_DECL received_kernels final : public kernel_source {
public:
    explicit received_kernels(const image_limits& limits = {}) noexcept : limits_(limits) {}

    /// Returns false if the part does not match the parts before it, or exceeds the limits.
    [[nodiscard]] bool add(const image_frame& frame);

    /// Returns false for an unknown kernel. Ops that use the kernel keep it alive.
    [[nodiscard]] bool remove(std::uint64_t id) noexcept;

    std::shared_ptr<const jit::image> find(std::uint64_t id) const noexcept override;

private:
    struct entry {
        std::uint64_t total = 0;
        /// All bytes that count towards the limit.
        std::uint64_t bytes = 0;
        std::shared_ptr<jit::image> growing;
        std::shared_ptr<const jit::image> made;
    };

    /// Returns null if there is no room for it.
    entry* begin(const image_frame& frame);

    const image_limits limits_;
    boost::unordered_flat_map<std::uint64_t, entry> entries_;
    // Includes the parts that have not arrived yet.
    std::uint64_t bytes_ = 0;
};

} // namespace coaccel::worker

#endif
