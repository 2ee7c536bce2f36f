#include "device/durable_state.hpp"

#include "device/plan_list.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

namespace test_device_durable_state {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

constexpr std::uint64_t bytes = 4 * sizeof(float);

plan_description plan_with(durable how)
{
    plan_builder b("p");
    const std::vector<float> initial{1, 2, 3, 4};
    b.add(memory::fill<float>{b.state<float>(initial, how), 1.0f});
    return b.finish().value();
}

/// A device with one plan, reduced to the requests for the plan.
struct fixture {
    explicit fixture(suspect_rule rule) : plan(std::make_shared<loaded_plan>(plan_with({rule}), plan_options{}))
    {
        plans.add(plan);
    }

    /// Does all requests, or all up to the first of this name, which is refused with this error. Returns their names.
    std::vector<std::string> run(const std::string& refused = {}, const error_code& ec = {})
    {
        std::vector<std::string> names;
        while (load_part* part = plans.next(sharing::yes)) {
            const bound_op& o = part->ops.front();
            names.push_back(o.info->name);
            const bool refuse = o.info->name == refused;
            if (!refuse && o.info->reply_size == sizeof(allocation))
                static_cast<allocation*>(o.reply)->ref = {.device = 1, .generation = 1, .slot = ++last, .size = bytes};
            if (!refuse && o.info->id == info_of<export_op>().id)
                *o.as<export_op>().to = std::make_shared<const exported_memory>(
                    exported_memory{unique_fd(), bytes, o.as<export_op>().access});
            const auto news = plans.finished(*part, refuse ? ec : error_code());
            error = news.error;
            if (refuse)
                break;
        }
        return names;
    }

    void lose(loss_cause cause)
    {
        (void)plans.forget_context();
        for (const auto& s : plan->durable_states)
            s->context_lost(cause);
    }

    durable_state& state() const { return *plan->durable_states.front(); }

    std::shared_ptr<loaded_plan> plan;
    plan_list plans;
    std::uint32_t last = 0;
    error_code error;
};

const std::vector<std::string> first_load{"memory.allocate",  "memory.allocate", "memory.allocate",
                                          "memory.write<u8>", "memory.export",   "plan.load"};
const std::vector<std::string> load_again{"memory.import", "memory.allocate", "memory.allocate", "plan.load"};
const std::vector<std::string> load_and_refill{"memory.import", "memory.allocate", "memory.allocate",
                                               "memory.write<u8>", "plan.load"};

} // namespace

TEST_SUITE_BEGIN("durable_state");

TEST_CASE("the rule decides only about a suspect state")
{
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail})
        CHECK(revival_of(rule, false) == state_revival::use);
    CHECK(revival_of(suspect_rule::keep, true) == state_revival::use);
    CHECK(revival_of(suspect_rule::reset, true) == state_revival::refill);
    CHECK(revival_of(suspect_rule::fail, true) == state_revival::refuse);
}

TEST_CASE("a state is filled once, for writers, and imported by later contexts")
{
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail}) {
        fixture f(rule);
        CHECK(f.run() == first_load);
        REQUIRE(f.state().memory);
        CHECK(f.state().memory->access == memory_access::read_write);
        CHECK(f.plans.durable_bytes() == bytes);
        for (int i = 0; i < 2; ++i) {
            f.lose(loss_cause::outside);
            CHECK(f.run() == load_again);
            CHECK_FALSE(f.plan->first_refused());
        }
    }
}

TEST_CASE("a suspect state is treated by its rule, and then no longer suspect unless runs are refused")
{
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail}) {
        CAPTURE(to_string(rule));
        fixture f(rule);
        (void)f.run();
        f.lose(loss_cause::fault);
        CHECK(f.state().trust.suspect());
        CHECK((f.plan->first_refused() != nullptr) == (rule == suspect_rule::fail));
        // A context that is lost on the way decides nothing.
        if (rule == suspect_rule::reset) {
            (void)f.run("memory.write<u8>", errc::context_lost);
            f.lose(loss_cause::outside);
            CHECK(f.state().trust.suspect());
        }
        CHECK(f.run() == (rule == suspect_rule::reset ? load_and_refill : load_again));
        CHECK(f.state().trust.suspect() == (rule == suspect_rule::fail));
    }
}

TEST_CASE("a state that cannot be durable is an error, not an ordinary state")
{
    for (const char* refused : {"memory.allocate", "memory.export"}) {
        fixture f(suspect_rule::keep);
        (void)f.run(refused, errc::unsupported_op);
        CHECK(f.plan->broken);
        CHECK(f.error == errc::unsupported_op);
        CHECK(f.plan->instances.empty());
    }
    fixture f(suspect_rule::keep);
    (void)f.run();
    f.lose(loss_cause::outside);
    (void)f.run("memory.import", errc::out_of_memory);
    CHECK(f.plan->broken);
    // The content waits for a context that can have it.
    REQUIRE(f.state().memory);
    f.lose(loss_cause::outside);
    CHECK(f.run() == load_again);
}

TEST_CASE("a plan that leaves the device frees its states, although its handles exist")
{
    fixture f(suspect_rule::keep);
    (void)f.run();
    const std::weak_ptr<const exported_memory> memory = f.state().memory;
    f.plan->pool.add(0);
    f.plan->closing = true;
    (void)f.run();
    CHECK(f.plan->gone);
    CHECK(memory.expired());
    CHECK(f.plans.durable_bytes() == 0);
}

TEST_SUITE_END();

} // namespace test_device_durable_state
