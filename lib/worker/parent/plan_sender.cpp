#include "worker/parent/plan_sender.hpp"

#include "worker/protocol/plan_codec.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>

namespace coaccel::worker {
namespace {

constexpr std::size_t plan_part = std::size_t(56) << 10;
static_assert(plan_part + 64 <= max_ring_record(ring_bytes));

} // namespace

error_code plan_sender::add(const detail::plan_load_head& load)
{
    if (instances_.contains(load.instance))
        return detail::op_error(errc::invalid_argument, "plan.load",
                                {"instance ", load.instance, " is already loaded"});
    if (!has(*load.plan))
        if (auto ec = send(*load.plan))
            return ec;
    ++plans_.find(load.plan)->second.instances;
    instances_.emplace(load.instance, load.plan);
    return {};
}

error_code plan_sender::send(const detail::plan_data& p)
{
    if (p.slots.size() > most_plan_slots || p.ops.size() > most_plan_ops)
        return detail::op_error(errc::invalid_argument, "plan.load",
                                {"the plan has ", p.slots.size(), " slots and ", p.ops.size(),
                                 " ops, and a worker takes at most ", most_plan_slots, " and ", most_plan_ops});
    encoder encoded;
    encode_plan(encoded, p);
    const auto bytes = encoded.record();
    if (bytes.size() > limits_.bytes_each)
        return detail::op_error(
            errc::invalid_argument, "plan.load",
            {"the plan has ", bytes.size(), " bytes, and a worker takes at most ", limits_.bytes_each});
    if (plans_.size() >= limits_.plans || bytes.size() > limits_.bytes - bytes_)
        return detail::op_error(errc::invalid_argument, "plan.load",
                                {"with the ", bytes.size(),
                                 " bytes of this plan the loaded plans would be more than the ", limits_.plans,
                                 " plans and ", limits_.bytes, " bytes that a worker takes"});
    const std::uint64_t number = ++last_number_;
    for (std::size_t at = 0; at < bytes.size();) {
        const auto part = bytes.subspan(at, std::min(plan_part, bytes.size() - at));
        put_plan(out_.begin(), {.number = number, .total = bytes.size(), .offset = at, .part = part});
        out_.post();
        at += part.size();
    }
    plans_.emplace(&p, entry{number, bytes.size(), 0});
    bytes_ += bytes.size();
    return {};
}

void plan_sender::remove(std::uint64_t instance)
{
    const auto found = instances_.find(instance);
    if (found == instances_.end())
        return;
    const auto plan = plans_.find(found->second);
    instances_.erase(found);
    if (--plan->second.instances > 0)
        return;
    encoder& out = out_.begin();
    out.put(message_type::forget_plan);
    out.put(plan->second.number);
    out_.post();
    bytes_ -= plan->second.bytes;
    plans_.erase(plan);
}

} // namespace coaccel::worker
