#include "cuda/jit/nvrtc_error.hpp"

#include "cuda/loader/vendor_category.hpp"

namespace coaccel::cuda {
namespace {

constexpr vendor_error nvrtc_errors[] = {
    {1, "NVRTC_ERROR_OUT_OF_MEMORY", fault::busy},
    {2, "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", fault::library},
    {3, "NVRTC_ERROR_INVALID_INPUT", fault::caller},
    {4, "NVRTC_ERROR_INVALID_PROGRAM", fault::library},
    {5, "NVRTC_ERROR_INVALID_OPTION", fault::caller},
    {6, "NVRTC_ERROR_COMPILATION", fault::caller},
    {7, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE", fault::library},
    {8, "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION", fault::library},
    {9, "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION", fault::library},
    {10, "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", fault::caller},
    {11, "NVRTC_ERROR_INTERNAL_ERROR", fault::library},
    {12, "NVRTC_ERROR_TIME_FILE_WRITE_FAILED", fault::library},
    {13, "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED", fault::library},
    {14, "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED", fault::library},
    {15, "NVRTC_ERROR_PCH_CREATE", fault::library},
    {16, "NVRTC_ERROR_CANCELLED", fault::library},
    {17, "NVRTC_ERROR_TIME_TRACE_FILE_WRITE_FAILED", fault::library},
};

} // namespace

const boost::system::error_category& nvrtc_category() noexcept
{
    static const vendor_category instance("coaccel.nvrtc", "NVRTC", nvrtc_errors);
    return instance;
}

error_code make_error(nvrtcResult s) noexcept
{
    return s == NVRTC_SUCCESS ? error_code() : error_code(s, nvrtc_category());
}

} // namespace coaccel::cuda
