#ifndef COACCEL_TEST_UNIT_DEVICE_PLAN_LIST_FIXTURE_HPP
#define COACCEL_TEST_UNIT_DEVICE_PLAN_LIST_FIXTURE_HPP

#include "device/plan_list.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace test::plan_lists {

using namespace coaccel;
using namespace coaccel::detail;

/// What the device and the context do with the requests of a plan_list, without either.
class fake_context {
public:
    explicit fake_context(plan_list& plans) : plans_(plans) {}

    /// Executes the next request; false: there is none.
    bool step(error_code ec = {})
    {
        load_part* part = plans_.next();
        if (!part)
            return false;
        const bound_op& o = part->ops.front();
        names.push_back(o.info->name);
        if (!ec && o.info->role == op_role::allocate) {
            any_ref made{.device = 1, .generation = 1, .slot = ++slots_, .size = o.as<allocate_op>().count};
            static_cast<allocation*>(o.reply)->ref = made;
            live.insert(made.slot);
        }
        if (!ec && o.info->id == plan_load_id) {
            const auto& head = o.as<plan_load_head>();
            loaded[head.instance] = head.chain;
            // All operands are live buffers.
            for (std::size_t i = 0; i < plan_load_operands(*head.plan).count; ++i)
                CHECK(live.contains(head.refs()[i].slot));
        }
        if (!ec && o.info->id == info_of<plan_unload_op>().id)
            loaded.erase(o.as<plan_unload_op>().instance);
        last = plans_.finished(*part, ec);
        for (const any_ref& r : last.unused)
            CHECK(live.erase(r.slot) == 1);
        if (last.extended)
            last.extended->pool.add(static_cast<std::uint32_t>(last.extended->instances.size() - 1));
        return true;
    }

    void run()
    {
        while (step()) {
        }
    }

    std::vector<std::string> names;
    std::set<std::uint32_t> live;
    /// The chains of the instances that exist.
    std::map<std::uint64_t, std::uint64_t> loaded;
    plan_list::news last;

private:
    plan_list& plans_;
    std::uint32_t slots_ = 0;
};

inline plan_description make_plan(float value = 1, bool with_state = false)
{
    plan_builder b("p");
    const auto w = b.constant<float>(std::vector<float>(8, value));
    const auto x = b.input<float>(8);
    const auto y = b.output<float>(8);
    const auto z = b.output<float>(8);
    b.add(memory::copy<float>{w, y});
    b.add(memory::copy<float>{x, z});
    if (with_state)
        b.add(memory::copy<float>{x, b.state<float>(8)});
    return b.finish().value();
}

struct fixture {
    std::shared_ptr<loaded_plan> add(const plan_description& d, plan_options how = {})
    {
        auto p = std::make_shared<loaded_plan>(d, how);
        plans.add(p);
        return p;
    }

    plan_list plans;
    fake_context context{plans};
};

/// Two equal constants and another one.
inline plan_description plan_with_equal_constants()
{
    plan_builder b;
    const auto y = b.output<float>(8);
    for (const float value : {1.0f, 2.0f, 1.0f}) {
        const auto c = b.constant<float>(std::vector<float>(8, value));
        b.add(memory::copy<float>{.src = c, .dst = y});
    }
    return b.finish().value();
}

/// Plans of a set: two with a common state, and one with only a state of its own.
inline plan_set_description make_set()
{
    plan_set_builder set("s");
    const auto common = set.state<float>(8, "common");
    const auto own = set.state<float>(8, "own");
    set.plan("a").add(memory::fill<float>{.dst = common});
    set.plan("b").add(memory::fill<float>{.dst = common}).add(memory::fill<float>{.dst = own});
    set.plan("c").add(memory::fill<float>{.dst = set.state<float>(8)});
    return set.finish().value();
}

struct set_fixture : fixture {
    explicit set_fixture(plan_options how = {})
    {
        const auto description = make_set();
        const auto& data = *plan_set_access::data(description);
        common = std::make_shared<common_states>(data.users);
        for (const set_plan& p : data.plans) {
            all.push_back(std::make_shared<loaded_plan>(p, how, p.name == "c" ? nullptr : common));
            plans.add(all.back());
        }
    }

    std::shared_ptr<common_states> common;
    std::vector<std::shared_ptr<loaded_plan>> all;
};

} // namespace test::plan_lists

#endif
