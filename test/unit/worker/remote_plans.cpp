#include "../jit/support.hpp"
#include "plan_samples.hpp"
#include "remote_plan_fixture.hpp"

#include <coaccel/ops/jit/launch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace test_worker_remote_plans {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::plan_data;
using fixture = test::remote_plan_fixture;
using test::exec;
using test::load_request;

} // namespace

TEST_SUITE_BEGIN("remote_plans");

TEST_CASE("a plan is sent once, and each load is one message")
{
    fixture f;
    const auto plan = test::sample_plan();
    const auto refs = f.buffers(*plan);
    load_request first({.instance = 1, .chain = 4, .plan = plan.get()}, refs);
    load_request second({.instance = 2, .chain = 5, .plan = plan.get()}, refs);
    f.driver.submit(first);
    f.driver.submit(second);
    const auto sent = f.take_plan();
    CHECK(sent.total == test::encoded(*plan).size());
    CHECK(std::ranges::equal(sent.part, test::encoded(*plan)));
    const auto number = sent.number;
    const auto one = f.take_load();
    CHECK(one.plan == number);
    CHECK(one.instance == 1);
    CHECK(one.chain == 4);
    CHECK(one.refs == refs);
    const auto two = f.take_load();
    CHECK(two.plan == number);
    CHECK(two.instance == 2);
    CHECK(two.chain == 5);
    f.answer_load(two.head.id, 0);
    f.answer_load(one.head.id, 1);
    CHECK_FALSE(f.driver.outcome(first));
    CHECK_FALSE(f.driver.outcome(second));
    CHECK(first.reply.recorded == 1);
    CHECK(second.reply.recorded == 0);
    CHECK(f.silent());
}

TEST_CASE("another worker gets the plan again")
{
    const auto plan = test::sample_plan();
    for (int i = 0; i < 2; ++i) {
        fixture f;
        (void)f.load(*plan);
    }
}

TEST_CASE("an unload is one message, and the last one lets the worker forget the plan")
{
    fixture f;
    const auto plan = test::sample_plan();
    (void)f.load(*plan);
    exec<detail::plan_unload_op> unload(detail::plan_unload_op{.instance = 1, .chain = 1}, exec_options{});
    f.driver.submit(unload);
    const auto& s = f.next();
    REQUIRE(s.size == 1);
    CHECK(s.ops[0].id == info_of<detail::plan_unload_op>().id);
    const auto id = s.id;
    CHECK(f.silent());
    f.answer(id);
    CHECK_FALSE(f.driver.outcome(unload));
    auto in = f.take(message_type::forget_plan);
    std::uint64_t number = 0;
    REQUIRE((in.get(number) && in.at_end()));
    // From here on the address may be that of another plan.
    (void)f.load(*plan);
}

TEST_CASE("a failed load does not count as an instance")
{
    fixture f;
    const auto plan = test::sample_plan();
    const auto refs = f.buffers(*plan);
    load_request r({.instance = 1, .chain = 1, .plan = plan.get()}, refs);
    f.driver.submit(r);
    (void)f.take_plan();
    f.answer(f.take_load().head.id, errc::out_of_memory);
    CHECK(f.driver.outcome(r) == errc::out_of_memory);
    (void)f.take(message_type::forget_plan);
    CHECK(f.silent());
}

TEST_CASE("an impossible reply to a load ends the worker")
{
    fixture f;
    const auto plan = test::sample_plan();
    load_request r({.instance = 1, .chain = 1, .plan = plan.get()}, f.buffers(*plan));
    f.driver.submit(r);
    (void)f.take_plan();
    f.answer_load(f.take_load().head.id, 2);
    f.expect_loss(errc::worker_corrupted);
    CHECK(f.driver.outcome(r) == errc::context_lost);
}

TEST_CASE("a load with a buffer that does not exist is refused here")
{
    fixture f;
    const auto plan = test::sample_plan();
    auto refs = f.buffers(*plan);
    for (const auto change :
         {+[](any_ref& r) { ++r.version; }, +[](any_ref& r) { ++r.generation; },
          +[](any_ref& r) { r.type = dtype::f32; }, +[](any_ref& r) { r = {}; }, +[](any_ref& r) { ++r.size; }}) {
        auto wrong = refs;
        change(wrong[1]);
        load_request r({.instance = 1, .chain = 1, .plan = plan.get()}, wrong);
        CHECK(f.driver.outcome_of(r));
    }
    CHECK(f.silent());
}

TEST_CASE("the kernels of a plan are sent before it, once")
{
    fixture f({.backend = "cuda"});
    const auto k = test::make_kernel(jit::compile_options("scale"), "_Z5scalePKfPff", "code");
    plan_builder b;
    const auto x = b.input<float>(8);
    const auto y = b.output<float>(8);
    b.add(jit::launch(k, {{2}, {3}}, in<float>(x), out<float>(y), 1.5f));
    const auto plan = detail::plan_access::data(b.finish().value());
    const auto refs = f.buffers(*plan);
    load_request first({.instance = 1, .chain = 1, .plan = plan.get()}, refs);
    load_request second({.instance = 2, .chain = 1, .plan = plan.get()}, refs);
    f.driver.submit(first);
    f.driver.submit(second);
    image_frame image;
    auto in = f.take(message_type::image);
    REQUIRE(get_image(in, image));
    CHECK(image.id == k.id());
    (void)f.take_plan();
    (void)f.take_load();
    (void)f.take_load();
    CHECK(f.silent());
}

TEST_CASE("an op that cannot run in another process is named")
{
    fixture f({.backend = "host"});
    static op_info user;
    user.name = "user.submit";
    user.id = detail::user_op_id;
    user.size = sizeof(detail::user_op);
    plan_data plan = *test::sample_plan();
    plan.ops[3].info = &user;
    load_request r({.instance = 1, .chain = 1, .plan = &plan}, f.buffers(plan));
    const auto ec = f.driver.outcome_of(r);
    CHECK(ec == errc::not_isolatable);
    CHECK(ec.message().starts_with("user.submit: the function is code of this process"));

    const auto k = test::make_kernel(jit::compile_options("scale"), "_Z5scalePKfPff", "code");
    plan_builder b;
    const auto x = b.input<float>(8);
    const auto y = b.output<float>(8);
    b.add(jit::launch(k, {{2}, {3}}, in<float>(x), out<float>(y), 1.5f));
    const auto launches = detail::plan_access::data(b.finish().value());
    load_request gpu({.instance = 1, .chain = 1, .plan = launches.get()}, f.buffers(*launches));
    CHECK(f.driver.outcome_of(gpu) == errc::unsupported_op);
    CHECK(f.silent());
}

TEST_CASE("a plan with too many constants for one message is refused")
{
    fixture f;
    plan_data plan;
    for (std::uint32_t i = 0; i < 3000; ++i) {
        plan.slots.push_back({.name = {}, .kind = slot_kind::constant, .type = dtype::u8, .count = 1, .index = i});
        plan.constants.push_back(i);
        plan.constant_contents.push_back({.data = nullptr, .bytes = 1, .id = {}, .identity = {}});
    }
    const std::vector<any_ref> refs(3001, f.one(16));
    load_request r({.instance = 1, .chain = 1, .plan = &plan}, refs);
    f.driver.submit(r);
    const auto ec = f.driver.outcome(r);
    CHECK(ec == errc::invalid_argument);
    CHECK(ec.message().starts_with("plan.load: the plan has 3000 constants and states"));
}

TEST_SUITE_END();

} // namespace test_worker_remote_plans
