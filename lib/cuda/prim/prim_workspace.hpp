#ifndef COACCEL_CUDA_PRIM_PRIM_WORKSPACE_HPP
#define COACCEL_CUDA_PRIM_PRIM_WORKSPACE_HPP

#include "context/library_resources.hpp"
#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/backend.hpp>

#include <cstddef>
#include <vector>

namespace coaccel::cuda {

class backend;

/// Device memory in which the ops of one lane keep intermediate results. The ops use it one after another, in stream
/// order. Memory whose address is part of a graph stays until the end; other memory is returned after an op that needs
/// much of it.
class prim_workspace final : public detail::library_resources {
public:
    static constexpr coaccel::library lib = coaccel::library::prim;
    /// A lane keeps this much.
    static constexpr std::size_t most_kept = std::size_t(1) << 20;

    prim_workspace(backend& b, CUstream s) noexcept : backend_(b), stream_(s) {}

    /// Provides memory for the next op. Errors: errc::out_of_memory.
    result<readiness> prepare(std::size_t bytes);

    /// The memory. Its content is that of earlier ops.
    void* memory() const noexcept { return current_.memory; }

    /// Call this when the op is on the stream, or its launch has failed.
    error_code launched() noexcept;

    void destroy() noexcept override;
    std::size_t count() const noexcept override { return 0; }

private:
    struct block {
        void* memory = nullptr;
        std::size_t bytes = 0;
        /// A graph contains its address.
        bool captured = false;
    };

    error_code release(block& b) noexcept;

    backend& backend_;
    const CUstream stream_;
    block current_;
    /// Captured, and too small for a later op.
    std::vector<block> older_;
};

} // namespace coaccel::cuda

#endif
