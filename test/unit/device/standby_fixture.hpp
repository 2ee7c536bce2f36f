#ifndef COACCEL_TEST_UNIT_DEVICE_STANDBY_FIXTURE_HPP
#define COACCEL_TEST_UNIT_DEVICE_STANDBY_FIXTURE_HPP

#include "device/standby_plans.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

// A device with a standby, reduced to their plans.
namespace test::standby {

using namespace coaccel;
using namespace coaccel::detail;

/// The memory and the instances of a context, without the context.
class context_memory {
public:
    explicit context_memory(std::uint32_t generation) : generation_(generation) {}

    /// Does what a request of one op asks for.
    void execute(load_part& part)
    {
        const bound_op& o = part.ops.front();
        names.push_back(o.info->name);
        if (o.info->role == op_role::allocate)
            give(o, o.as<allocate_op>().count);
        else if (o.info->id == info_of<import_op>().id) {
            durable.insert(give(o, (*o.as<import_op>().from)->bytes));
        } else if (o.info->id == info_of<export_op>().id) {
            const auto& op = o.as<export_op>();
            durable.insert(op.buffer.raw.slot);
            *op.to = std::make_shared<const exported_memory>(exported_memory{unique_fd(), op.buffer.size(), op.access});
        } else if (o.info->id == plan_load_id) {
            load(o.as<plan_load_head>());
        } else if (o.info->id == info_of<plan_unload_op>().id) {
            const std::uint64_t instance = o.as<plan_unload_op>().instance;
            CHECK(loaded.erase(instance) == (instance == 0 ? 0 : 1));
        }
    }

    void release(const std::vector<any_ref>& unused)
    {
        for (const any_ref& r : unused) {
            CHECK(r.generation == generation_);
            CHECK(live.erase(r.slot) == 1);
            durable.erase(r.slot);
        }
    }

    std::size_t times(const std::string& name) const
    {
        return static_cast<std::size_t>(std::ranges::count(names, name));
    }

    std::size_t uploads() const { return times("memory.write<u8>"); }

    std::vector<std::string> names;
    std::set<std::uint32_t> live;
    /// The buffers of durable states.
    std::set<std::uint32_t> durable;
    /// For each instance: how many durable states it uses.
    std::map<std::uint64_t, std::size_t> loaded;

private:
    std::uint32_t give(const bound_op& o, std::uint64_t size)
    {
        static_cast<allocation*>(o.reply)->ref = {
            .device = 1, .generation = generation_, .slot = ++slots_, .size = size};
        live.insert(slots_);
        return slots_;
    }

    void load(const plan_load_head& head)
    {
        const plan_load_operands at(*head.plan);
        std::set<std::uint32_t> used;
        std::size_t states = 0;
        for (std::size_t i = 0; i < at.count; ++i) {
            const any_ref& r = head.refs()[i];
            CHECK(r.generation == generation_);
            CHECK(live.contains(r.slot));
            CHECK(used.insert(r.slot).second);
            // The ops are run for the first time over the spare states.
            if (durable.contains(r.slot)) {
                CHECK(i >= at.states);
                CHECK(i < at.spare_states);
                ++states;
            }
        }
        CHECK(loaded.emplace(head.instance, states).second);
    }

    std::uint32_t generation_;
    std::uint32_t slots_ = 0;
};

/// A device with a context and a standby, reduced to their plans.
struct fixture {
    std::shared_ptr<loaded_plan> add(const plan_description& d, const plan_options& how = {})
    {
        auto p = std::make_shared<loaded_plan>(d, how);
        plans.add(p);
        return p;
    }

    bool step(const error_code& ec = {})
    {
        load_part* part = plans.next(sharing::yes);
        if (!part)
            return false;
        CHECK_FALSE(part->standby);
        if (!ec)
            current.execute(*part);
        finish(*part, ec);
        return true;
    }

    void finish(load_part& part, const error_code& ec = {})
    {
        last = plans.finished(part, ec);
        current.release(last.unused);
        if (last.extended)
            last.extended->pool.add(static_cast<std::uint32_t>(last.extended->instances.size() - 1));
    }

    void run()
    {
        while (step()) {
        }
    }

    bool standby_step(const error_code& ec = {})
    {
        load_part* part = standby.next(plans, sharing::yes);
        if (!part)
            return false;
        CHECK(part->standby);
        if (!ec)
            ahead.execute(*part);
        last_of_standby = standby.finished(*part, ec);
        ahead.release(last_of_standby.unused);
        return true;
    }

    void run_standby()
    {
        while (standby_step()) {
        }
    }

    /// As the device does after the loss of its context.
    std::vector<loaded_plan*> take_over(loss_cause cause = loss_cause::outside)
    {
        for (const auto& p : plans.all())
            p->pool.clear();
        (void)plans.forget_context();
        for (const auto& p : plans.all())
            for (const auto& s : p->durable_states)
                if (s)
                    s->context_lost(cause);
        auto usable = plans.adopt(standby);
        for (loaded_plan* p : usable)
            for (std::uint32_t i = 0; i < p->instances.size(); ++i)
                p->pool.add(i);
        current = std::exchange(ahead, context_memory(3));
        return usable;
    }

    context_memory current{1};
    context_memory ahead{2};
    plan_list plans;
    standby_plans standby;
    plan_list::news last;
    standby_plans::news last_of_standby;
};

} // namespace test::standby

#endif
