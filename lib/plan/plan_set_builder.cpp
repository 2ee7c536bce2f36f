#include "plan/content_hash.hpp"
#include "plan/plan_parts.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace coaccel {
namespace {

using detail::own_state;
using detail::plan_set_data;
using detail::set_plan;

/// The name of a set as that of its slots, so that messages begin with "plan set NAME".
std::string slots_name(const std::string& set)
{
    return set.empty() ? std::string("set") : "set " + set;
}

/// Numbers the states that several plans use. Before, set_plan::states has indices of slots of the set.
void find_common_states(plan_set_data& set, std::size_t slots)
{
    std::vector<std::uint32_t> users(slots);
    std::vector<std::uint32_t> numbers(slots, own_state);
    for (const set_plan& p : set.plans)
        for (const std::uint32_t s : p.states)
            if (s != own_state)
                ++users[s];
    for (std::size_t s = 0; s < slots; ++s)
        if (users[s] > 1) {
            numbers[s] = static_cast<std::uint32_t>(set.users.size());
            set.users.push_back(users[s]);
        }
    for (set_plan& p : set.plans)
        for (std::uint32_t& s : p.states)
            if (s != own_state)
                s = numbers[s];
}

content_id identify(const plan_set_data& set)
{
    detail::content_hash h;
    h.add(std::string_view("coaccel plan set 1"));
    h.add(set.plans.size());
    for (const set_plan& p : set.plans) {
        h.add(p.plan.id());
        h.add(p.states.size());
        for (const std::uint32_t s : p.states)
            h.add(s);
    }
    return h.finish();
}

} // namespace

plan_set_builder::plan_set_builder(std::string name)
    : name_(std::move(name)), slots_(std::make_shared<plan_builder>(slots_name(name_)))
{}

plan_set_builder::plan_set_builder(plan_set_builder&&) noexcept = default;
plan_set_builder& plan_set_builder::operator=(plan_set_builder&&) noexcept = default;
plan_set_builder::~plan_set_builder() = default;

plan_builder& plan_set_builder::plan(std::string name)
{
    plan_builder made(name_.empty() ? name : name_ + "." + name);
    made.draft_.common = {slots_, &slots_->draft_};
    plans_.push_back(std::make_unique<member>(member{std::move(name), std::move(made)}));
    return plans_.back()->builder;
}

result<plan_set_description> plan_set_builder::finish() const
{
    const auto& slots = slots_->draft_;
    const auto refuse = [&](std::initializer_list<detail::message_part> parts) {
        return detail::op_error(errc::invalid_argument, detail::plan_label(slots.name), parts);
    };
    if (slots.problem != errc{})
        return make_error_with_message(slots.problem, slots.message);
    if (plans_.empty())
        return refuse({"it has no plans"});
    auto made = std::make_shared<plan_set_data>();
    made->name = name_;
    std::set<std::string_view> names;
    for (const auto& p : plans_) {
        if (p->name.empty())
            return refuse({"plan ", names.size() + 1, " has no name"});
        if (!names.insert(p->name).second)
            return refuse({"two plans have the name ", p->name});
        const auto joined = detail::join_common_slots(p->builder.draft_);
        BOOST_OUTCOME_TRY(const auto plan, detail::make_plan(joined.draft));
        std::vector<std::uint32_t> states;
        for (const std::uint32_t slot : plan->states)
            states.push_back(joined.from[slot]);
        made->plans.push_back({p->name, detail::plan_access::make(plan), std::move(states)});
    }
    find_common_states(*made, slots.slots.size());
    made->id = identify(*made);
    return detail::plan_set_access::make(std::move(made));
}

} // namespace coaccel
