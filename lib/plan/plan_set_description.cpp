#include "plan/plan_parts.hpp"

#include <coaccel/plan/plan_set_description.hpp>

#include <algorithm>
#include <set>

namespace coaccel {
namespace {

/// The size of the states that no other plan uses, and of the common ones that are not in `counted` yet.
std::uint64_t states_of(const detail::set_plan& p, std::set<std::uint32_t>& counted)
{
    const detail::plan_data& data = *detail::plan_access::data(p.plan);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < data.states.size(); ++i)
        if (p.states[i] == detail::own_state || counted.insert(p.states[i]).second)
            sum += data.slots[data.states[i]].bytes();
    return sum;
}

} // namespace

const std::string& plan_set_description::name() const noexcept
{
    return detail::value_or_empty(data_, &detail::plan_set_data::name);
}

content_id plan_set_description::id() const noexcept
{
    return detail::value_or_empty(data_, &detail::plan_set_data::id);
}

std::size_t plan_set_description::size() const noexcept
{
    return data_ ? data_->plans.size() : 0;
}

plan_description plan_set_description::operator[](std::size_t index) const noexcept
{
    return index < size() ? data_->plans[index].plan : plan_description();
}

plan_description plan_set_description::operator[](std::string_view name) const noexcept
{
    if (!data_)
        return {};
    const auto found = std::ranges::find(data_->plans, name, &detail::set_plan::name);
    return found == data_->plans.end() ? plan_description() : found->plan;
}

plan_memory plan_set_description::memory() const
{
    plan_memory sum;
    if (!data_)
        return sum;
    std::set<std::uint32_t> states;
    std::set<content_id> constants;
    for (const detail::set_plan& p : data_->plans) {
        const plan_memory one = p.plan.memory();
        sum.instance += one.instance;
        sum.staged += one.staged;
        sum.unshared_scratch += one.unshared_scratch;
        sum.states += states_of(p, states);
        for (const detail::plan_content& c : detail::plan_access::data(p.plan)->constant_contents)
            if (constants.insert(c.id).second)
                sum.constants += c.bytes;
    }
    return sum;
}

std::string plan_set_description::to_text() const
{
    return data_ ? detail::plan_set_text(*data_) : std::string();
}

std::string plan_set_description::to_graphviz() const
{
    return data_ ? detail::plan_set_graphviz(*data_) : std::string();
}

} // namespace coaccel
