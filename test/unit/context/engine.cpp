#include "host/factory.hpp"
#include "support/gate.hpp"

#include <coaccel/detail/buffer_requests.hpp>
#include <coaccel/detail/exec_requests.hpp>
#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

// One conformance suite for every completion strategy, lane policy and host mode. The engine is driven
// by hand, without a device or an executor.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using detail::clock;
using detail::next_turn;

template <class Request>
class manual final : public Request {
public:
    template <class... Args>
    explicit manual(Args&&... args) : Request(detail::core_ptr(), static_cast<Args&&>(args)...)
    {}

    void post() override {}
    void destroy() noexcept override {}
};

template <class Op>
using exec = manual<detail::exec_request<Op>>;

template <class... Operands>
using hold = manual<detail::submit_request<test::gate_op, Operands...>>;

class allocate_request final : public detail::request {
public:
    explicit allocate_request(std::uint64_t count, dtype type = dtype::f32) : op_{count, type}
    {
        bound_ = {.info = &info_of<detail::allocate_op>(), .op = &op_, .reply = &made};
        ops = {&bound_, 1};
    }

    void post() override {}
    void destroy() noexcept override {}

    any_ref made;

private:
    detail::allocate_op op_;
    bound_op bound_;
};

class driver final : public detail::context_events {
public:
    driver(const host_options& host, const context_options& options)
    {
        auto made = host::make_factory(host)({device, generation}, *this, options);
        REQUIRE(made);
        context = std::move(made).value();
    }

    void finished(detail::request& r, error_code ec) noexcept override { ended[&r].push_back(ec); }

    void lost(error_code why) noexcept override
    {
        ++losses;
        reason = why;
    }

    void wake() noexcept override
    {
        const std::scoped_lock lock(mutex_);
        woken_ = true;
        changed_.notify_one();
    }

    void submit(detail::request& r) { context->submit(r, clock::now()); }

    template <class Done>
    void run_until(Done done)
    {
        const auto end = clock::now() + 60s;
        while (!done()) {
            REQUIRE(clock::now() < end);
            const auto next = context->turn(clock::now());
            if (next.when == next_turn::kind::again || done())
                continue;
            std::unique_lock lock(mutex_);
            // What is idle wakes nobody; the bound keeps a wrong `idle` from looking like a hang.
            const auto until = next.when == next_turn::kind::sleep ? std::min(next.at, end) : clock::now() + 1ms;
            changed_.wait_until(lock, until, [this] { return woken_; });
            woken_ = false;
        }
    }

    void run(detail::request& r)
    {
        submit(r);
        run_until([&] { return !ended[&r].empty(); });
    }

    error_code outcome(detail::request& r)
    {
        REQUIRE(ended[&r].size() == 1);
        return ended[&r].front();
    }

    any_ref allocate(std::uint64_t count, dtype type = dtype::f32)
    {
        allocate_request r(count, type);
        run(r);
        REQUIRE_FALSE(outcome(r));
        ended.erase(&r);
        return r.made;
    }

    ref<float> floats(std::uint64_t count) { return ref<float>::from_raw(allocate(count)); }

    std::vector<float> read(ref<float> source)
    {
        std::vector<float> data(source.size());
        exec<detail::read_op<float>> r(detail::read_op<float>{source, data.data(), data.size()}, exec_options{});
        run(r);
        REQUIRE_FALSE(outcome(r));
        ended.erase(&r);
        return data;
    }

    static constexpr std::uint32_t device = 7;
    static constexpr std::uint32_t generation = 3;

    std::map<detail::request*, std::vector<error_code>> ended;
    int losses = 0;
    error_code reason;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool woken_ = false;

public:
    // Last, because its threads use all of the above until it is gone.
    std::unique_ptr<detail::context> context;
};

struct setting {
    std::string name;
    host_options host;
    context_options context;
};

std::vector<setting> settings(bool threads_only)
{
    const std::array<std::pair<const char*, completion>, 4> strategies{{{"adaptive", completion::adaptive},
                                                                        {"host_fn", completion::host_fn},
                                                                        {"polled", completion::polled},
                                                                        {"sync", completion::sync}}};
    const std::array<std::pair<const char*, lane_policy>, 3> policies{{{"per_library", lane_policy::per_library()},
                                                                       {"single", lane_policy::single()},
                                                                       {"pooled", lane_policy::pooled(3)}}};
    std::vector<setting> all;
    for (const auto& [strategy_name, strategy] : strategies) {
        for (const auto& [policy_name, policy] : policies) {
            for (const auto mode : {host_mode::pool, host_mode::in_turn}) {
                if (threads_only && mode == host_mode::in_turn)
                    continue;
                setting s;
                s.name = std::string(strategy_name) + ", " + policy_name +
                         (mode == host_mode::pool ? ", pool" : ", in turn");
                s.host.mode = mode;
                s.host.threads = 3;
                s.context.completion = strategy;
                s.context.lanes = policy;
                s.context.monitor_interval = 5ms;
                all.push_back(std::move(s));
            }
        }
    }
    return all;
}

template <class Test>
void for_each_setting(Test test, bool threads_only = false)
{
    for (const auto& s : settings(threads_only)) {
        CAPTURE(s.name);
        test(s);
    }
}

TEST_SUITE_BEGIN("engine");

TEST_CASE("an op ends once, with its reply")
{
    for_each_setting([](const setting& s) {
        driver d(s.host, s.context);
        const auto x = d.floats(5);
        exec<memory::fill<float>> fill(memory::fill<float>{x, 3.0f}, exec_options{});
        exec<blas::dot<float>> dot(blas::dot<float>{x, x, 5}, exec_options{});
        d.submit(fill);
        d.submit(dot);
        d.run_until([&] { return d.ended[&fill].size() + d.ended[&dot].size() >= 2; });
        CHECK_FALSE(d.outcome(fill));
        CHECK_FALSE(d.outcome(dot));
        dot.ec = {};
        CHECK(std::get<1>(dot.take()) == 45.0f);
        CHECK(d.context->turn(clock::now()).when == next_turn::kind::idle);
    });
}

TEST_CASE("random op graphs give what running them one after another gives")
{
    for_each_setting([](const setting& s) {
        driver d(s.host, s.context);
        std::mt19937 random(20261);
        constexpr std::size_t buffers = 6;
        constexpr std::size_t length = 64;
        std::vector<ref<float>> device;
        std::vector<std::vector<float>> model(buffers, std::vector<float>(length, 0.0f));
        for (std::size_t i = 0; i < buffers; ++i)
            device.push_back(d.floats(length));
        std::vector<std::unique_ptr<exec<memory::fill<float>>>> fills;
        std::vector<std::unique_ptr<exec<memory::copy<float>>>> copies;
        std::vector<std::unique_ptr<exec<blas::axpy<float>>>> sums;
        std::vector<detail::request*> all;
        auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
        for (std::size_t i = 0; i < buffers; ++i) {
            fills.push_back(std::make_unique<exec<memory::fill<float>>>(
                memory::fill<float>{device[i], static_cast<float>(i)}, exec_options{}));
            model[i].assign(length, static_cast<float>(i));
            all.push_back(fills.back().get());
        }
        for (int n = 0; n < 200; ++n) {
            const auto from = pick(buffers);
            const auto to = (from + 1 + pick(buffers - 1)) % buffers;
            exec_options how;
            how.priority = static_cast<priority>(pick(3));
            if (pick(4) == 0)
                how.lane = static_cast<int>(pick(4));
            switch (pick(3)) {
            case 0: {
                const auto value = static_cast<float>(pick(7));
                fills.push_back(
                    std::make_unique<exec<memory::fill<float>>>(memory::fill<float>{device[to], value}, how));
                model[to].assign(length, value);
                all.push_back(fills.back().get());
                break;
            }
            case 1:
                copies.push_back(
                    std::make_unique<exec<memory::copy<float>>>(memory::copy<float>{device[from], device[to]}, how));
                model[to] = model[from];
                all.push_back(copies.back().get());
                break;
            default:
                sums.push_back(std::make_unique<exec<blas::axpy<float>>>(
                    blas::axpy<float>{.x = device[from], .y = device[to], .n = length, .alpha = 0.5f}, how));
                for (std::size_t i = 0; i < length; ++i)
                    model[to][i] += 0.5f * model[from][i];
                all.push_back(sums.back().get());
            }
        }
        for (auto* r : all)
            d.submit(*r);
        d.run_until([&] { return d.ended.size() == all.size(); });
        for (auto* r : all)
            CHECK_FALSE(d.outcome(*r));
        d.ended.clear();
        for (std::size_t i = 0; i < buffers; ++i)
            CHECK(d.read(device[i]) == model[i]);
    });
}

TEST_CASE("a short op ends while a long one runs on another lane")
{
    for_each_setting(
        [](const setting& s) {
            driver d(s.host, s.context);
            const auto x = d.floats(4);
            const auto y = d.floats(4);
            test::gate gate;
            hold<inout<float>> longer(test::gate_op{&gate}, std::tuple(inout<float>(x)));
            longer.options.lane = 0;
            exec_options other;
            other.lane = 1;
            exec<memory::fill<float>> shorter(memory::fill<float>{y, 1.0f}, other);
            d.submit(longer);
            gate.wait_for(1);
            d.submit(shorter);
            d.run_until([&] { return !d.ended[&shorter].empty(); });
            CHECK(d.ended[&longer].empty());
            gate.open();
            d.run_until([&] { return !d.ended[&longer].empty(); });
            CHECK_FALSE(d.outcome(longer));
        },
        true);
}

TEST_CASE("a fault ends every outstanding op once, and only then the context")
{
    for_each_setting([](setting s) {
        s.host.faults.poison_at = 3;
        driver d(s.host, s.context);
        const auto x = d.floats(4);
        std::vector<std::unique_ptr<exec<memory::fill<float>>>> all;
        for (int i = 0; i < 40; ++i)
            all.push_back(std::make_unique<exec<memory::fill<float>>>(memory::fill<float>{x, 1.0f}, exec_options{}));
        for (auto& r : all)
            d.submit(*r);
        d.run_until([&] { return d.losses > 0; });
        int fine = 0;
        for (auto& r : all) {
            const auto ec = d.outcome(*r);
            fine += !ec;
            if (ec)
                CHECK(ec == errc::context_lost);
        }
        CHECK(fine <= 2);
        CHECK(d.losses == 1);
        CHECK(d.reason == fault::context_lost);
        CHECK_FALSE(d.context->accepting());
        CHECK(d.context->turn(clock::now()).when == next_turn::kind::idle);
        CHECK(d.losses == 1);
    });
}

TEST_CASE("a fault waits for ops that still use the caller's memory")
{
    for_each_setting(
        [](const setting& s) {
            setting armed = s;
            fault_injector injector;
            armed.host.injector = &injector;
            driver d(armed.host, armed.context);
            const auto x = d.floats(4);
            const auto y = d.floats(4);
            test::gate gate;
            hold<inout<float>> inside(test::gate_op{&gate}, std::tuple(inout<float>(x)));
            inside.options.lane = 0;
            d.submit(inside);
            gate.wait_for(1);
            injector.poison();
            exec_options other;
            other.lane = 1;
            exec<memory::fill<float>> fatal(memory::fill<float>{y, 1.0f}, other);
            d.submit(fatal);
            d.run_until([&] { return !d.context->accepting(); });
            CHECK(d.ended[&inside].empty());
            CHECK(d.losses == 0);
            gate.open();
            d.run_until([&] { return d.losses > 0; });
            CHECK(d.outcome(inside) == errc::context_lost);
            CHECK(d.outcome(fatal) == errc::context_lost);
        },
        true);
}

TEST_CASE("an op that hangs condemns its context when the timeout is set")
{
    for_each_setting(
        [](setting s) {
            s.host.faults.hang_at = 1;
            s.context.hang_timeout = 20ms;
            driver d(s.host, s.context);
            const auto x = d.floats(4);
            exec<memory::fill<float>> r(memory::fill<float>{x, 1.0f}, exec_options{});
            d.submit(r);
            d.run_until([&] { return d.losses > 0; });
            CHECK(d.outcome(r) == errc::context_lost);
        },
        true);
}

TEST_CASE("memory goes back after the last op that uses it")
{
    for_each_setting(
        [](const setting& s) {
            driver d(s.host, s.context);
            const auto x = d.floats(1024);
            const auto y = d.floats(1024);
            test::gate first;
            test::gate second;
            hold<in<float>> a(test::gate_op{&first}, std::tuple(in<float>(x)));
            hold<in<float>> b(test::gate_op{&second}, std::tuple(in<float>(x)));
            a.options.lane = 0;
            b.options.lane = 1;
            d.submit(a);
            d.submit(b);
            first.wait_for(1);
            second.wait_for(1);
            const auto used = d.context->memory().used;
            d.context->release(x.raw());
            CHECK(d.context->live_buffers() == 1);
            CHECK(d.context->memory().used == used);
            exec<memory::fill<float>> late(memory::fill<float>{x, 1.0f}, exec_options{});
            d.submit(late);
            CHECK(d.outcome(late) == errc::released_ref);
            first.open();
            d.run_until([&] { return !d.ended[&a].empty(); });
            CHECK(d.context->memory().used == used);
            second.open();
            d.run_until([&] { return !d.ended[&b].empty() && d.context->memory().used < used; });
            d.context->release(y.raw());
            CHECK(d.context->memory().used == 0);
        },
        true);
}

TEST_CASE("out of memory is tried again after a trim")
{
    for_each_setting([](setting s) {
        s.host.memory_limit = 4096;
        driver d(s.host, s.context);
        // Freed, these stay cached in a size the next allocation cannot use.
        for (int i = 0; i < 3; ++i)
            d.context->release(d.allocate(256));
        d.context->turn(clock::now());
        const auto large = d.allocate(1000);
        allocate_request more(1000);
        d.run(more);
        CHECK(d.outcome(more) == errc::out_of_memory);
        d.context->release(large);
    });
}

TEST_CASE("bad refs are typed errors and start nothing")
{
    for_each_setting([](const setting& s) {
        driver d(s.host, s.context);
        const auto x = d.floats(8);
        auto outcome_of = [&](ref<float> target) {
            exec<memory::fill<float>> r(memory::fill<float>{target, 1.0f}, exec_options{});
            d.submit(r);
            const auto ec = d.outcome(r);
            d.ended.erase(&r);
            return ec;
        };
        auto changed = [&](auto change) {
            any_ref raw = x.raw();
            change(raw);
            return ref<float>::from_raw(raw);
        };
        CHECK(outcome_of(changed([](any_ref& r) { r.device = 8; })) == errc::wrong_device);
        CHECK(outcome_of(changed([](any_ref& r) { r.generation = 2; })) == errc::stale_ref);
        CHECK(outcome_of(changed([](any_ref& r) { r.version += 1; })) == errc::released_ref);
        CHECK(outcome_of(changed([](any_ref& r) { r.slot = 1000; })) == errc::out_of_bounds);
        CHECK(outcome_of(changed([](any_ref& r) { r.type = dtype::f64; })) == errc::wrong_dtype);
        CHECK(outcome_of(changed([](any_ref& r) { r.size = 9; })) == errc::out_of_bounds);
        CHECK(outcome_of(changed([](any_ref& r) { r.offset = ~0ull; })) == errc::out_of_bounds);
        CHECK(outcome_of(ref<float>()) == errc::invalid_argument);
        CHECK(outcome_of(x.subspan(4, 5)) == errc::out_of_bounds);
        exec<memory::copy<float>> twice(memory::copy<float>{x.subspan(0, 5), x.subspan(3, 5)}, exec_options{});
        d.submit(twice);
        CHECK(d.outcome(twice) == errc::overlap);
        exec_options nowhere;
        nowhere.lane = 99;
        exec<memory::fill<float>> lost(memory::fill<float>{x, 1.0f}, nowhere);
        d.submit(lost);
        CHECK(d.outcome(lost) == errc::invalid_argument);
    });
}

TEST_CASE("a seq is refused whole when one of its ops is bad")
{
    for_each_setting([](const setting& s) {
        driver d(s.host, s.context);
        const auto x = d.floats(4);
        exec<memory::fill<float>> clear(memory::fill<float>{x, 0.0f}, exec_options{});
        d.run(clear);
        using pair = manual<detail::seq_request<memory::fill<float>, memory::fill<float>>>;
        pair bad(seq(memory::fill<float>{x, 5.0f}, memory::fill<float>{ref<float>(), 1.0f}), exec_options{});
        d.submit(bad);
        CHECK(d.outcome(bad) == errc::invalid_argument);
        CHECK(d.read(x) == std::vector<float>(4, 0.0f));
        pair good(seq(memory::fill<float>{x, 5.0f}, memory::fill<float>{x.subspan(0, 2), 6.0f}), exec_options{});
        d.run(good);
        CHECK_FALSE(d.outcome(good));
        CHECK(d.read(x) == std::vector<float>{6, 6, 5, 5});
    });
}

TEST_CASE("a context with ops in flight hands them over when it is dropped")
{
    for_each_setting(
        [](const setting& s) {
            driver d(s.host, s.context);
            const auto x = d.floats(4);
            test::gate gate;
            hold<inout<float>> first(test::gate_op{&gate}, std::tuple(inout<float>(x)));
            exec<memory::fill<float>> second(memory::fill<float>{x, 1.0f}, exec_options{});
            d.submit(first);
            gate.wait_for(1);
            d.submit(second);
            gate.open();
            detail::pending_list dropped;
            d.context->drop(dropped);
            int handed_over = 0;
            while (dropped.pop_front())
                ++handed_over;
            CHECK(handed_over == 2);
            CHECK(d.ended[&first].empty());
        },
        true);
}

TEST_SUITE_END();

} // namespace
