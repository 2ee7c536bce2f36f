#include <coaccel/cuda/cuda_options.hpp>

namespace coaccel {

error_code cuda_options::check() const noexcept
{
    constexpr std::uint64_t least_pinned = std::uint64_t(4) << 20;
    constexpr std::uint64_t most_workspace = std::uint64_t(1) << 32;
    const bool fits = pinned_limit >= least_pinned && helper_threads >= 1 && helper_threads <= 64 &&
                      blas <= blas_mode::fast && blas_workspace <= most_workspace;
    return fits ? error_code{} : make_error_code(errc::invalid_option);
}

} // namespace coaccel
