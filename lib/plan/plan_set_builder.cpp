#include "plan/content_hash.hpp"
#include "plan/plan_parts.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <initializer_list>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace coaccel {
namespace {

/// The name of a set as that of its slots, so that messages begin with "plan set NAME".
std::string slots_name(const std::string& set)
{
    return set.empty() ? std::string("set") : "set " + set;
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
    plan_builder made(detail::name_in_set(name_, name));
    made.draft_.common = {slots_, &slots_->draft_};
    plans_.push_back(std::make_unique<member>(member{std::move(name), std::move(made)}));
    return plans_.back()->builder;
}

result<plan_set_description> plan_set_builder::finish() const
{
    const auto& slots = slots_->draft_;
    if (slots.problem != errc{})
        return make_error_with_message(slots.problem, slots.message);
    std::vector<std::string_view> names;
    for (const auto& p : plans_)
        names.push_back(p->name);
    if (auto ec = detail::check_plan_names(name_, names))
        return ec;
    std::vector<detail::set_plan> plans;
    for (const auto& p : plans_) {
        const auto joined = detail::join_common_slots(p->builder.draft_);
        BOOST_OUTCOME_TRY(const auto plan, detail::make_plan(joined.draft));
        std::vector<std::uint32_t> states;
        for (const std::uint32_t slot : plan->states)
            states.push_back(joined.from[slot]);
        plans.push_back({p->name, detail::plan_access::make(plan), std::move(states)});
    }
    return detail::make_plan_set(name_, std::move(plans));
}

namespace detail {
namespace {

/// Numbers the states that several plans use.
void find_common_states(plan_set_data& set)
{
    std::map<std::uint32_t, std::uint32_t> users;
    for (const set_plan& p : set.plans)
        for (const std::uint32_t s : p.states)
            ++users[s];
    users.erase(own_state);
    std::map<std::uint32_t, std::uint32_t> numbers;
    for (const auto& [state, count] : users)
        if (count > 1) {
            numbers.emplace(state, static_cast<std::uint32_t>(set.users.size()));
            set.users.push_back(count);
        }
    for (set_plan& p : set.plans)
        for (std::uint32_t& s : p.states) {
            const auto found = numbers.find(s);
            s = found == numbers.end() ? own_state : found->second;
        }
}

content_id identify(const plan_set_data& set)
{
    content_hash h;
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

std::string set_label(const std::string& name)
{
    return plan_label(slots_name(name));
}

std::string name_in_set(const std::string& set, const std::string& plan)
{
    return set.empty() ? plan : set + "." + plan;
}

error_code check_plan_names(const std::string& set, const std::vector<std::string_view>& names)
{
    const auto refuse = [&](std::initializer_list<message_part> parts) {
        return op_error(errc::invalid_argument, set_label(set), parts);
    };
    if (names.empty())
        return refuse({"it has no plans"});
    std::set<std::string_view> known;
    for (const std::string_view name : names) {
        if (name.empty())
            return refuse({"plan ", known.size() + 1, " has no name"});
        if (!known.insert(name).second)
            return refuse({"two plans have the name ", name});
    }
    return {};
}

plan_set_description make_plan_set(std::string name, std::vector<set_plan> plans)
{
    auto made = std::make_shared<plan_set_data>();
    made->name = std::move(name);
    made->plans = std::move(plans);
    find_common_states(*made);
    made->id = identify(*made);
    return plan_set_access::make(std::move(made));
}

} // namespace detail
} // namespace coaccel
