#include "cuda/plan/copy_kernel.hpp"

#include "cuda/backend.hpp"

#include <cstddef>
#include <utility>

namespace coaccel::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr unsigned bytes_per_thread = 16;

static_assert(sizeof(copy_part) == 24 && offsetof(copy_part, from) == 8 && offsetof(copy_part, bytes) == 16);
static_assert(sizeof(copy_parts::all) == 360);

// In PTX, so that neither the build nor the program needs a compiler: the driver has one. blockIdx.y is the part. Each
// thread copies 16 bytes, or the last ones one by one.
constexpr const char* source = R"(
.version 6.4
.target sm_70
.address_size 64

.visible .entry coaccel_copy_arguments(.param .align 8 .b8 parts[360])
{
    .reg .pred %whole, %past;
    .reg .b16 %byte;
    .reg .b32 %part, %block, %thread, %w<4>;
    .reg .b64 %table, %to, %from, %bytes, %at, %end;

    mov.u32 %part, %ctaid.y;
    mul.wide.u32 %at, %part, 24;
    mov.u64 %table, parts;
    add.u64 %table, %table, %at;
    ld.param.u64 %to, [%table];
    ld.param.u64 %from, [%table+8];
    ld.param.u64 %bytes, [%table+16];

    mov.u32 %block, %ctaid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %thread, %block, 256, %thread;
    mul.wide.u32 %at, %thread, 16;
    add.u64 %to, %to, %at;
    add.u64 %from, %from, %at;
    add.u64 %end, %at, 16;
    setp.le.u64 %whole, %end, %bytes;
    @%whole bra sixteen;

one:
    setp.ge.u64 %past, %at, %bytes;
    @%past ret;
    ld.global.u8 %byte, [%from];
    st.global.u8 [%to], %byte;
    add.u64 %to, %to, 1;
    add.u64 %from, %from, 1;
    add.u64 %at, %at, 1;
    bra one;

sixteen:
    ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%from];
    st.global.v4.u32 [%to], {%w0, %w1, %w2, %w3};
    ret;
}
)";

unsigned blocks(const copy_parts& parts) noexcept
{
    constexpr std::uint64_t per_block = std::uint64_t(threads) * bytes_per_thread;
    return static_cast<unsigned>((parts.most_bytes() + per_block - 1) / per_block);
}

} // namespace

result<CUfunction> copy_kernel::load(backend& b)
{
    const std::scoped_lock lock(mutex_);
    if (std::exchange(tried_, true))
        return function_;
    const driver_api& api = b.api();
    int host_addresses = 0;
    // The kernel gets the addresses that the host uses.
    error_code ec = b.check(api.cuDeviceGetAttribute(
        &host_addresses, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, b.device()));
    if (!ec && host_addresses) {
        ec = b.check(api.cuModuleLoadData(&module_, source));
        if (ec)
            module_ = nullptr;
        else
            ec = b.check(api.cuModuleGetFunction(&function_, module_, "coaccel_copy_arguments"));
        if (ec)
            function_ = nullptr;
    }
    if (b.dead())
        return ec ? ec : make_error_code(errc::context_lost);
    return function_;
}

void copy_kernel::unload(backend& b) noexcept
{
    const std::scoped_lock lock(mutex_);
    function_ = nullptr;
    if (module_)
        (void)b.check(b.api().cuModuleUnload(std::exchange(module_, nullptr)));
}

error_code launch_copies(backend& b, CUfunction kernel, const copy_parts& parts, CUstream s) noexcept
{
    auto all = parts.all;
    void* arguments[] = {all.data()};
    return b.check(
        b.api().cuLaunchKernel(kernel, blocks(parts), parts.count, 1, threads, 1, 1, 0, s, arguments, nullptr));
}

error_code change_copies(backend& b, CUfunction kernel, const copy_parts& parts, CUgraphExec graph,
                         CUgraphNode node) noexcept
{
    auto all = parts.all;
    void* arguments[] = {all.data()};
    CUDA_KERNEL_NODE_PARAMS values{};
    values.func = kernel;
    values.gridDimX = blocks(parts);
    values.gridDimY = parts.count;
    values.gridDimZ = 1;
    values.blockDimX = threads;
    values.blockDimY = 1;
    values.blockDimZ = 1;
    values.kernelParams = arguments;
    return b.check(b.api().cuGraphExecKernelNodeSetParams(graph, node, &values));
}

} // namespace coaccel::cuda
