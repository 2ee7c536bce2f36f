#include "core/option_check.hpp"

#include <coaccel/cuda/cuda_options.hpp>

namespace coaccel {

error_code cuda_options::check() const noexcept
{
    constexpr std::uint64_t least_pinned = std::uint64_t(4) << 20;
    constexpr std::uint64_t most_workspace = std::uint64_t(1) << 32;
    return detail::check_options({
        {pinned_limit >= least_pinned, "cuda.pinned_limit", pinned_limit, "it must be at least 4 MiB"},
        {helper_threads >= 1 && helper_threads <= 64, "cuda.helper_threads", helper_threads, "it must be from 1 to 64"},
        {blas <= blas_mode::fast, "cuda.blas", blas, detail::an_enumerator},
        {blas_workspace <= most_workspace, "cuda.blas_workspace", blas_workspace, "it must be at most 4 GiB"},
        {timed_runs >= 0, "cuda.timed_runs", timed_runs, detail::not_negative},
    });
}

} // namespace coaccel
