#ifndef COACCEL_CONTEXT_LIFETIME_HPP
#define COACCEL_CONTEXT_LIFETIME_HPP

#include "context/graveyard.hpp"
#include "context/lane_set.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace coaccel::detail {

/// Whether a context lives: finds the faults that kill it, knows why, and sees it to its grave.
template <backend B>
class lifetime {
public:
    lifetime(B& b, const context_options& options) noexcept
        : backend_(b), monitor_interval_(std::min<clock::duration>(options.monitor_interval, longest_interval)),
          hang_timeout_(options.hang_timeout)
    {}

    bool dying() const noexcept { return dying_; }
    error_code why() const noexcept { return why_; }

    /// What is said to those whose work is lost.
    errc verdict() const noexcept
    {
        return B::classify(why_) == fault::device_lost ? errc::device_lost : errc::context_lost;
    }

    /// Passes an error on; when it means that the context is dead, begins the end.
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

    /// The same for work whose order or end cannot be known: whatever the error, it is as good as lost.
    error_code fatal(error_code ec) noexcept
    {
        if (!ec)
            return ec;
        condemn(ec);
        return verdict();
    }

    /// Looks for faults when it is time to: a notification does not fire behind one, so somebody has to ask.
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
    }

    clock::time_point next_look() const noexcept { return next_look_; }

    /// Whether the device has left all memory of the callers; asked of one that is dying.
    bool is_over() const noexcept { return bool(backend_.status()); }

    /// Ends all work, blocking. `b` is gone afterwards, and must not be used by any part any more.
    void stop(std::unique_ptr<B>& b, lane_set<B>& lanes) noexcept
    {
        bool condemned = std::exchange(dying_, true);
        if (!b)
            return;
        b->listen({});
        b->abort();
        if (!condemned && hang_timeout_.count() > 0)
            condemned = !outlast(*b, lanes);
        const auto until = condemned ? clock::now() + longest_farewell : clock::time_point::max();
        bool free = !condemned || b->quiet();
        for (auto& l : lanes)
            free &= l->stop(until);
        if (free)
            return b.reset();
        graveyard<B>::bury(std::move(b));
    }

private:
    static constexpr auto longest_farewell = std::chrono::milliseconds(20);
    /// One that is meant to be endless could not be added to a time.
    static constexpr clock::duration longest_interval = std::chrono::hours(1);

    bool hangs(lane<B>& l, const lane_set<B>& lanes, clock::time_point now) const noexcept
    {
        if (l.flights.empty())
            return false;
        if (lanes.is_held_back(l))
            l.held_back = now;
        return now - std::max(l.began(), l.held_back) > hang_timeout_;
    }

    /// Waits for what is under way, unless that hangs. False: it does.
    bool outlast(B& b, lane_set<B>& lanes) const noexcept
    {
        [[maybe_unused]] const auto here = b.enter();
        const auto began = clock::now();
        for (auto& l : lanes)
            for (;;) {
                const auto passed = l->count_passed(b);
                if (!passed || passed.value() == l->flights.size())
                    break;
                if (clock::now() - began > hang_timeout_) {
                    // Who is asked after an abort knows that it is dead.
                    (void)b.status();
                    return false;
                }
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
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
};

} // namespace coaccel::detail

#endif
