#include "cuda/blas/address_kernel.hpp"

#include "cuda/backend.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::cuda {
namespace {

constexpr unsigned table_threads = 256;
constexpr std::uint64_t most_table_blocks = 1024;

static_assert(sizeof(address_sequences) == 32);
static_assert(sizeof(address_list) == 768);

// In PTX, so that neither the build nor the program needs a compiler: the driver has one. A thread computes every
// element whose index differs from its own by a multiple of the number of threads. blockIdx.y is the table.
constexpr const char* table_source = R"(
.version 6.4
.target sm_70
.address_size 64

.visible .entry coaccel_fill_addresses(.param .u64 p_to, .param .u64 p_count, .param .align 8 .b8 p_from[32])
{
    .reg .pred %past;
    .reg .b32 %table, %block, %blocks, %thread, %threads;
    .reg .b64 %to, %count, %from, %first, %step, %i, %all, %at, %address;

    ld.param.u64 %to, [p_to];
    ld.param.u64 %count, [p_count];
    mov.u32 %table, %ctaid.y;
    mul.wide.u32 %at, %table, 16;
    mov.u64 %from, p_from;
    add.u64 %from, %from, %at;
    ld.param.u64 %first, [%from];
    ld.param.u64 %step, [%from+8];

    cvt.u64.u32 %at, %table;
    mul.lo.u64 %at, %at, %count;
    shl.b64 %at, %at, 3;
    add.u64 %to, %to, %at;

    mov.u32 %block, %ctaid.x;
    mov.u32 %blocks, %nctaid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %threads, %ntid.x;
    mul.wide.u32 %i, %block, %threads;
    cvt.u64.u32 %at, %thread;
    add.u64 %i, %i, %at;
    mul.wide.u32 %all, %blocks, %threads;

next:
    setp.ge.u64 %past, %i, %count;
    @%past ret;
    mad.lo.u64 %address, %i, %step, %first;
    shl.b64 %at, %i, 3;
    add.u64 %at, %to, %at;
    st.global.u64 [%at], %address;
    add.u64 %i, %i, %all;
    bra next;
}

.visible .entry coaccel_store_addresses(.param .u64 p_to, .param .u32 p_count, .param .align 8 .b8 p_from[768])
{
    .reg .pred %past;
    .reg .b32 %count, %thread;
    .reg .b64 %to, %from, %at, %address;

    ld.param.u64 %to, [p_to];
    ld.param.u32 %count, [p_count];
    mov.u32 %thread, %tid.x;
    setp.ge.u32 %past, %thread, %count;
    @%past ret;
    mul.wide.u32 %at, %thread, 8;
    mov.u64 %from, p_from;
    add.u64 %from, %from, %at;
    ld.param.u64 %address, [%from];
    add.u64 %at, %to, %at;
    st.global.u64 [%at], %address;
    ret;
}

.visible .entry coaccel_limit_pivots(.param .u64 p_to, .param .u64 p_from, .param .u64 p_count, .param .u32 p_most)
{
    .reg .pred %past;
    .reg .b32 %block, %blocks, %thread, %threads, %most, %pivot;
    .reg .b64 %to, %from, %count, %i, %all, %at, %address;

    ld.param.u64 %to, [p_to];
    ld.param.u64 %from, [p_from];
    ld.param.u64 %count, [p_count];
    ld.param.u32 %most, [p_most];

    mov.u32 %block, %ctaid.x;
    mov.u32 %blocks, %nctaid.x;
    mov.u32 %thread, %tid.x;
    mov.u32 %threads, %ntid.x;
    mul.wide.u32 %i, %block, %threads;
    cvt.u64.u32 %at, %thread;
    add.u64 %i, %i, %at;
    mul.wide.u32 %all, %blocks, %threads;

next:
    setp.ge.u64 %past, %i, %count;
    @%past ret;
    shl.b64 %at, %i, 2;
    add.u64 %address, %from, %at;
    ld.global.u32 %pivot, [%address];
    max.s32 %pivot, %pivot, 1;
    min.s32 %pivot, %pivot, %most;
    add.u64 %address, %to, %at;
    st.global.u32 [%address], %pivot;
    add.u64 %i, %i, %all;
    bra next;
}
)";

unsigned table_blocks(std::uint64_t count) noexcept
{
    return static_cast<unsigned>(std::min((count - 1) / table_threads + 1, most_table_blocks));
}

} // namespace

const char* address_kernel_source() noexcept
{
    return table_source;
}

result<table_functions> address_kernel::load(backend& b)
{
    if (loaded_.load(std::memory_order_acquire))
        return functions_;
    const std::scoped_lock lock(mutex_);
    if (loaded_.load(std::memory_order_relaxed))
        return functions_;
    backend_ = &b;
    if (!module_) {
        CUmodule made = nullptr;
        if (auto ec = b.check(b.api().cuModuleLoadData(&made, table_source)))
            return ec;
        module_ = made;
    }
    table_functions found;
    if (auto ec = b.check(b.api().cuModuleGetFunction(&found.store_addresses, module_, "coaccel_store_addresses")))
        return ec;
    if (auto ec = b.check(b.api().cuModuleGetFunction(&found.fill_addresses, module_, "coaccel_fill_addresses")))
        return ec;
    if (auto ec = b.check(b.api().cuModuleGetFunction(&found.limit_pivots, module_, "coaccel_limit_pivots")))
        return ec;
    functions_ = found;
    loaded_.store(true, std::memory_order_release);
    return found;
}

void address_kernel::destroy() noexcept
{
    loaded_.store(false, std::memory_order_relaxed);
    if (module_)
        (void)backend_->check(backend_->api().cuModuleUnload(std::exchange(module_, nullptr)));
}

error_code launch_addresses(backend& b, CUfunction kernel, CUdeviceptr to, std::uint64_t count,
                            const address_sequences& from, unsigned tables, CUstream s) noexcept
{
    address_sequences all = from;
    void* arguments[] = {&to, &count, all.data()};
    return b.check(
        b.api().cuLaunchKernel(kernel, table_blocks(count), tables, 1, table_threads, 1, 1, 0, s, arguments, nullptr));
}

error_code launch_store_addresses(backend& b, CUfunction kernel, CUdeviceptr to, std::uint32_t count,
                                  const address_list& from, CUstream s) noexcept
{
    address_list all = from;
    void* arguments[] = {&to, &count, all.data()};
    return b.check(b.api().cuLaunchKernel(kernel, 1, 1, 1, table_threads, 1, 1, 0, s, arguments, nullptr));
}

error_code launch_limit_pivots(backend& b, CUfunction kernel, CUdeviceptr to, CUdeviceptr from, std::uint64_t count,
                               std::int32_t most, CUstream s) noexcept
{
    void* arguments[] = {&to, &from, &count, &most};
    return b.check(
        b.api().cuLaunchKernel(kernel, table_blocks(count), 1, 1, table_threads, 1, 1, 0, s, arguments, nullptr));
}

} // namespace coaccel::cuda
