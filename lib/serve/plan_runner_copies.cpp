#include "serve/batcher_core.hpp"
#include "serve/plan_runner_places.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

// The copies between the memory of the callers and that of the batches.
namespace coaccel::detail {
namespace {

/// The rows from `first` to `last`, which no request has, repeat another one: values that the plan has not been given
/// are never computed.
void repeat_row(const model_layout& layout, std::byte* memory, std::uint64_t row, std::uint64_t first,
                std::uint64_t last) noexcept
{
    for (std::size_t k = 0; k < layout.inputs; ++k) {
        const staged_argument& a = layout.arguments[k];
        std::byte* const rows = memory + a.offset;
        for (std::uint64_t i = first; i < last; ++i)
            std::memcpy(rows + i * a.row, rows + row * a.row, a.row);
    }
}

/// Calls f with each argument of a request, its place in the layout and its bytes.
template <class Function>
void for_each_argument(const model_layout& layout, const row_request& r, slot_kind direction, Function f)
{
    std::size_t k = direction == slot_kind::input ? 0 : layout.inputs;
    for (const run_range& range : r.ranges)
        if (range.direction == direction)
            f(range, layout.arguments[k++]);
}

/// The bytes of one row of all inputs, or of all outputs.
std::uint64_t bytes_of_row(const model_layout& layout, slot_kind direction) noexcept
{
    std::uint64_t bytes = 0;
    for (const staged_argument& a : layout.arguments)
        bytes += a.direction == direction ? a.row : 0;
    return bytes;
}

} // namespace

void plan_runner::collect(const model_layout& layout, place& p) noexcept
{
    std::uint64_t next = 0;
    for (const batch_request* member : p.members) {
        if (!member)
            continue;
        for_each_argument(layout, static_cast<const row_request&>(*member), slot_kind::input,
                          [&](const run_range& from, const staged_argument& a) {
                              std::memcpy(p.data() + a.offset + member->row * a.row, from.data, member->rows * a.row);
                          });
        // Those of members that have left.
        repeat_row(layout, p.data(), member->row, next, member->row);
        next = member->row + member->rows;
    }
    if (next > 0)
        repeat_row(layout, p.data(), next - 1, next, p.size);
}

void plan_runner::distribute(const model_layout& layout, place& p) noexcept
{
    for (std::size_t i = 0; i < p.members.size(); ++i) {
        const batch_request* const member = p.members[i];
        if (!member || p.outcome(i))
            continue;
        for_each_argument(layout, static_cast<const row_request&>(*member), slot_kind::output,
                          [&](const run_range& to, const staged_argument& a) {
                              std::memcpy(to.data, p.data() + a.offset + member->row * a.row, member->rows * a.row);
                          });
    }
}

void plan_runner::deliver(batch_run& run) noexcept
{
    auto& p = static_cast<place&>(run);
    distribute(layouts_[p.model], p);
}

/// Starts the copy on another thread. False: there is no thread or no memory for it.
template <class Step, class Copy>
bool plan_runner::copy_elsewhere(place& p, Step what, Copy copy)
{
    auto& where = asio::query(core_->executor(), asio::execution::context);
    p.copy = copies_.start(where, copy, [core = self_of(*core_), &p] { ended(core, p); });
    if (!p.copy)
        return false;
    p.now = what;
    p.uses_members = true;
    return true;
}

bool plan_runner::collects_elsewhere(place& p)
{
    const model_layout& layout = layouts_[p.model];
    return p.size * bytes_of_row(layout, slot_kind::input) >= least_copied_elsewhere &&
           copy_elsewhere(p, place::step::collecting, [&layout, &p] { collect(layout, p); });
}

bool plan_runner::delivers_elsewhere(place& p)
{
    const model_layout& layout = layouts_[p.model];
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < p.members.size(); ++i)
        if (p.members[i] && !p.outcome(i))
            rows += p.members[i]->rows;
    return rows * bytes_of_row(layout, slot_kind::output) >= least_copied_elsewhere &&
           copy_elsewhere(p, place::step::delivering, [&layout, &p] { distribute(layout, p); });
}

bool plan_runner::leave(batch_run& run, std::size_t member)
{
    auto& p = static_cast<place&>(run);
    return copies_.before(*p.copy, [&] { p.members[member] = nullptr; });
}

bool plan_runner::withdraw(batch_run& run)
{
    // The batcher ends those that are lost.
    return !lost(run) && copies_.withdraw(*static_cast<place&>(run).copy);
}

bool plan_runner::lost(const batch_run& run) const noexcept
{
    return static_cast<const place&>(run).copy->lost();
}

void plan_runner::leave_members() noexcept
{
    copies_.finish();
}

void plan_runner::make_single_inputs(place& p, std::uint32_t size)
{
    const model_layout& layout = layouts_[p.model];
    const batch_request& r = *p.members[p.member];
    p.single.resize(layout.bytes);
    for (std::size_t k = 0; k < layout.inputs; ++k) {
        const staged_argument& a = layout.arguments[k];
        // The caller's memory may have changed: it is not used after the batch was formed.
        std::memcpy(p.single.data() + a.offset, p.data() + a.offset + r.row * a.row, r.rows * a.row);
    }
    repeat_row(layout, p.single.data(), r.rows - 1, r.rows, size);
}

void plan_runner::keep_single_outputs(place& p) noexcept
{
    const model_layout& layout = layouts_[p.model];
    const batch_request* r = p.members[p.member];
    if (!r)
        return;
    for (std::size_t k = layout.inputs; k < layout.arguments.size(); ++k) {
        const staged_argument& a = layout.arguments[k];
        std::memcpy(p.data() + a.offset + r->row * a.row, p.single.data() + a.offset, r->rows * a.row);
    }
}

} // namespace coaccel::detail
