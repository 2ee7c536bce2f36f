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
            remade += news.remade ? 1 : 0;
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
    int remade = 0;
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
        CHECK(f.plan->first_refused().has_value() == (rule == suspect_rule::fail));
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

TEST_CASE("a state may have been written from the submission of its import on")
{
    fixture f(suspect_rule::fail);
    (void)f.run();
    f.lose(loss_cause::outside);
    // A context that could not import it has not written it.
    (void)f.run("memory.import", errc::out_of_memory);
    f.lose(loss_cause::fault);
    CHECK_FALSE(f.state().trust.suspect());
    (void)f.run("memory.import", errc::context_lost);
    f.lose(loss_cause::outside);
    CHECK_FALSE(f.state().trust.suspect());
    (void)f.run("memory.import", errc::context_lost);
    f.lose(loss_cause::fault);
    CHECK(f.state().trust.suspect());
}

TEST_CASE("a state whose memory is useless is made anew if its rule is reset")
{
    for (const bool suspect : {false, true}) {
        CAPTURE(suspect);
        fixture f(suspect_rule::reset);
        (void)f.run();
        const std::weak_ptr<const exported_memory> old = f.state().memory;
        f.lose(suspect ? loss_cause::fault : loss_cause::outside);
        CHECK(f.run("memory.import", errc::invalid_argument) == std::vector<std::string>{"memory.import"});
        CHECK(f.remade == 1);
        CHECK(old.expired());
        CHECK(f.run() == first_load);
        CHECK(f.state().memory);
        CHECK_FALSE(f.plan->broken);
        CHECK_FALSE(f.plan->first_refused());
        CHECK_FALSE(f.state().trust.suspect());
        f.lose(loss_cause::outside);
        CHECK(f.run() == load_again);
        CHECK(f.remade == 1);
    }
}

TEST_CASE("a context that is lost while it makes a state anew leaves that to the next one")
{
    fixture f(suspect_rule::reset);
    (void)f.run();
    f.lose(loss_cause::outside);
    (void)f.run("memory.import", errc::invalid_argument);
    (void)f.run("memory.export", errc::context_lost);
    f.lose(loss_cause::fault);
    CHECK_FALSE(f.state().memory);
    CHECK(f.run() == first_load);
    CHECK_FALSE(f.state().trust.suspect());
}

TEST_CASE("runs are refused while the memory of a state is useless, unless its rule is reset")
{
    for (const auto rule : {suspect_rule::keep, suspect_rule::fail}) {
        CAPTURE(to_string(rule));
        fixture f(rule);
        (void)f.run();
        f.lose(loss_cause::outside);
        (void)f.run("memory.import", errc::invalid_argument);
        CHECK(f.plan->broken);
        REQUIRE(f.plan->first_refused() == 0);
        CHECK(f.state().unusable.get() == errc::invalid_argument);
        REQUIRE(f.state().memory);
        // Another context may be able to use it.
        f.lose(loss_cause::outside);
        CHECK_FALSE(f.plan->first_refused());
        (void)f.run("memory.import", errc::invalid_argument);
        CHECK(f.plan->first_refused() == 0);
        // As plan::async_revive does.
        f.state().discard();
        f.plan->broken = {};
        CHECK(f.run() == first_load);
        CHECK_FALSE(f.plan->first_refused());
        f.lose(loss_cause::outside);
        CHECK(f.run() == load_again);
    }
}

TEST_CASE("a shortage in the context says nothing about the memory of a state")
{
    for (const auto why : {errc::out_of_memory, errc::unsupported_op})
        for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail}) {
            fixture f(rule);
            (void)f.run();
            f.lose(loss_cause::outside);
            (void)f.run("memory.import", why);
            CHECK(f.plan->broken);
            CHECK(f.error == why);
            CHECK_FALSE(f.plan->first_refused());
            REQUIRE(f.state().memory);
            f.plan->broken = {};
            CHECK(f.run() == load_again);
            CHECK(f.remade == 0);
        }
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
