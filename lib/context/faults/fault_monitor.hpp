#ifndef COACCEL_CONTEXT_FAULTS_FAULT_MONITOR_HPP
#define COACCEL_CONTEXT_FAULTS_FAULT_MONITOR_HPP

#include "context/faults/leak_registry.hpp"
#include "context/lanes/lane_set.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace coaccel::detail {

/// Detects the faults that kill a context, records the cause, and stops its backend.
template <backend B>
class fault_monitor {
public:
    fault_monitor(B& b, const context_options& options) noexcept
        : backend_(b), monitor_interval_(std::min<clock::duration>(options.monitor_interval, longest_interval)),
          hang_timeout_(options.hang_timeout)
    {}

    bool dying() const noexcept { return dying_; }
    error_code why() const noexcept { return why_; }

    /// The error reported for requests whose work is lost.
    errc sticky_error() const noexcept
    {
        return B::classify(why_) == fault::device_lost ? errc::device_lost : errc::context_lost;
    }

    /// Returns the error to report. If the error means that the context is dead, the shutdown of the context begins.
    error_code failed(error_code ec) noexcept
    {
        if (!ec)
            return ec;
        const fault f = B::classify(ec);
        if (f != fault::context_lost && f != fault::device_lost)
            return ec;
        condemn(ec);
        return f == fault::device_lost ? errc::device_lost : errc::context_lost;
    }

    /// Like `failed`, for errors after which the order or the end of work is unknown: every error means that the
    /// context is lost.
    error_code fatal(error_code ec) noexcept
    {
        if (!ec)
            return ec;
        condemn(ec);
        return sticky_error();
    }

    /// Checks for faults once per monitor interval. Polling is required because a notification queued behind a fault
    /// does not fire.
    void look(lane_set<B>& lanes, bool idle, clock::time_point now)
    {
        if (idle || next_look_ == clock::time_point::max()) {
            next_look_ = idle ? clock::time_point::max() : now + monitor_interval_;
            return;
        }
        if (now < next_look_)
            return;
        next_look_ = now + monitor_interval_;
        failed(backend_.status());
        if (hang_timeout_ <= std::chrono::nanoseconds(0) || dying_)
            return;
        for (auto& l : lanes)
            if (hangs(*l, lanes, now))
                condemn(errc::context_lost);
        if (const auto since = waiting_since(backend_); since && now - *since > hang_timeout_)
            condemn(errc::context_lost);
    }

    clock::time_point next_look() const noexcept { return next_look_; }

    /// Whether the device no longer accesses the callers' memory. Called only on a dying context.
    bool is_over() const noexcept { return bool(backend_.status()); }

    /// After `stop`: whether work that could not be stopped may still use memory.
    bool work_remains() const noexcept { return work_remains_; }

    /// Ends all work; blocks. Destroys or gives away `b`: no component may use the backend afterwards.
    void stop(std::unique_ptr<B>& b, lane_set<B>& lanes) noexcept
    {
        bool condemned = std::exchange(dying_, true);
        if (!b)
            return;
        b->listen({});
        b->abort();
        if (!condemned && hang_timeout_.count() > 0)
            condemned = !outlast(*b, lanes);
        const auto until = condemned ? clock::now() + exit_grace_period : clock::time_point::max();
        bool free = !condemned || b->quiet();
        for (auto& l : lanes)
            free &= l->stop(until);
        if constexpr (requires { b->work_remains(); })
            work_remains_ = b->work_remains();
        if (free)
            return b.reset();
        work_remains_ = true;
        leak_registry<B>::add(std::move(b));
    }

private:
    static constexpr auto exit_grace_period = std::chrono::milliseconds(20);
    /// Upper limit, because adding an interval that means "forever" to a time point would overflow.
    static constexpr clock::duration longest_interval = std::chrono::hours(1);

    /// Since when the backend has been waiting for work that is not in flight on a lane, if it does so.
    static std::optional<clock::time_point> waiting_since([[maybe_unused]] const B& b) noexcept
    {
        if constexpr (requires { b.waiting_since(); })
            return b.waiting_since();
        else
            return std::nullopt;
    }

    bool hangs(lane<B>& l, const lane_set<B>& lanes, clock::time_point now) const noexcept
    {
        if (l.in_flight.empty())
            return false;
        if (lanes.is_held_back(l))
            l.held_back = now;
        return now - std::max(l.began(), l.held_back) > hang_timeout_;
    }

    /// Waits until all in-flight requests have completed. False: one of them hangs.
    bool outlast(B& b, lane_set<B>& lanes) const noexcept
    {
        [[maybe_unused]] const auto here = b.enter();
        const auto began = clock::now();
        const auto has_time = [&] {
            if (clock::now() - began > hang_timeout_) {
                // After an abort, the backend finds that it is dead when its status is queried.
                (void)b.status();
                return false;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return true;
        };
        for (auto& l : lanes)
            for (;;) {
                const auto passed = l->count_passed(b);
                if (!passed || passed.value() == l->in_flight.size())
                    break;
                if (!has_time())
                    return false;
            }
        while (waiting_since(b))
            if (!has_time())
                return false;
        return true;
    }

    void condemn(error_code why) noexcept
    {
        if (std::exchange(dying_, true))
            return;
        why_ = why;
        backend_.abort();
    }

    B& backend_;
    const clock::duration monitor_interval_;
    const clock::duration hang_timeout_;
    clock::time_point next_look_ = clock::time_point::max();
    error_code why_;
    bool dying_ = false;
    bool work_remains_ = false;
};

} // namespace coaccel::detail

#endif
