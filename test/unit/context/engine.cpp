#include "posix/machine_limits.hpp"
#include "support/context_cases.hpp"
#include "support/host_world.hpp"

#include <coaccel/ops/blas/level3_lists.hpp>
#include <coaccel/ops/blas/matmul.hpp>

// The conformance suite on the CPU, and cases that only the host backend can show.
namespace {

using namespace std::chrono_literals;

/// An op that uses x and ends when the gate is opened.
struct gated {
    gated(context_world& w, ref<float> x) : op(hold_lane{&w, gate}, std::tuple(inout<float>(x))) {}

    test::gate gate;
    hold<inout<float>> op;
};

test::host_world& as_host(context_world& w)
{
    return static_cast<test::host_world&>(w);
}

} // namespace

std::vector<test::context_setting> test::contexts_under_test()
{
    std::vector<context_setting> all;
    for (const auto& [name, options] : context_variants()) {
        for (const auto mode : {host_mode::pool, host_mode::inline_}) {
            const bool pool = mode == host_mode::pool;
            all.push_back({name + (pool ? ", pool" : ", inline"), pool, [=, options = options] {
                               auto made = std::make_unique<host_world>();
                               made->context = options;
                               made->host.mode = mode;
                               made->host.threads = 3;
                               return made;
                           }});
        }
    }
    return all;
}

TEST_SUITE_BEGIN("engine");

TEST_CASE("a fault waits for ops that still use the caller's memory")
{
    for_each_context(
        [](context_world& w) {
            context_driver d(w);
            const auto x = d.floats(4);
            const auto y = d.floats(4);
            test::gate gate;
            hold<inout<float>> inside(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
            inside.options.lane = 0;
            d.submit(inside);
            gate.wait_for(1);
            w.poison();
            exec_options other;
            other.lane = 1;
            exec<memory::fill<float>> fatal(memory::fill<float>{y, 1.0f}, other);
            d.submit(fatal);
            d.run_until([&] { return !d.context->accepting(); });
            CHECK_FALSE(d.has_ended(inside));
            CHECK(d.losses == 0);
            gate.open();
            d.run_until([&] { return d.losses > 0; });
            CHECK(d.outcome(inside) == errc::context_lost);
            CHECK(d.outcome(fatal) == errc::context_lost);
        },
        true);
}

TEST_CASE("an op waits for its optional operands only if they have a buffer")
{
    for_each_context(
        [](context_world& w) {
            context_driver d(w);
            const auto a = d.floats(4), out = d.floats(4), x = d.floats(4);
            d.write(a, {1, 2, 3, 4});
            d.write(x, {10, 20, 30, 40});
            gated before(w, x);
            before.op.options.lane = 0;
            d.submit(before.op);
            before.gate.wait_for(1);
            blas::matmul<float> product{.a = a, .b = a, .d = out, .m = 2, .n = 2, .k = 2};
            exec_options other;
            other.lane = 1;
            exec<blas::matmul<float>> plain(product, other);
            d.submit(plain);
            d.run_until([&] { return d.has_ended(plain); });
            CHECK_FALSE(d.outcome(plain));
            CHECK_FALSE(d.has_ended(before.op));
            CHECK(d.read(out) == std::vector<float>{7, 10, 15, 22});
            product.bias = x.first(2);
            exec<blas::matmul<float>> biased(product, other);
            d.submit(biased);
            (void)d.context->turn(clock::now());
            CHECK_FALSE(d.has_ended(biased));
            before.gate.open();
            d.run_until([&] { return d.has_ended(biased) && d.has_ended(before.op); });
            CHECK_FALSE(d.outcome(biased));
            CHECK(d.read(out) == std::vector<float>{17, 30, 25, 42});
        },
        true);
}

TEST_CASE("an optional operand that is written is ordered with later uses, and one without a buffer with nothing")
{
    for_each_context(
        [](context_world& w) {
            using op_type = blas::matmul<float8_e4m3, float8_e4m3>;
            context_driver d(w);
            const auto on_lane = [](int lane) {
                exec_options how;
                how.lane = lane;
                return how;
            };
            const auto matrix = [&] { return ref<float8_e4m3>::from_raw(d.allocate(256, dtype_v<float8_e4m3>)); };
            const auto a = matrix(), out = matrix();
            const auto most = d.floats(1), scale = d.floats(1), other = d.floats(1);
            exec<memory::fill<float8_e4m3>> ones(memory::fill<float8_e4m3>{a, float8_e4m3(1.0f)}, exec_options{});
            REQUIRE_FALSE(d.outcome_of(ones));
            d.write(scale, {1});
            op_type product{
                .a = a, .b = a, .d = out, .scale_a = scale, .m = 16, .n = 16, .k = 16, .trans_a = blas::transpose::yes};

            // The product waits for its scale, and the fill for the product.
            gated first(w, scale);
            first.op.options.lane = 0;
            d.submit(first.op);
            first.gate.wait_for(1);
            product.amax_d = most;
            exec<op_type> measured(product, on_lane(1));
            exec<memory::fill<float>> again(memory::fill<float>{most, -1.0f}, on_lane(2));
            exec<memory::fill<float>> unrelated(memory::fill<float>{other, 1.0f}, on_lane(3));
            d.submit(measured);
            d.submit(again);
            d.submit(unrelated);
            d.run_until([&] { return d.has_ended(unrelated); });
            CHECK_FALSE(d.has_ended(measured));
            CHECK_FALSE(d.has_ended(again));
            first.gate.open();
            d.run_until([&] { return d.has_ended(first.op) && d.has_ended(measured) && d.has_ended(again); });
            CHECK_FALSE(d.outcome(measured));
            CHECK_FALSE(d.outcome(again));
            CHECK(d.read(most) == std::vector<float>{-1});

            gated second(w, scale);
            second.op.options.lane = 0;
            d.submit(second.op);
            second.gate.wait_for(1);
            product.amax_d = {};
            exec<op_type> plain(product, on_lane(1));
            exec<memory::fill<float>> beside(memory::fill<float>{most, 2.0f}, on_lane(2));
            d.submit(plain);
            d.submit(beside);
            d.run_until([&] { return d.has_ended(beside); });
            CHECK_FALSE(d.has_ended(plain));
            second.gate.open();
            d.run_until([&] { return d.has_ended(second.op) && d.has_ended(plain); });
            CHECK_FALSE(d.outcome(plain));
            CHECK(d.read(most) == std::vector<float>{2});
        },
        true);
}

TEST_CASE("an optional operand that is empty or invalid is refused as any other")
{
    for_each_context([](context_world& w) {
        context_driver d(w);
        const auto a = d.floats(4), out = d.floats(4);
        d.write(out, {1, 2, 3, 4});
        const blas::matmul<float> good{.a = a, .b = a, .d = out, .m = 2, .n = 2, .k = 2};
        const auto refused = [&](auto change, errc code, const char* message) {
            auto op = good;
            change(op);
            exec<blas::matmul<float>> r(op, exec_options{});
            d.submit(r);
            const auto ec = d.outcome(r);
            CHECK(ec == code);
            CHECK(ec.message() == message);
            d.ended.erase(&r);
        };
        using op = blas::matmul<float>;
        refused([](op& o) { o.bias = buffer<float>(); }, errc::out_of_bounds,
                "blas.matmul: bias has 0 elements, needs 2");
        refused([](op& o) { o.c.raw = {.size = 4, .type = dtype::f32}; }, errc::invalid_argument,
                "blas.matmul: c names no buffer");
        refused([&](op& o) { o.c = a, o.c.raw.device = 8; }, errc::wrong_device,
                "blas.matmul: c belongs to another device");
        refused([&](op& o) { o.c = a, ++o.c.raw.version; }, errc::released_ref,
                "blas.matmul: the buffer of c has been released");
        refused([&](op& o) { o.c = out; }, errc::overlap, "blas.matmul: d and c overlap");
        // Only optional operands may be absent.
        refused([](op& o) { o.b.raw = {.slot = any_ref::no_slot, .size = 4, .type = dtype::f32}; },
                errc::invalid_argument, "blas.matmul: b names no buffer");
        CHECK(d.read(out) == std::vector<float>{1, 2, 3, 4});
        exec<op> r(good, exec_options{});
        CHECK_FALSE(d.outcome_of(r));
    });
}

TEST_CASE("elements of a list that have elements but no buffer are refused, not compared")
{
    for_each_context([](context_world& w) {
        using op = blas::gemm_batched<float>;
        context_driver d(w);
        const auto a = d.floats(4);
        op list{.m = 2, .n = 2, .k = 2};
        list.add(a, a, d.floats(4));
        list.c[1] = list.c[2] = ref<float>::from_raw({.slot = any_ref::no_slot, .size = 4, .type = dtype::f32});
        exec<op> r(list, exec_options{});
        const auto ec = d.outcome_of(r);
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message() == "blas.gemm_batched: product 1 has a buffer, but count is 1");
    });
}

TEST_CASE("an op that hangs condemns its context when hang_timeout is set")
{
    for_each_context(
        [](context_world& w) {
            w.context.hang_timeout = 20ms;
            context_driver d(w);
            const auto x = d.floats(4);
            as_host(w).injector.hang();
            exec<memory::fill<float>> r(memory::fill<float>{x, 1.0f}, exec_options{});
            d.submit(r);
            d.run_until([&] { return d.losses > 0; });
            CHECK(d.outcome(r) == errc::context_lost);
        },
        true);
}

TEST_CASE("a hung op is detected even if a later op on its lane depends on it through another lane")
{
    for_each_context(
        [](context_world& w) {
            w.context.hang_timeout = 20ms;
            context_driver d(w);
            const auto x = d.floats(4);
            const auto y = d.floats(4);
            const auto z = d.floats(4);
            test::gate gate;
            hold<inout<float>> hung(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
            exec<memory::copy<float>> elsewhere(memory::copy<float>{x, y}, exec_options{});
            exec<memory::copy<float>> behind(memory::copy<float>{y, z}, exec_options{});
            hung.options.lane = behind.options.lane = 0;
            elsewhere.options.lane = 1;
            d.submit(hung);
            d.submit(elsewhere);
            d.submit(behind);
            d.run_until([&] { return !d.context->accepting(); });
            gate.open();
            d.run_until([&] { return d.losses > 0; });
            CHECK(d.outcome(hung) == errc::context_lost);
        },
        true);
}

// Uses simulated time points, not the clock.
TEST_CASE("waiting behind another op does not count as a hang")
{
    for_each_context(
        [](context_world& w) {
            w.context.hang_timeout = 20ms;
            context_driver d(w);
            const auto x = d.floats(4);
            const auto y = d.floats(4);
            test::gate first, second;
            hold<inout<float>> a(hold_lane{&w, first}, std::tuple(inout<float>(x)));
            hold<inout<float>> b(hold_lane{&w, second}, std::tuple(inout<float>(x)));
            exec<memory::copy<float>> elsewhere(memory::copy<float>{x, y}, exec_options{});
            a.options.lane = b.options.lane = 0;
            elsewhere.options.lane = 1;
            const auto start = clock::now();
            for (detail::request* r : {static_cast<detail::request*>(&a), static_cast<detail::request*>(&b),
                                       static_cast<detail::request*>(&elsewhere)})
                d.context->submit(*r, start);
            first.wait_for(1);
            for (auto at = 0ms; at <= 15ms; at += 5ms)
                (void)d.context->turn(start + at);
            first.open();
            while (!d.has_ended(a))
                (void)d.context->turn(start + 15ms);
            for (auto at = 15ms; at <= 30ms; at += 5ms)
                (void)d.context->turn(start + at);
            CHECK(d.losses == 0);
            CHECK(d.context->accepting());
            // Now it hangs.
            for (auto at = 30ms; at <= 60ms; at += 5ms)
                (void)d.context->turn(start + at);
            CHECK_FALSE(d.context->accepting());
            second.open();
            d.run_until([&] { return d.losses > 0; });
            CHECK_FALSE(d.outcome(a));
            CHECK(d.outcome(b) == errc::context_lost);
            CHECK(d.outcome(elsewhere) == errc::context_lost);
        },
        true);
}

TEST_CASE("a turn with a time budget polls until an op has ended, and requests no needless turn")
{
    for_each_context(
        [](context_world& w) {
            if (w.context.completion != completion::polled)
                return;
            context_driver d(w);
            const auto x = d.floats(1024);
            test::gate first, second;
            hold<in<float>> a(hold_lane{&w, first}, std::tuple(in<float>(x)));
            hold<in<float>> b(hold_lane{&w, second}, std::tuple(in<float>(x)));
            a.options.lane = 0;
            b.options.lane = 1;
            d.submit(a);
            d.submit(b);
            first.wait_for(1);
            second.wait_for(1);
            // Two lanes use it, so it is freed only when both have completed.
            d.context->release(x.raw());
            const auto used = d.context->memory().used;
            auto began = clock::now();
            CHECK(d.context->turn(began).when == next_turn::kind::again);
            CHECK(d.context->turn(began, 2ms).when == next_turn::kind::again);
            CHECK(clock::now() - began >= 2ms);
            d.more = [&first] {
                first.open();
                return false;
            };
            CHECK(d.context->turn(clock::now(), 60s).when == next_turn::kind::again);
            CHECK(d.has_ended(a));
            CHECK(a.ended >= began + 2ms);
            CHECK_FALSE(d.has_ended(b));
            CHECK(d.context->memory().used == used);
            second.open();
            CHECK(d.context->turn(clock::now(), 60s).when == next_turn::kind::idle);
            CHECK(d.has_ended(b));
            CHECK(d.context->memory().used < used);
        },
        true);
}

TEST_CASE("a turn does not poll when an op has already ended")
{
    for_each_context(
        [](context_world& w) {
            context_driver d(w);
            const auto x = d.floats(4);
            exec<memory::fill<float>> quick(memory::fill<float>{x, 1.0f}, exec_options{});
            gated behind(w, x);
            quick.options.lane = behind.op.options.lane = 0;
            d.submit(quick);
            d.submit(behind.op);
            // By then the previous op on the lane has completed.
            behind.gate.wait_for(1);
            const auto began = clock::now();
            (void)d.context->turn(began, 60s);
            CHECK(clock::now() - began < 30s);
            CHECK(d.has_ended(quick));
            CHECK_FALSE(d.has_ended(behind.op));
            behind.gate.open();
            d.run_until([&] { return d.has_ended(behind.op); });
        },
        true);
}

// Uses simulated time points, not the clock.
TEST_CASE("a delayed turn does not change the estimate of an op's duration")
{
    for_each_context(
        [](context_world& w) {
            // On a single CPU it does not poll.
            if (w.context.completion != completion::adaptive || detail::usable_cpus() == 1)
                return;
            context_driver d(w);
            const auto x = d.floats(4);
            auto start = clock::now();
            const auto run = [&](clock::duration seen_after) {
                start += 1s;
                gated one(w, x);
                d.context->submit(one.op, start);
                (void)d.context->turn(start);
                one.gate.open();
                while (!d.has_ended(one.op))
                    (void)d.context->turn(start + seen_after);
                d.ended.clear();
            };
            for (int i = 0; i < 8; ++i)
                run(10us);
            run(10ms);
            start += 1s;
            gated next(w, x);
            d.context->submit(next.op, start);
            (void)d.context->turn(start);
            // The spin budget is used up, but the op is expected to complete soon.
            CHECK(d.context->turn(start + 25us).when == next_turn::kind::again);
            next.gate.open();
            d.run_until([&] { return d.has_ended(next.op); });
        },
        true);
}

TEST_CASE("a turn does not poll when there is more to do")
{
    for_each_context(
        [](context_world& w) {
            context_driver d(w);
            const auto x = d.floats(4);
            gated one(w, x);
            d.submit(one.op);
            d.more = [] { return true; };
            const auto now = clock::now();
            (void)d.context->turn(now, 60s);
            CHECK(clock::now() - now < 30s);
            CHECK_FALSE(d.has_ended(one.op));
            one.gate.open();
            d.run_until([&] { return d.has_ended(one.op); });
        },
        true);
}

TEST_CASE("ops on the two halves of a buffer run at the same time, and ops on one half do not")
{
    for_each_context(
        [](context_world& w) {
            context_driver d(w);
            const auto x = d.floats(8);
            test::gate gate;
            hold<inout<float>> lower(hold_lane{&w, gate}, std::tuple(inout<float>(x.subspan(0, 4))));
            hold<inout<float>> upper(hold_lane{&w, gate}, std::tuple(inout<float>(x.subspan(4, 4))));
            lower.options.lane = 0;
            upper.options.lane = 1;
            d.submit(lower);
            d.submit(upper);
            // Both ops are running; neither has completed.
            gate.wait_for(2);
            test::gate third;
            hold<inout<float>> across(hold_lane{&w, third}, std::tuple(inout<float>(x.subspan(3, 2))));
            exec<memory::fill<float>> again(memory::fill<float>{x.subspan(4, 4), 1.0f}, exec_options{.lane = 3});
            across.options.lane = 2;
            d.submit(across);
            d.submit(again);
            for (int i = 0; i < 10; ++i)
                (void)d.context->turn(clock::now());
            CHECK(d.ended.size() == 0);
            gate.open();
            third.wait_for(1);
            d.run_until([&] { return d.has_ended(lower) && d.has_ended(upper); });
            CHECK_FALSE(d.has_ended(again));
            third.open();
            d.run_until([&] { return d.has_ended(across) && d.has_ended(again); });
        },
        true);
}

TEST_CASE("memory cached for other sizes does not cause out of memory")
{
    for_each_context([](context_world& w) {
        as_host(w).host.memory_limit = 4096;
        context_driver d(w);
        // After the release these blocks stay cached in a size that the next allocation cannot use.
        for (int i = 0; i < 3; ++i)
            d.context->release(d.allocate(256));
        d.context->turn(clock::now());
        const auto large = d.allocate(1000);
        test::allocate_request more(1000);
        CHECK(d.outcome_of(more) == errc::out_of_memory);
        d.context->release(large);
    });
}

TEST_SUITE_END();
