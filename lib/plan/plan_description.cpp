#include "plan/plan_parts.hpp"

#include <coaccel/plan/plan_description.hpp>

#include <algorithm>

namespace coaccel {
namespace {

std::vector<plan_argument> arguments(const detail::plan_data* plan,
                                     const std::vector<std::uint32_t> detail::plan_data::* which)
{
    std::vector<plan_argument> made;
    if (!plan)
        return made;
    made.reserve((plan->*which).size());
    for (const std::uint32_t i : plan->*which) {
        const detail::plan_slot& s = plan->slots[i];
        made.push_back({s.name, s.type, s.count, s.shape});
    }
    return made;
}

std::uint64_t total(const detail::plan_data& plan, slot_kind kind) noexcept
{
    std::uint64_t sum = 0;
    for (const detail::plan_slot& s : plan.slots)
        sum += s.kind == kind ? s.bytes() : 0;
    return sum;
}

} // namespace

std::string_view to_string(slot_kind k) noexcept
{
    switch (k) {
    case slot_kind::input: return "input";
    case slot_kind::output: return "output";
    case slot_kind::constant: return "constant";
    case slot_kind::scratch: return "scratch";
    case slot_kind::state: return "state";
    case slot_kind::parameter: return "parameter";
    }
    return "unknown";
}

std::string_view to_string(suspect_rule r) noexcept
{
    switch (r) {
    case suspect_rule::keep: return "keep";
    case suspect_rule::reset: return "reset";
    case suspect_rule::fail: return "fail";
    }
    return "unknown";
}

std::string to_string(const content_id& id)
{
    constexpr char digits[] = "0123456789abcdef";
    std::string made(32, '0');
    for (std::size_t i = 0; i < 16; ++i) {
        made[i] = digits[id.high >> (60 - 4 * i) & 15];
        made[16 + i] = digits[id.low >> (60 - 4 * i) & 15];
    }
    return made;
}

const std::string& plan_description::name() const noexcept
{
    return detail::value_or_empty(data_, &detail::plan_data::name);
}

content_id plan_description::id() const noexcept
{
    return detail::value_or_empty(data_, &detail::plan_data::id);
}

std::size_t plan_description::ops() const noexcept
{
    return data_ ? data_->ops.size() : 0;
}

std::uint64_t plan_description::rows() const noexcept
{
    if (data_)
        for (const detail::plan_slot& s : data_->slots)
            if (s.shape.batched)
                return s.shape.dims[0];
    return 0;
}

plan_memory plan_description::memory() const noexcept
{
    if (!data_)
        return {};
    return {.instance = data_->instance_bytes,
            .constants = total(*data_, slot_kind::constant),
            .states = total(*data_, slot_kind::state),
            .staged = data_->staged_inputs.bytes + data_->staged_outputs.bytes,
            .unshared_scratch = data_->unshared_scratch_bytes};
}

bool plan_description::repeatable() const noexcept
{
    return data_ && data_->repeatable();
}

bool plan_description::capturable() const noexcept
{
    return data_ && std::ranges::all_of(data_->ops, [](const detail::listed_op& o) {
               return detail::obstacle_of(o) == capture_obstacle::none;
           });
}

std::vector<plan_argument> plan_description::inputs() const
{
    return arguments(data_.get(), &detail::plan_data::inputs);
}

std::vector<plan_argument> plan_description::parameters() const
{
    return arguments(data_.get(), &detail::plan_data::parameters);
}

std::vector<plan_argument> plan_description::outputs() const
{
    return arguments(data_.get(), &detail::plan_data::outputs);
}

std::string plan_description::to_text() const
{
    return data_ ? detail::plan_text(*data_) : std::string();
}

std::string plan_description::to_graphviz() const
{
    return data_ ? detail::plan_graphviz(*data_) : std::string();
}

} // namespace coaccel
