#include "device/device_core.hpp"
#include "device/loaded_plan.hpp"
#include "plan/plan_parts.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/device/detail/plan_requests.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace coaccel::detail {
namespace {

/// The title of calls of an empty `plan`, for their error.
const request_title& empty_plan() noexcept
{
    static const request_title made{.text = "plan"};
    return made;
}

std::string_view word(slot_kind direction) noexcept
{
    return direction == slot_kind::input ? "input" : "output";
}

bool share_bytes(const run_range& a, const run_range& b) noexcept
{
    return a.data < b.data + b.bytes() && b.data < a.data + a.bytes();
}

/// Why these values are not those of the plan's parameters.
error_code check_values(const loaded_plan& plan, std::span<const run_value> values) noexcept
{
    const plan_data& p = plan.data;
    const std::string_view name = plan.title.text;
    for (std::size_t i = 0; i < std::min(values.size(), p.parameters.size()); ++i)
        if (const plan_slot& s = p.slots[p.parameters[i]]; s.type != values[i].type)
            return op_error(
                errc::wrong_dtype, name,
                {"parameter ", s.name, " is of type ", to_string(s.type), ", given ", to_string(values[i].type)});
    if (values.size() < p.parameters.size())
        return op_error(errc::invalid_argument, name,
                        {"parameter ", p.slots[p.parameters[values.size()]].name, " is missing"});
    if (values.size() > p.parameters.size())
        return op_error(errc::invalid_argument, name,
                        {"parameters: the plan has ", p.parameters.size(), ", given ", values.size()});
    return {};
}

/// Why these arguments are not those of the plan.
error_code check_arguments(const loaded_plan& plan, std::span<const run_range> ranges) noexcept
{
    const plan_data& p = plan.data;
    const std::string_view name = plan.title.text;
    for (const slot_kind direction : {slot_kind::input, slot_kind::output}) {
        const auto& slots = direction == slot_kind::input ? p.inputs : p.outputs;
        std::size_t given = 0;
        for (const run_range& r : ranges) {
            if (r.direction != direction)
                continue;
            if (given == slots.size()) {
                ++given;
                break;
            }
            const plan_slot& s = p.slots[slots[given++]];
            if (r.type != s.type)
                return op_error(errc::wrong_dtype, name,
                                {word(direction), " ", s.name, " has elements of type ", to_string(s.type), ", given ",
                                 to_string(r.type)});
            if (r.count != s.count)
                return op_error(errc::length_mismatch, name,
                                {word(direction), " ", s.name, " has ", s.count, " elements, given ", r.count});
        }
        if (given < slots.size())
            return op_error(errc::invalid_argument, name,
                            {word(direction), " ", p.slots[slots[given]].name, " is missing"});
        if (given > slots.size())
            return op_error(errc::invalid_argument, name,
                            {word(direction), "s: the plan has ", slots.size(), ", given more"});
    }
    for (std::size_t a = 0; a < ranges.size(); ++a)
        for (std::size_t b = a + 1; b < ranges.size(); ++b)
            if ((ranges[a].direction == slot_kind::output || ranges[b].direction == slot_kind::output) &&
                share_bytes(ranges[a], ranges[b]))
                return op_error(errc::overlap, name,
                                {"arguments ", a + 1, " and ", b + 1, " share memory, and an output is among them"});
    return {};
}

plan_set_description set_of(plan_description only)
{
    auto made = std::make_shared<plan_set_data>();
    made->plans.push_back({.name = {}, .plan = std::move(only), .states = {}});
    return plan_set_access::make(std::move(made));
}

} // namespace

plan_handle::~plan_handle()
{
    core->drop_plan(plan);
}

const plan_description& plan_handle::description() const noexcept
{
    return plan->description;
}

bool plan_handle::quarantined() const noexcept
{
    return plan->is_quarantined();
}

bool plan_handle::suspect() const noexcept
{
    return plan->is_suspect();
}

load_call::load_call(plan_description what, plan_options options_)
    : load_call(set_of(std::move(what)), std::move(options_))
{}

load_call::load_call(plan_set_description what, plan_options options_)
    : request(request_kind::load), set(std::move(what)), how(options_)
{}

load_call::load_call(op_list ops) : request(request_kind::load), recorded(std::move(ops)) {}

load_call::~load_call() = default;

bool load_call::is_loaded() const noexcept
{
    return std::ranges::all_of(made, [](const auto& p) {
        return !p->instances.empty() &&
               (p->full || p->instances.size() >= static_cast<std::size_t>(p->options.initial));
    });
}

void load_call::detach_plans() noexcept
{
    for (const auto& p : made)
        p->leave_call();
}

std::vector<std::shared_ptr<plan_handle>> load_call::take_handles(const core_ptr& core)
{
    std::vector<std::shared_ptr<plan_handle>> handles;
    handles.reserve(made.size());
    for (auto& p : made)
        handles.push_back(std::make_shared<plan_handle>(core, std::move(p)));
    return handles;
}

unload_call::unload_call(loaded_plans p) noexcept : request(request_kind::unload), plans(std::move(p))
{
    if (!plans.empty() && !plans.front())
        title = &empty_plan();
}

unload_call::~unload_call() = default;

void unload_call::detach_plans() noexcept
{
    for (const auto& p : plans)
        std::erase(p->unloads, this);
}

revive_plan_call::revive_plan_call(std::shared_ptr<loaded_plan> p) noexcept
    : request(request_kind::revive_plan), plan(std::move(p))
{
    if (!plan)
        title = &empty_plan();
}

revive_plan_call::~revive_plan_call() = default;

run_call::run_call(std::shared_ptr<loaded_plan> plan, const exec_options& how) noexcept : plan_(std::move(plan))
{
    options = how;
    title = plan_ ? &plan_->title : &empty_plan();
    if (!plan_)
        return;
    pool = &plan_->pool;
}

run_call::~run_call() = default;

void run_call::attach(std::span<const run_range> ranges, std::span<run_value> values, std::span<run_argument> staged,
                      std::span<large_copy> large, std::span<bound_op> bound) noexcept
{
    ranges_ = ranges;
    values_ = values;
    staged_ = staged;
    large_ = large;
    bound_ = bound;
    bound_[0] = {.info = &info_of<plan_run_op>(), .op = &run_, .operands = &address_};
    ops = bound_.first(1);
    for (const run_range& r : ranges) {
        bytes += r.bytes();
        if (r.direction == slot_kind::output)
            bytes_to_host += r.bytes();
    }
    for (const run_value& v : values)
        bytes += size_of(v.type);
    if (!plan_)
        return;
    refused_ = check_arguments(*plan_, ranges);
    if (!refused_)
        refused_ = check_values(*plan_, values);
}

void run_call::use(std::uint64_t instance, std::uint64_t chain, const any_ref& memory) noexcept
{
    const plan_data& p = plan_->data;
    const auto part = [&](const plan_slot& s) {
        return ref<std::uint8_t>::from_raw(memory).subspan(s.offset, s.bytes());
    };
    std::size_t op = 0;
    std::size_t large = 0;
    std::size_t staged = 0;
    run_ = {.memory = ref<std::uint8_t>::from_raw(memory), .instance = instance, .chain = chain};
    const auto add = [&](slot_kind direction) {
        const auto& slots = direction == slot_kind::input ? p.inputs : p.outputs;
        const std::size_t first_staged = staged;
        std::size_t i = 0;
        for (const run_range& r : ranges_) {
            if (r.direction != direction)
                continue;
            const plan_slot& s = p.slots[slots[i++]];
            if (is_staged(p, s)) {
                staged_[staged++] = {r.data, {s.offset, s.bytes()}};
                continue;
            }
            large_copy& c = large_[large++];
            auto* host = reinterpret_cast<std::uint8_t*>(r.data);
            if (direction == slot_kind::input) {
                c.write = {.dst = part(s), .src = host, .count = s.bytes()};
                bound_[op++] = {.info = &info_of<write_op<std::uint8_t>>(), .op = &c.write, .operands = &c.address};
            } else {
                c.read = {.src = part(s), .dst = host, .count = s.bytes()};
                bound_[op++] = {.info = &info_of<read_op<std::uint8_t>>(), .op = &c.read, .operands = &c.address};
            }
        }
        return staged_.subspan(first_staged, staged - first_staged);
    };
    const auto inputs = add(slot_kind::input);
    // Parameters are inputs of one element.
    for (std::size_t i = 0; i < values_.size(); ++i) {
        const plan_slot& s = p.slots[p.parameters[i]];
        staged_[staged++] = {values_[i].data, {s.offset, s.bytes()}};
    }
    const std::size_t run = op++;
    const auto outputs = add(slot_kind::output);
    run_.inputs = inputs.data();
    run_.input_count = static_cast<std::uint32_t>(inputs.size() + values_.size());
    run_.outputs = outputs.data();
    run_.output_count = static_cast<std::uint32_t>(outputs.size());
    ran_ = {};
    bound_[run] = {.info = &info_of<plan_run_op>(), .op = &run_, .reply = &ran_, .operands = &address_};
    ops = bound_.first(op);
}

} // namespace coaccel::detail
