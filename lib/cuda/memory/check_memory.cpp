#include "cuda/backend.hpp"

#include <coaccel/core/detail/adopt_op.hpp>
#include <coaccel/core/detail/op_error.hpp>

#include <array>
#include <cstdint>

namespace coaccel::cuda {
namespace {

using detail::adopt_op;
using detail::op_error;

/// What the driver knows about an address. For an unknown address it returns zeros and success.
struct address_facts {
    unsigned type = 0;
    unsigned managed = 0;
    int ordinal = -1;
    CUcontext context = nullptr;
    /// The allocation that contains the address.
    CUdeviceptr start = 0;
    std::size_t size = 0;
};

CUresult look_up(const driver_api& api, CUdeviceptr p, address_facts& out)
{
    std::array attributes{CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
                          CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_CONTEXT,
                          CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    std::array<void*, attributes.size()> values{&out.type,    &out.managed, &out.ordinal,
                                                &out.context, &out.start,   &out.size};
    return api.cuPointerGetAttributes(static_cast<unsigned>(attributes.size()), attributes.data(), values.data(), p);
}

} // namespace

error_code backend::check_memory(const adopt_op& op)
{
    if (dead())
        return sticky_error();
    const auto first = reinterpret_cast<CUdeviceptr>(op.pointer);
    const std::uint64_t bytes = op.bytes();
    const detail::address_text text(op.pointer);
    address_facts facts;
    if (auto ec = check(look_up(api_, first, facts)))
        return ec;
    // Managed memory is on every GPU.
    if (!facts.managed) {
        if (facts.type == 0)
            return op_error(errc::invalid_argument, adopt_op::name,
                            {"pointer is ", text.view(), ", which the driver does not know"});
        if (facts.type != CU_MEMORYTYPE_DEVICE)
            return op_error(errc::invalid_argument, adopt_op::name,
                            {"pointer is ", text.view(), ", which is host memory"});
        if (facts.ordinal != static_cast<int>(device()))
            return op_error(errc::wrong_device, adopt_op::name,
                            {"pointer is ", text.view(), ", memory of GPU ", facts.ordinal, "; the device uses GPU ",
                             static_cast<int>(device())});
        // Memory of a pool and mapped memory belong to no context.
        if (facts.context && facts.context != context_.native())
            return op_error(errc::wrong_device, adopt_op::name,
                            {"pointer is ", text.view(), ", memory of another context than the primary one of GPU ",
                             facts.ordinal});
    }
    if (const std::uint64_t left = facts.size - (first - facts.start); facts.size != 0 && bytes > left)
        return op_error(errc::out_of_bounds, adopt_op::name,
                        {"count is ", op.count, ", which is ", bytes, " bytes; the allocation of pointer ", text.view(),
                         " has ", left, " bytes from there on"});
    // The range of mapped memory is all reserved addresses, some of which may not be mapped.
    address_facts last;
    if (auto ec = check(look_up(api_, first + bytes - 1, last)))
        return ec;
    if (last.type != 0 || last.managed)
        return {};
    return op_error(errc::out_of_bounds, adopt_op::name,
                    {"count is ", op.count, ", which is ", bytes, " bytes; the last of them from pointer ", text.view(),
                     " on are not mapped"});
}

} // namespace coaccel::cuda
