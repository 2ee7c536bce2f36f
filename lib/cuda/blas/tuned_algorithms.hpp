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
/// Thread safety: any thread. `find` and `add` may read and write files.
class tuned_algorithms {
public:
    static constexpr std::size_t most_known = 1024;

    explicit tuned_algorithms(disk_cache files) : files_(std::move(files)) {}

    /// `key`: see key_of.
    std::optional<cublasLtMatmulAlgo_t> find(const std::string& key);
    void add(const std::string& key, const cublasLtMatmulAlgo_t& algorithm);

    /// Grows whenever an algorithm is added.
    unsigned additions() const noexcept { return additions_.load(std::memory_order_acquire); }

private:
    disk_cache files_;
    std::mutex mutex_;
    /// Also what is not in a file.
    std::unordered_map<std::string, std::optional<cublasLtMatmulAlgo_t>> known_;
    std::atomic<unsigned> additions_{0};
};

/// Everything on which the fastest algorithm depends. `gpu` names the GPU, `version` is that of cuBLASLt.
std::string key_of(const lt_problem& p, const std::string& gpu, int version, std::size_t workspace_bytes);

} // namespace coaccel::cuda

#endif
