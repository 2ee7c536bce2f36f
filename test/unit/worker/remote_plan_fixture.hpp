#ifndef COACCEL_TEST_UNIT_WORKER_REMOTE_PLAN_FIXTURE_HPP
#define COACCEL_TEST_UNIT_WORKER_REMOTE_PLAN_FIXTURE_HPP

#include "fake_worker.hpp"
#include "support/plan_context.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <vector>

namespace test {

/// A context in a worker process, whose part the test plays.
struct remote_plan_fixture : remote_fixture {
    using remote_fixture::remote_fixture;

    /// Buffers for an instance, which the worker has made.
    std::vector<coaccel::any_ref> buffers(const coaccel::detail::plan_data& p)
    {
        std::vector<coaccel::any_ref> made{one(p.instance_bytes)};
        for (const auto* kind : {&p.constants, &p.states, &p.states})
            for (const auto i : *kind)
                made.push_back(one(p.slots[i].bytes()));
        return made;
    }

    coaccel::any_ref one(std::uint64_t bytes)
    {
        const coaccel::any_ref r = buffer(next_slot++, bytes, coaccel::dtype::u8);
        make_buffers(driver, world.worker, {r});
        return r;
    }

    /// The next record, which must be of this type.
    coaccel::worker::decoder take(coaccel::worker::message_type expected)
    {
        record.clear();
        driver.run_until([&] {
            if (record.empty())
                record = world.worker.take();
            return !record.empty();
        });
        coaccel::worker::decoder in(record);
        coaccel::worker::message_type what{};
        REQUIRE(in.get(what, coaccel::worker::message_type::adopt, coaccel::worker::message_type::export_memory));
        REQUIRE(int(what) == int(expected));
        return in;
    }

    coaccel::worker::plan_frame take_plan()
    {
        coaccel::worker::plan_frame f;
        auto in = take(coaccel::worker::message_type::plan);
        REQUIRE(coaccel::worker::get_plan(in, f));
        return f;
    }

    coaccel::worker::load_frame take_load()
    {
        coaccel::worker::load_frame f;
        auto in = take(coaccel::worker::message_type::load);
        REQUIRE(coaccel::worker::get_load(in, f));
        return f;
    }

    coaccel::worker::run_frame take_run()
    {
        coaccel::worker::run_frame f;
        auto in = take(coaccel::worker::message_type::run);
        REQUIRE(coaccel::worker::get_run(in, f));
        return f;
    }

    void answer_load(std::uint64_t id, std::uint8_t recorded = 1)
    {
        answer(id, {}, std::as_bytes(std::span(&recorded, 1)));
    }

    /// Loads instance 1 of the plan.
    std::vector<coaccel::any_ref> load(const coaccel::detail::plan_data& p)
    {
        const auto refs = buffers(p);
        load_request r({.instance = 1, .chain = 1, .plan = &p}, refs);
        driver.submit(r);
        (void)take_plan();
        answer_load(take_load().head.id);
        REQUIRE_FALSE(driver.outcome(r));
        driver.ended.clear();
        return refs;
    }

    bool has_all_memory()
    {
        const auto all = world.memory->take(world.memory->bytes());
        if (all)
            world.memory->give_back(*all);
        return all.has_value();
    }

    std::uint32_t next_slot = 3;
};

/// A run with one input and one output of this size.
struct small_run {
    small_run(const coaccel::any_ref& memory, std::uint64_t bytes = 16, std::uint64_t chain = 1) : x(bytes), y(bytes)
    {
        std::memset(x.data(), 5, bytes);
        in = {x.data(), {0, bytes}};
        out = {y.data(), {256, bytes}};
        coaccel::detail::plan_run_op op;
        op.memory = coaccel::ref<std::uint8_t>::from_raw(memory);
        op.instance = 1;
        op.chain = chain;
        op.inputs = &in;
        op.outputs = &out;
        op.input_count = op.output_count = 1;
        request.emplace(op, coaccel::exec_options{});
    }

    std::vector<std::byte> x, y;
    coaccel::detail::run_argument in, out;
    std::optional<exec<coaccel::detail::plan_run_op>> request;
};

} // namespace test

#endif
