#include "cuda/backend.hpp"
#include "cuda/op_libraries.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/memory.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace coaccel::cuda {
namespace {

// A fill writes this many elements word by word, then copies them.
constexpr std::size_t pattern_elements = 1024;

CUdeviceptr address(const void* p) noexcept
{
    return reinterpret_cast<CUdeviceptr>(p);
}

result<readiness> launched(const result<progress>& p)
{
    if (!p)
        return p.error();
    return p.value() == progress::passed ? readiness::launched : readiness::pending;
}

template <std::size_t Words>
CUresult fill_words(const driver_api& api, CUdeviceptr dst, const std::array<unsigned, Words>& words, std::size_t count,
                    CUstream s)
{
    if (std::ranges::all_of(words, [&](unsigned w) { return w == words[0]; }))
        return api.cuMemsetD32Async(dst, words[0], count * Words, s);
    constexpr std::size_t size = Words * sizeof(unsigned);
    std::size_t done = std::min(count, pattern_elements);
    for (std::size_t i = 0; i < Words; ++i)
        if (auto r = api.cuMemsetD2D32Async(dst + i * sizeof(unsigned), size, words[i], 1, done, s); r != CUDA_SUCCESS)
            return r;
    for (std::size_t more = 0; done < count; done += more) {
        more = std::min(done, count - done);
        if (auto r = api.cuMemcpyDtoDAsync(dst + done * size, dst, more * size, s); r != CUDA_SUCCESS)
            return r;
    }
    return CUDA_SUCCESS;
}

template <class Bits, element T>
Bits bits_of(const T& value) noexcept
{
    Bits bits;
    static_assert(sizeof bits == sizeof value);
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <element T>
error_code fill(backend& b, stream_state& s, bound_op& o)
{
    const auto& op = o.as<memory::fill<T>>();
    const CUdeviceptr dst = address(o.data(op.dst));
    const std::size_t count = op.dst.size();
    const driver_api& api = b.api();
    if constexpr (sizeof(T) == 1)
        return b.check(api.cuMemsetD8Async(dst, bits_of<unsigned char>(op.value), count, s.native));
    else if constexpr (sizeof(T) == 2)
        return b.check(api.cuMemsetD16Async(dst, bits_of<unsigned short>(op.value), count, s.native));
    else
        return b.check(fill_words(api, dst, bits_of<std::array<unsigned, sizeof(T) / sizeof(unsigned)>>(op.value),
                                  count, s.native));
}

/// As many as fill_words needs.
template <element T>
std::size_t fill_commands([[maybe_unused]] const bound_op& o) noexcept
{
    if constexpr (sizeof(T) > sizeof(unsigned)) {
        const auto& op = o.as<memory::fill<T>>();
        const auto words = bits_of<std::array<unsigned, sizeof(T) / sizeof(unsigned)>>(op.value);
        if (!std::ranges::all_of(words, [&](unsigned w) { return w == words[0]; }))
            return words.size() + static_cast<std::size_t>(std::bit_width(op.dst.size() / pattern_elements));
    }
    return 1;
}

template <element T>
error_code copy(backend& b, stream_state& s, bound_op& o)
{
    const auto& op = o.as<memory::copy<T>>();
    return b.check(b.api().cuMemcpyDtoDAsync(address(o.data(op.dst)), address(o.data(op.src)),
                                             op.src.size() * sizeof(T), s.native));
}

template <element T>
result<readiness> write(backend& b, stream_state& s, bound_op& o)
{
    const auto& op = o.as<detail::write_op<T>>();
    return launched(b.copies().enqueue(s.native, o,
                                       {.way = host_copy::direction::to_device,
                                        .device = address(o.data(op.dst)),
                                        .host = const_cast<T*>(op.src),
                                        .bytes = op.count * sizeof(T)}));
}

template <element T>
result<readiness> read(backend& b, stream_state& s, bound_op& o)
{
    const auto& op = o.as<detail::read_op<T>>();
    return launched(b.copies().enqueue(s.native, o,
                                       {.way = host_copy::direction::to_host,
                                        .device = address(o.data(op.src)),
                                        .host = op.dst,
                                        .bytes = op.count * sizeof(T)}));
}

template <element T>
result<readiness> collect(backend& b, stream_state& s, bound_op& o)
{
    const auto& op = o.as<detail::collect_op<T>>();
    return launched(b.copies().enqueue(s.native, o,
                                       {.way = host_copy::direction::to_host,
                                        .device = address(o.data(op.src)),
                                        .bytes = op.src.size() * sizeof(T),
                                        .sink = op.sink}));
}

error_code end_copy(backend& b, bound_op& o) noexcept
{
    b.copies().finish(o);
    return o.status;
}

CUmemLocation where(memory::place p, CUdevice device) noexcept
{
    CUmemLocation l{};
    l.type = p == memory::place::device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST;
    l.id = p == memory::place::device ? device : 0;
    return l;
}

// prefetch, advise and trim may block: the driver walks page tables.
template <element T>
result<readiness> prefetch(backend& b, stream_state& s, bound_op& o)
{
    const auto& op = o.as<memory::prefetch<T>>();
    return launched(b.blocking().run(
        o, [&b, stream = s.native, target = address(o.data(op.target)), bytes = op.target.size() * sizeof(T),
            to = where(op.to, b.device())] { return b.check(b.api().prefetch(target, bytes, to, 0, stream)); }));
}

struct driver_advice {
    CUmem_advise what;
    memory::place about;
};

driver_advice translate(memory::advice a) noexcept
{
    using memory::advice;
    using memory::place;
    switch (a) {
    case advice::read_mostly: return {CU_MEM_ADVISE_SET_READ_MOSTLY, place::device};
    case advice::unset_read_mostly: return {CU_MEM_ADVISE_UNSET_READ_MOSTLY, place::device};
    case advice::prefer_device: return {CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place::device};
    case advice::prefer_host: return {CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place::host};
    case advice::unset_preferred: return {CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, place::device};
    case advice::accessed_by_device: return {CU_MEM_ADVISE_SET_ACCESSED_BY, place::device};
    case advice::accessed_by_host: return {CU_MEM_ADVISE_SET_ACCESSED_BY, place::host};
    }
    return {};
}

template <element T>
result<readiness> advise(backend& b, stream_state&, bound_op& o)
{
    const auto& op = o.as<memory::advise<T>>();
    const driver_advice advice = translate(op.what);
    return launched(
        b.blocking().run(o, [&b, advice, target = address(o.data(op.target)), bytes = op.target.size() * sizeof(T),
                             about = where(advice.about, b.device())] {
            return b.check(b.api().advise(target, bytes, advice.what, about));
        }));
}

result<readiness> trim(backend& b, stream_state&, bound_op& o)
{
    return launched(b.blocking().run(o, [&b] {
        b.buffers().trim();
        b.staging().trim();
        return error_code();
    }));
}

error_code finish_blocking_op(backend& b, bound_op& o) noexcept
{
    b.blocking().finish(o);
    return o.status;
}

template <class... Ts>
void add_memory_ops_for(op_table& table, type_list<Ts...>)
{
    (table.add<memory::fill<Ts>>({.enqueue = fill<Ts>, .commands = fill_commands<Ts>}), ...);
    (table.add<memory::copy<Ts>>({.enqueue = copy<Ts>}), ...);
    (table.add<detail::write_op<Ts>>({.prepare = write<Ts>, .finish = end_copy}), ...);
    (table.add<detail::read_op<Ts>>({.prepare = read<Ts>, .finish = end_copy}), ...);
    (table.add<detail::collect_op<Ts>>({.prepare = collect<Ts>, .finish = end_copy}), ...);
    (table.add<memory::prefetch<Ts>>({.prepare = prefetch<Ts>, .finish = finish_blocking_op}), ...);
    (table.add<memory::advise<Ts>>({.prepare = advise<Ts>, .finish = finish_blocking_op}), ...);
}

void add_memory_ops(op_table& table)
{
    add_memory_ops_for(table, element_types{});
    table.add<memory::trim>({.prepare = trim, .finish = finish_blocking_op});
}

void add_fill(op_list& ops, const ref<float>& scratch)
{
    ops.add(memory::fill<float>{.dst = scratch, .value = 0});
}

} // namespace

const op_library memory_ops{.add_ops = add_memory_ops, .add_warm_up = add_fill};

} // namespace coaccel::cuda
