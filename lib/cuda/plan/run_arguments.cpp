#include "cuda/plan/run_arguments.hpp"

#include "cuda/backend.hpp"
#include "cuda/plan/captured_node.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace coaccel::cuda {
namespace {

/// What the copy kernel moves at once.
constexpr std::uintptr_t kernel_alignment = 16;
static_assert(detail::slot_alignment % kernel_alignment == 0);

CUdeviceptr device_address(const std::byte* p) noexcept
{
    return reinterpret_cast<CUdeviceptr>(p);
}

} // namespace

run_arguments::run_arguments(backend& b, const detail::plan_data& plan, CUdeviceptr instance) noexcept
    : backend_(b), plan_(plan), instance_(instance)
{}

error_code run_arguments::allocate(copy_kernels& kernels, bool tells)
{
    const std::uint64_t before_outputs = next_slot(plan_.staged_inputs.bytes);
    const std::uint64_t bytes = before_outputs + plan_.staged_outputs.bytes;
    if (bytes == 0)
        return {};
    const auto loaded = kernels.load(backend_);
    if (!loaded)
        return loaded.error();
    kernels_ = loaded.value();
    const auto made = backend_.staging().allocate_to_keep(bytes);
    if (!made)
        return made.error();
    staging_ = static_cast<std::byte*>(made.value());
    inputs_ = make_side(copy_direction::to_device, plan_.staged_inputs, staging_, plan_.inputs);
    outputs_ = make_side(copy_direction::to_host, plan_.staged_outputs, staging_ + before_outputs, plan_.outputs);
    if (tells && kernels_.copy_and_tell && !outputs_.empty() && plan_.staged_outputs.bytes <= most_told_bytes)
        word_ = kernels.take_word(backend_);
    return {};
}

void run_arguments::release(copy_kernels& kernels) noexcept
{
    kernels.give_back(std::exchange(word_, nullptr));
    if (staging_)
        backend_.staging().release_kept(std::exchange(staging_, nullptr));
}

run_arguments::side run_arguments::make_side(copy_direction way, detail::byte_range where, const std::byte* staged,
                                             std::span<const std::uint32_t> slots) const noexcept
{
    side made;
    made.range = {.way = way, .instance = instance_, .where = where, .staged = device_address(staged)};
    made.parts = make_copy_parts(made.range, {});
    made.may_be_direct = kernels_.copy && std::ranges::any_of(slots, [&](std::uint32_t slot) {
                             const detail::plan_slot& s = plan_.slots[slot];
                             // Larger arguments are copied outside of the run.
                             const bool is_staged = s.offset >= where.offset && s.offset < where.offset + where.bytes;
                             return is_staged && s.bytes() >= least_direct_bytes;
                         });
    return made;
}

std::byte* run_arguments::staged(const side& s, const detail::run_argument& a) noexcept
{
    return staged(s) + (a.where.offset - s.range.where.offset);
}

error_code run_arguments::enqueue(const side& s, CUstream on) noexcept
{
    if (s.empty())
        return {};
    if (&s == &outputs_ && word_)
        return launch_copy_and_tell(backend_, kernels_.copy_and_tell, s.parts.all.front(), word_, on);
    if (kernels_.copy)
        return launch_copies(backend_, kernels_.copy, s.parts, on);
    const driver_api& api = backend_.api();
    const auto& [way, instance, where, unused] = s.range;
    const CUdeviceptr device = instance + where.offset;
    return backend_.check(way == copy_direction::to_device ? api.cuMemcpyHtoDAsync(device, staged(s), where.bytes, on)
                                                           : api.cuMemcpyDtoHAsync(staged(s), device, where.bytes, on));
}

error_code run_arguments::capture(side& s, CUstream on)
{
    if (auto ec = enqueue(s, on))
        return ec;
    if (!s.may_be_direct)
        return {};
    const auto node = last_captured_node(backend_, on);
    if (!node)
        return node.error();
    s.node = node.value();
    s.outdated = false;
    return {};
}

error_code run_arguments::begin(const detail::plan_run_op& run, CUgraphExec graph) noexcept
{
    if (auto ec = choose(inputs_, run.staged_inputs(), graph))
        return ec;
    if (auto ec = choose(outputs_, run.staged_outputs(), graph))
        return ec;
    for (const auto& a : run.staged_inputs())
        if (!is_direct(inputs_, a))
            std::memcpy(staged(inputs_, a), a.host, a.where.bytes);
    return {};
}

void run_arguments::clear_word() noexcept
{
    if (word_)
        std::atomic_ref(*word_).store(0, std::memory_order_relaxed);
}

void run_arguments::deliver(const detail::plan_run_op& run) const noexcept
{
    for (const auto& a : run.staged_outputs())
        if (!is_direct(outputs_, a))
            std::memcpy(a.host, staged(outputs_, a), a.where.bytes);
}

error_code run_arguments::choose(side& s, std::span<const detail::run_argument> arguments, CUgraphExec graph) noexcept
{
    if (!s.may_be_direct)
        return {};
    std::array<direct_argument, most_direct_arguments> direct;
    std::size_t count = 0;
    for (const auto& a : arguments)
        if (count < direct.size() && can_be_direct(a))
            direct[count++] = {a.where, device_address(a.host)};
    const copy_parts parts = make_copy_parts(s.range, {direct.data(), count});
    if (parts != s.parts) {
        s.parts = parts;
        s.outdated = true;
    }
    if (!graph || !s.outdated)
        return {};
    if (auto ec = change_copies(backend_, kernels_.copy, s.parts, graph, s.node))
        return ec;
    s.outdated = false;
    return {};
}

bool run_arguments::can_be_direct(const detail::run_argument& a) const noexcept
{
    return a.where.bytes >= least_direct_bytes && device_address(a.host) % kernel_alignment == 0 &&
           backend_.copies().usable_by_kernels(a.host, a.where.bytes);
}

bool run_arguments::is_direct(const side& s, const detail::run_argument& a) noexcept
{
    // Several arguments may be at one place of the caller's memory, but not of the instance's.
    const CUdeviceptr device = s.range.instance + a.where.offset;
    const CUdeviceptr host = device_address(a.host);
    const copy_part wanted = s.range.way == copy_direction::to_device ? copy_part{device, host, a.where.bytes}
                                                                      : copy_part{host, device, a.where.bytes};
    return s.may_be_direct && std::ranges::find(s.parts.used(), wanted) != s.parts.used().end();
}

} // namespace coaccel::cuda
