#include "cuda/blas/cublas_error.hpp"

#include "cuda/backend.hpp"
#include "cuda/driver/error.hpp"
#include "cuda/loader/vendor_category.hpp"

namespace coaccel::cuda {
namespace {

constexpr vendor_error cublas_errors[] = {
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", fault::library}, {3, "CUBLAS_STATUS_ALLOC_FAILED", fault::busy},
    {7, "CUBLAS_STATUS_INVALID_VALUE", fault::library},   {8, "CUBLAS_STATUS_ARCH_MISMATCH", fault::library},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", fault::library},  {13, "CUBLAS_STATUS_EXECUTION_FAILED", fault::library},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", fault::library}, {15, "CUBLAS_STATUS_NOT_SUPPORTED", fault::library},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", fault::library},
};

} // namespace

const boost::system::error_category& cublas_category() noexcept
{
    static const vendor_category instance("coaccel.cublas", "cuBLAS", cublas_errors);
    return instance;
}

error_code make_error(cublasStatus_t s) noexcept
{
    if (s == CUBLAS_STATUS_SUCCESS)
        return {};
    return s == CUBLAS_STATUS_ALLOC_FAILED ? make_error_code(errc::out_of_memory) : error_code(s, cublas_category());
}

error_code find_fault(backend& b, CUstream s) noexcept
{
    if (b.dead())
        return {};
    auto capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult r = b.api().cuStreamIsCapturing(s, &capture);
    // A query would invalidate a capture, and the error of the capture would hide that of the library.
    if (!is_sticky(r) && capture == CU_STREAM_CAPTURE_STATUS_NONE)
        r = b.api().cuStreamQuery(s);
    return is_sticky(r) ? b.check(r) : error_code();
}

} // namespace coaccel::cuda
