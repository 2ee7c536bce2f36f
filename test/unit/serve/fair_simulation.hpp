#ifndef COACCEL_TEST_UNIT_SERVE_FAIR_SIMULATION_HPP
#define COACCEL_TEST_UNIT_SERVE_FAIR_SIMULATION_HPP

#include "serve/fair_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <vector>

namespace test {

/// A fair_queue in front of a simulated device: each turn takes the time that its request costs.
class fair_simulation {
public:
    using nanoseconds = std::chrono::nanoseconds;
    using time_point = coaccel::detail::fair_queue::time_point;

    /// How a tenant behaves that always has requests.
    struct behaviour {
        /// The device time of its next request.
        std::function<nanoseconds()> cost;
        /// Requests that it always has waiting.
        int backlog = 2;
        /// The estimate that it claims; zero: none.
        nanoseconds claim{0};
    };

    using tenants = std::map<std::string, behaviour>;

    explicit fair_simulation(const coaccel::serve::fair_share_options& o) : queue(o)
    {
        REQUIRE_MESSAGE(!o.check(), o.check().message());
    }
    fair_simulation(const fair_simulation&) = delete;
    fair_simulation& operator=(const fair_simulation&) = delete;
    ~fair_simulation()
    {
        while (auto* r = queue.pop())
            delete static_cast<request*>(r);
        for (; !running.empty(); running.pop())
            delete running.top().what;
    }

    /// Adds a request; the error if it was refused.
    coaccel::error_code offer(const std::string& tenant, nanoseconds cost, nanoseconds claim = {},
                              time_point deadline = coaccel::exec_options::no_deadline)
    {
        auto* r = new request;
        r->who = &*seen.try_emplace(tenant).first;
        r->cost = cost;
        r->estimate = claim;
        r->deadline = deadline;
        const auto ec = queue.offer(*r, tenant, now);
        if (ec)
            delete r;
        else
            ++r->who->second.waiting;
        return ec;
    }

    /// Adds a request that must be accepted. Assertions would take most of the time of a long simulation.
    void must_offer(const std::string& tenant, nanoseconds cost, nanoseconds claim = {})
    {
        if (const auto ec = offer(tenant, cost, claim))
            FAIL(ec.message());
    }

    /// Starts what may start, and returns the tenants in this order.
    std::vector<std::string> start()
    {
        std::vector<std::string> order;
        while (auto* next = queue.next()) {
            auto* r = static_cast<request*>(next);
            --r->who->second.waiting;
            order.push_back(r->who->first);
            running.push({now + r->cost, ++started, r});
        }
        return order;
    }

    /// Ends the next turn; false: none runs.
    bool step()
    {
        if (running.empty())
            return false;
        request* const r = running.top().what;
        now = std::max(now, running.top().end);
        running.pop();
        queue.finish(r->turn, r->cost);
        r->who->second.used += r->cost;
        total += r->cost;
        delete r;
        return true;
    }

    /// Keeps these tenants busy until the device time of all has grown by this much.
    void saturate(const tenants& some, nanoseconds time)
    {
        const auto refill = [this](const std::string& name, const behaviour& b) {
            for (int& waiting = seen[name].waiting; waiting < b.backlog;)
                must_offer(name, b.cost(), b.claim);
        };
        for (const auto& [name, b] : some)
            refill(name, b);
        for (const auto until = total + time; total < until;) {
            for (const auto& name : start())
                if (const auto found = some.find(name); found != some.end())
                    refill(name, found->second);
            if (!step())
                FAIL("nothing runs");
        }
    }

    /// Runs all that waits.
    void run_out()
    {
        do
            start();
        while (step());
        CHECK(queue.queued() == 0);
    }

    /// Shares are counted from here on.
    void mark()
    {
        for (auto& [name, t] : seen)
            t.before = t.used;
        total_before = total;
    }

    nanoseconds used_by(const std::string& tenant) { return seen[tenant].used - seen[tenant].before; }

    /// The part of the device time that the tenant had.
    double share_of(const std::string& tenant)
    {
        return static_cast<double>(used_by(tenant).count()) / static_cast<double>((total - total_before).count());
    }

    int waiting(const std::string& tenant) { return seen[tenant].waiting; }

    coaccel::detail::fair_queue queue;
    time_point now{std::chrono::hours(1)};
    nanoseconds total{};

private:
    struct tenant {
        int waiting = 0;
        nanoseconds used{};
        nanoseconds before{};
    };

    struct request : coaccel::detail::fair_request {
        std::pair<const std::string, tenant>* who = nullptr;
        nanoseconds cost{};
    };

    struct turn {
        time_point end;
        std::uint64_t number;
        request* what;

        bool operator>(const turn& other) const noexcept
        {
            return end != other.end ? end > other.end : number > other.number;
        }
    };

    std::map<std::string, tenant> seen;
    std::priority_queue<turn, std::vector<turn>, std::greater<>> running;
    std::uint64_t started = 0;
    nanoseconds total_before{};
};

} // namespace test

#endif
