#ifndef COACCEL_CUDA_BLAS_TUNED_ALGORITHMS_HPP
#define COACCEL_CUDA_BLAS_TUNED_ALGORITHMS_HPP

#include "cuda/blas/lt_plan.hpp"
#include "cuda/jit/disk_cache.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace coaccel::cuda {

/// The algorithms of cuBLASLt that were measured to be the fastest for their problems, of one context. They are also
/// kept in files, from which later processes get them.
///
/// Thread safety: any thread. `find`, `add` and `forget` may read and write files.
class tuned_algorithms {
public:
    static constexpr std::size_t most_known = 1024;

    explicit tuned_algorithms(disk_cache files) : files_(std::move(files)) {}

    /// `key`: see key_of.
    std::optional<cublasLtMatmulAlgo_t> find(const std::string& key);
    void add(const std::string& key, const cublasLtMatmulAlgo_t& algorithm);

    /// Removes an algorithm that cuBLASLt refuses. One that was added for the key meanwhile stays.
    void forget(const std::string& key, const cublasLtMatmulAlgo_t& refused) noexcept;

    /// Grows whenever an algorithm is added.
    unsigned additions() const noexcept { return additions_.load(std::memory_order_acquire); }

    /// Whether an algorithm for the key was added when there had been `additions` already. May also be true if entries
    /// had to be removed from memory since then.
    bool added_after(const std::string& key, unsigned additions) const;

private:
    struct entry {
        /// None: there is no file.
        std::optional<cublasLtMatmulAlgo_t> algorithm;
        /// The number of additions with this one; zero for what was read.
        unsigned added = 0;
    };

    std::optional<cublasLtMatmulAlgo_t> read(const std::string& key) const;
    /// Preconditions: the mutex is locked.
    void make_room();

    disk_cache files_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string, entry> known_;
    /// The number of additions when entries were last removed from memory.
    unsigned added_before_removal_ = 0;
    std::atomic<unsigned> additions_{0};
};

/// Everything on which the fastest algorithm depends. `gpu` names the GPU, `version` is that of cuBLASLt.
std::string key_of(const lt_problem& p, const std::string& gpu, int version, std::size_t workspace_bytes);

} // namespace coaccel::cuda

#endif
