#include "row.hpp"

#include <coaccel/serve/fair_share.hpp>

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace coaccel::bench {
namespace {

using serve::permit;
using std::chrono::nanoseconds;

constexpr int tenant_count = 100;
constexpr std::uint64_t places = 4;
constexpr int backlog = 8;
constexpr int windows = 10;
constexpr std::chrono::seconds window(40);

/// Tenants that always have requests, and a device with several places. The clock is simulated: a turn takes the time
/// that its request costs.
class saturated {
public:
    saturated()
    {
        for (int i = 0; i < tenant_count; ++i) {
            const auto weight = static_cast<std::uint32_t>(1 + random_() % 100);
            tenants_.push_back(
                {"tenant" + std::to_string(i), weight, 1e5 + static_cast<double>(random_() % 5'000'000)});
            weights_ += weight;
        }
    }

    /// The largest difference between the part of the device time that a tenant got and that of its weight in all
    /// weights, in percentage points.
    double with_fair_share()
    {
        serve::fair_share_options o;
        o.max_running = places;
        for (const tenant& t : tenants_)
            o.tenants[t.name].weight = t.weight;
        asio::io_context io;
        auto made = serve::fair_share::create(io.get_executor(), o);
        if (!made) {
            std::fprintf(stderr, "bench: %s\n", made.error().message().c_str());
            std::exit(1);
        }
        const serve::fair_share share = std::move(made).value();
        struct turn {
            nanoseconds end;
            std::size_t tenant;
            nanoseconds cost;
        };
        const auto later = [](const turn& a, const turn& b) { return a.end > b.end; };
        std::priority_queue<turn, std::vector<turn>, decltype(later)> running(later);
        std::map<std::pair<nanoseconds, std::size_t>, std::deque<permit>> permits;
        nanoseconds now{};
        const auto ask = [&](std::size_t i) {
            share.async_enter(tenants_[i].name, [&, i](error_code ec, permit p) {
                if (ec)
                    std::exit(1);
                const nanoseconds cost = cost_of(i);
                running.push({now + cost, i, cost});
                permits[{now + cost, i}].push_back(std::move(p));
            });
        };
        for (int n = 0; n < backlog; ++n)
            for (std::size_t i = 0; i < tenants_.size(); ++i)
                ask(i);
        const double worst = largest_error([&] {
            io.restart();
            io.poll();
            const turn t = running.top();
            running.pop();
            now = t.end;
            auto& same = permits[{t.end, t.tenant}];
            same.front().finish(t.cost);
            same.pop_front();
            if (same.empty())
                permits.erase({t.end, t.tenant});
            ask(t.tenant);
            return std::pair(t.tenant, t.cost);
        });
        return worst;
    }

    /// The same if requests are served in the order of arrival.
    double in_order_of_arrival()
    {
        std::deque<std::size_t> queue;
        for (int n = 0; n < backlog; ++n)
            for (std::size_t i = 0; i < tenants_.size(); ++i)
                queue.push_back(i);
        return largest_error([&] {
            const std::size_t i = queue.front();
            queue.pop_front();
            queue.push_back(i);
            return std::pair(i, cost_of(i));
        });
    }

private:
    struct tenant {
        std::string name;
        std::uint32_t weight;
        /// The mean of the device time of its requests, in nanoseconds.
        double mean;
    };

    nanoseconds cost_of(std::size_t i)
    {
        std::uniform_real_distribution<double> around(0.1, 1.9);
        return nanoseconds(static_cast<std::int64_t>(around(random_) * tenants_[i].mean));
    }

    /// Of all windows. `next` ends a turn, and returns the tenant and the device time.
    double largest_error(const std::function<std::pair<std::size_t, nanoseconds>()>& next) const
    {
        double worst = 0;
        for (int w = 0; w < windows; ++w) {
            std::vector<nanoseconds> used(tenants_.size());
            nanoseconds total{};
            while (total < window) {
                const auto [who, cost] = next();
                used[who] += cost;
                total += cost;
            }
            for (std::size_t i = 0; i < tenants_.size(); ++i) {
                const double share = static_cast<double>(used[i].count()) / static_cast<double>(total.count());
                worst = std::max(worst, 100 * std::abs(share - tenants_[i].weight / weights_));
            }
        }
        return worst;
    }

    std::mt19937_64 random_{1};
    std::vector<tenant> tenants_;
    double weights_ = 0;
};

} // namespace

void fair_share_row(rows& table)
{
    saturated tenants;
    const double ours = tenants.with_fair_share();
    const double theirs = tenants.in_order_of_arrival();
    table.push_back({"fair_share_error", ours / theirs, ours, theirs, "% points", "<= 1", ours <= 1});
}

} // namespace coaccel::bench
