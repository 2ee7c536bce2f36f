#include "cuda/rand/curand_error.hpp"

#include "cuda/loader/vendor_category.hpp"

namespace coaccel::cuda {
namespace {

constexpr vendor_error curand_errors[] = {
    {100, "CURAND_STATUS_VERSION_MISMATCH", fault::library},
    {101, "CURAND_STATUS_NOT_INITIALIZED", fault::library},
    {102, "CURAND_STATUS_ALLOCATION_FAILED", fault::busy},
    {103, "CURAND_STATUS_TYPE_ERROR", fault::library},
    {104, "CURAND_STATUS_OUT_OF_RANGE", fault::library},
    {105, "CURAND_STATUS_LENGTH_NOT_MULTIPLE", fault::library},
    {106, "CURAND_STATUS_DOUBLE_PRECISION_REQUIRED", fault::library},
    {201, "CURAND_STATUS_LAUNCH_FAILURE", fault::library},
    {202, "CURAND_STATUS_PREEXISTING_FAILURE", fault::library},
    {203, "CURAND_STATUS_INITIALIZATION_FAILED", fault::library},
    {204, "CURAND_STATUS_ARCH_MISMATCH", fault::library},
    {999, "CURAND_STATUS_INTERNAL_ERROR", fault::library},
};

} // namespace

const boost::system::error_category& curand_category() noexcept
{
    static const vendor_category instance("coaccel.curand", "cuRAND", curand_errors);
    return instance;
}

error_code make_error(curandStatus_t s) noexcept
{
    if (s == CURAND_STATUS_SUCCESS)
        return {};
    return s == CURAND_STATUS_ALLOCATION_FAILED ? make_error_code(errc::out_of_memory)
                                                : error_code(s, curand_category());
}

} // namespace coaccel::cuda
