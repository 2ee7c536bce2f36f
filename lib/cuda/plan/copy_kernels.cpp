#include "cuda/plan/copy_kernels.hpp"

#include "cuda/backend.hpp"

#include <cstddef>
#include <new>
#include <utility>

namespace coaccel::cuda {
namespace {

constexpr unsigned threads = 256;
constexpr unsigned most_threads = 1024;
constexpr unsigned bytes_per_thread = 16;

static_assert(sizeof(copy_part) == 24 && offsetof(copy_part, from) == 8 && offsetof(copy_part, bytes) == 16);
static_assert(sizeof(copy_parts::all) == 360);

/// So that the reads of a word do not slow the writes to its neighbours.
constexpr std::size_t bytes_per_word = 64;
constexpr std::size_t bytes_per_page = 4096;

// In PTX, so that neither the build nor the program needs a compiler: the driver has one. A thread copies 16 bytes at a
// time, or the last ones one by one. coaccel_copy_arguments: blockIdx.y is the part. coaccel_copy_and_tell has one
// block; the barrier and the fence order its writes before that of the word.
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

.visible .entry coaccel_copy_and_tell(.param .u64 p_to, .param .u64 p_from, .param .u64 p_bytes, .param .u64 p_word)
{
    .reg .pred %partly, %past, %other;
    .reg .b16 %byte;
    .reg .b32 %thread, %threads, %one, %w<4>;
    .reg .b64 %to, %from, %bytes, %word, %at, %end, %step, %here;

    ld.param.u64 %to, [p_to];
    ld.param.u64 %from, [p_from];
    ld.param.u64 %bytes, [p_bytes];
    ld.param.u64 %word, [p_word];
    mov.u32 %thread, %tid.x;
    mov.u32 %threads, %ntid.x;
    mul.wide.u32 %at, %thread, 16;
    mul.wide.u32 %step, %threads, 16;

sixteen:
    add.u64 %end, %at, 16;
    setp.gt.u64 %partly, %end, %bytes;
    @%partly bra one;
    add.u64 %here, %from, %at;
    ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%here];
    add.u64 %here, %to, %at;
    st.global.v4.u32 [%here], {%w0, %w1, %w2, %w3};
    add.u64 %at, %at, %step;
    bra sixteen;

one:
    setp.ge.u64 %past, %at, %bytes;
    @%past bra copied;
    add.u64 %here, %from, %at;
    ld.global.u8 %byte, [%here];
    add.u64 %here, %to, %at;
    st.global.u8 [%here], %byte;
    add.u64 %at, %at, 1;
    bra one;

copied:
    bar.sync 0;
    setp.ne.u32 %other, %thread, 0;
    @%other ret;
    membar.sys;
    mov.u32 %one, 1;
    st.volatile.global.u32 [%word], %one;
    ret;
}
)";

unsigned blocks(const copy_parts& parts) noexcept
{
    constexpr std::uint64_t per_block = std::uint64_t(threads) * bytes_per_thread;
    return static_cast<unsigned>((parts.most_bytes() + per_block - 1) / per_block);
}

} // namespace

result<copy_kernels::functions> copy_kernels::load(backend& b)
{
    const std::scoped_lock lock(mutex_);
    if (std::exchange(tried_, true))
        return functions_;
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
            ec = b.check(api.cuModuleGetFunction(&functions_.copy, module_, "coaccel_copy_arguments"));
        // Otherwise the host may use managed memory only after the driver has told of the end.
        int concurrent = 0;
        if (!ec)
            ec = b.check(
                api.cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, b.device()));
        if (!ec && concurrent)
            ec = b.check(api.cuModuleGetFunction(&functions_.copy_and_tell, module_, "coaccel_copy_and_tell"));
        if (ec)
            functions_ = {};
    }
    if (b.dead())
        return ec ? ec : make_error_code(errc::context_lost);
    return functions_;
}

completion_word* copy_kernels::take_word(backend& b) noexcept
try {
    const std::scoped_lock lock(mutex_);
    if (words_.empty()) {
        pages_.reserve(pages_.size() + 1);
        words_.reserve((pages_.size() + 1) * (bytes_per_page / bytes_per_word));
        const auto made = b.staging().allocate_to_keep(bytes_per_page);
        if (!made)
            return nullptr;
        pages_.push_back(made.value());
        for (std::size_t at = 0; at < bytes_per_page; at += bytes_per_word)
            words_.push_back(new (static_cast<std::byte*>(made.value()) + at) completion_word(0));
    }
    completion_word* const taken = words_.back();
    words_.pop_back();
    return taken;
} catch (const std::bad_alloc&) {
    return nullptr;
}

void copy_kernels::give_back(completion_word* word) noexcept
{
    const std::scoped_lock lock(mutex_);
    // There is room, unless `unload` was first.
    if (word && !pages_.empty())
        words_.push_back(word);
}

void copy_kernels::unload(backend& b) noexcept
{
    const std::scoped_lock lock(mutex_);
    functions_ = {};
    if (module_)
        (void)b.check(b.api().cuModuleUnload(std::exchange(module_, nullptr)));
    words_.clear();
    for (void* page : std::exchange(pages_, {}))
        b.staging().release_kept(page);
}

error_code launch_copies(backend& b, CUfunction kernel, const copy_parts& parts, CUstream s) noexcept
{
    auto all = parts.all;
    void* arguments[] = {all.data()};
    return b.check(
        b.api().cuLaunchKernel(kernel, blocks(parts), parts.count, 1, threads, 1, 1, 0, s, arguments, nullptr));
}

error_code launch_copy_and_tell(backend& b, CUfunction kernel, const copy_part& part, completion_word* word,
                                CUstream s) noexcept
{
    copy_part p = part;
    auto where = reinterpret_cast<CUdeviceptr>(word);
    void* arguments[] = {&p.to, &p.from, &p.bytes, &where};
    const unsigned block = p.bytes <= threads * bytes_per_thread ? threads : most_threads;
    return b.check(b.api().cuLaunchKernel(kernel, 1, 1, 1, block, 1, 1, 0, s, arguments, nullptr));
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
