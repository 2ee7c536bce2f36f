#ifndef COACCEL_TEST_SUPPORT_CONTEXT_DRIVER_HPP
#define COACCEL_TEST_SUPPORT_CONTEXT_DRIVER_HPP

#include "context/context.hpp"
#include "support/gate.hpp"

#include <coaccel/device/detail/buffer_requests.hpp>
#include <coaccel/device/detail/exec_requests.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// A context driven by the test, without a device or an executor.
namespace test {

/// The environment of a test case, created anew for each.
class context_world {
public:
    virtual ~context_world() = default;

    virtual coaccel::detail::context_factory factory() = 0;

    /// The next op that runs kills its context.
    virtual void poison() = 0;
    virtual bool can_poison() const noexcept { return true; }

    /// Called by an in-flight op: blocks its lane until the gate is open.
    virtual void hold(coaccel::native_stream, test::gate gate) { gate.pass(); }

    /// Limits the memory of contexts created later. False: a limit is not supported.
    virtual bool limit_memory(std::uint64_t) { return false; }

    /// A context of this world was reported lost.
    virtual void on_lost() noexcept {}

    coaccel::context_options context;
    /// Whether memory no longer counts as used once its release is queued on a stream, although the stream still needs
    /// it.
    bool frees_in_stream_order = false;
};

struct context_setting {
    std::string name;
    /// Whether ops run concurrently with the test thread.
    bool concurrent = true;
    std::function<std::unique_ptr<context_world>()> make;
};

/// Every completion strategy with every lane policy.
inline std::vector<std::pair<std::string, coaccel::context_options>> context_variants()
{
    using coaccel::completion;
    using coaccel::lane_policy;
    const std::array<std::pair<const char*, completion>, 4> strategies{{{"adaptive", completion::adaptive},
                                                                        {"host_fn", completion::host_fn},
                                                                        {"polled", completion::polled},
                                                                        {"sync", completion::sync}}};
    const std::array<std::pair<const char*, lane_policy>, 4> policies{{{"per_library", lane_policy::per_library()},
                                                                       {"single", lane_policy::single()},
                                                                       {"pooled", lane_policy::pooled(3)},
                                                                       {"chained", lane_policy::chained(4)}}};
    std::vector<std::pair<std::string, coaccel::context_options>> all;
    for (const auto& [strategy_name, strategy] : strategies)
        for (const auto& [policy_name, policy] : policies) {
            coaccel::context_options o;
            o.completion = strategy;
            o.lanes = policy;
            o.monitor_interval = std::chrono::milliseconds(5);
            all.emplace_back(std::string(strategy_name) + ", " + policy_name, o);
        }
    return all;
}

template <class Request>
class manual final : public Request {
public:
    template <class... Args>
    explicit manual(Args&&... args) : Request(coaccel::detail::core_ptr(), static_cast<Args&&>(args)...)
    {}

    void post() override {}
    void destroy() noexcept override {}
};

template <class Op>
using exec = manual<coaccel::detail::exec_request<Op>>;

struct hold_lane {
    context_world* world;
    test::gate gate;

    template <class... Spans>
    void operator()(coaccel::native_stream s, Spans...) const
    {
        world->hold(s, gate);
    }
};

template <class... Operands>
using hold = manual<coaccel::detail::submit_request<hold_lane, Operands...>>;

class allocate_request final : public coaccel::detail::request {
public:
    explicit allocate_request(std::uint64_t count, coaccel::dtype type = coaccel::dtype::f32,
                              coaccel::memory_kind kind = coaccel::memory_kind::device)
        : op_{count, type, kind}
    {
        bound_ = {.info = &coaccel::info_of<coaccel::detail::allocate_op>(), .op = &op_, .reply = &made};
        ops = {&bound_, 1};
    }

    void post() override {}
    void destroy() noexcept override {}

    coaccel::detail::allocation made;

private:
    coaccel::detail::allocate_op op_;
    coaccel::bound_op bound_;
};

class context_driver final : public coaccel::detail::context_events {
public:
    using clock = coaccel::detail::clock;
    using next_turn = coaccel::detail::next_turn;

    explicit context_driver(context_world& world) : world_(world)
    {
        auto made = world.factory()({device, generation}, *this, world.context);
        REQUIRE(made);
        context = std::move(made).value();
    }

    void finished(coaccel::detail::request& r, coaccel::error_code ec) noexcept override { ended[&r].push_back(ec); }

    void lost(coaccel::error_code why, coaccel::detail::loss_cause cause) noexcept override
    {
        ++losses;
        reason = why;
        lost_by = cause;
        world_.on_lost();
    }

    bool has_more() noexcept override { return more && more(); }

    void wake() noexcept override
    {
        const std::scoped_lock lock(mutex_);
        woken_ = true;
        changed_.notify_one();
    }

    void submit(coaccel::detail::request& r) { context->submit(r, clock::now()); }

    template <class Done>
    void run_until(Done done)
    {
        const auto end = clock::now() + std::chrono::seconds(60);
        while (!done()) {
            REQUIRE(clock::now() < end);
            const auto next = context->turn(clock::now());
            if (next.when == next_turn::kind::again || done())
                continue;
            std::unique_lock lock(mutex_);
            // An idle context sends no wake-ups; the limit keeps a wrong `idle` from looking like a hang.
            const auto until = next.when == next_turn::kind::sleep ? std::min(next.at, end)
                                                                   : clock::now() + std::chrono::milliseconds(1);
            changed_.wait_until(lock, until, [this] { return woken_; });
            woken_ = false;
        }
    }

    void run(coaccel::detail::request& r)
    {
        submit(r);
        run_until([&] { return has_ended(r); });
    }

    bool has_ended(coaccel::detail::request& r) const { return ended.contains(&r); }

    coaccel::error_code outcome(coaccel::detail::request& r)
    {
        REQUIRE(ended[&r].size() == 1);
        return ended[&r].front();
    }

    /// Submits a request, and returns its outcome.
    coaccel::error_code outcome_of(coaccel::detail::request& r)
    {
        run(r);
        const auto ec = outcome(r);
        ended.erase(&r);
        return ec;
    }

    coaccel::any_ref allocate(std::uint64_t count, coaccel::dtype type = coaccel::dtype::f32)
    {
        allocate_request r(count, type);
        REQUIRE_FALSE(outcome_of(r));
        return r.made.ref;
    }

    coaccel::ref<float> floats(std::uint64_t count) { return coaccel::ref<float>::from_raw(allocate(count)); }

    std::vector<float> read(coaccel::ref<float> source)
    {
        std::vector<float> data(source.size());
        exec<coaccel::detail::read_op<float>> r(coaccel::detail::read_op<float>{source, data.data(), data.size()},
                                                coaccel::exec_options{});
        REQUIRE_FALSE(outcome_of(r));
        return data;
    }

    void write(coaccel::ref<float> target, const std::vector<float>& data)
    {
        exec<coaccel::detail::write_op<float>> r(coaccel::detail::write_op<float>{target, data.data(), data.size()},
                                                 coaccel::exec_options{});
        REQUIRE_FALSE(outcome_of(r));
    }

    static constexpr std::uint32_t device = 7;
    static constexpr std::uint32_t generation = 3;

    std::map<coaccel::detail::request*, std::vector<coaccel::error_code>> ended;
    int losses = 0;
    coaccel::error_code reason;
    coaccel::detail::loss_cause lost_by{};
    /// Called by a polling turn to ask whether there is other work. Empty: there is none.
    std::function<bool()> more;

private:
    context_world& world_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool woken_ = false;

public:
    // Last, because its threads use all other members until it is destroyed.
    std::unique_ptr<coaccel::detail::context> context;
};

} // namespace test

#endif
