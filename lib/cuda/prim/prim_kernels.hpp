#ifndef COACCEL_CUDA_PRIM_PRIM_KERNELS_HPP
#define COACCEL_CUDA_PRIM_PRIM_KERNELS_HPP

#include "context/library_resources.hpp"
#include "cuda/jit/loaded_kernel.hpp"

#include <coaccel/ops/jit/compile.hpp>
#include <coaccel/ops/jit/kernel.hpp>

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace coaccel::cuda {

class backend;

/// How the kernel of this name is compiled.
jit::compile_options prim_compile_options(std::string name);

/// The compiled kernels of `prim` in a context. Used on the device's executor; kernels are compiled on the thread pool.
/// The least recently used ones are given up when there are more than `most_kernels`; the disk cache still has them.
class prim_kernels final : public detail::library_resources {
public:
    static constexpr coaccel::library lib = coaccel::library::prim;
    static constexpr std::size_t most_kernels = 256;

    /// Identifies a kernel: the op type and the function that it computes.
    struct key {
        std::uint64_t op = 0;
        std::uint64_t what = 0;

        friend bool operator==(const key&, const key&) = default;
        friend std::size_t hash_value(const key& k) noexcept
        {
            std::size_t seed = k.op;
            boost::hash_combine(seed, k.what);
            return seed;
        }
    };

    explicit prim_kernels(backend& b) noexcept : backend_(b) {}

    /// The kernel, held until module_cache::release; null: it is being compiled, and backend::notify_progress follows.
    /// `name(op)` returns its name expression.
    ///
    /// Errors: errc::library_missing, errc::library_too_old and others of NVRTC. The next call tries again.
    result<loaded_kernel*> acquire(const key& k, std::string (*name)(const void* op), const void* op);

    /// The kernels that are compiled or being compiled.
    std::size_t count() const noexcept override { return kernels_.size(); }

private:
    /// Written by the thread pool until it is done.
    struct compilation {
        std::atomic<bool> done{false};
        error_code error{};
        jit::kernel kernel{};
        /// Used on the executor only.
        std::uint64_t last_use = 0;
    };

    error_code start(const std::shared_ptr<compilation>& made, std::string name);
    void make_room();

    backend& backend_;
    boost::unordered_flat_map<key, std::shared_ptr<compilation>> kernels_;
    std::uint64_t uses_ = 0;
};

} // namespace coaccel::cuda

#endif
