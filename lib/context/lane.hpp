#ifndef COACCEL_CONTEXT_LANE_HPP
#define COACCEL_CONTEXT_LANE_HPP

#include "context/context.hpp"
#include "context/end_forecast.hpp"
#include "context/hazards.hpp"
#include "context/sync_waiter.hpp"

#include <boost/circular_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <utility>

namespace coaccel::detail {

/// A stream, and the requests on it in the order of their tickets: those of which everything is on the stream, with
/// their end recorded (flights), then those that are still to be put there (departures).
template <backend B>
class lane {
public:
    using event = typename B::event;
    using stream = typename B::stream;

    /// How many ops, waits, records and frees may be on the stream: a driver whose queue is full would block.
    static constexpr std::size_t most_commands = [] {
        if constexpr (requires { B::most_commands_on_stream; })
            return B::most_commands_on_stream;
        else
            return std::numeric_limits<std::size_t>::max();
    }();

    /// A request of more ops than this is marked each time after so many, so that its progress can be seen.
    static constexpr std::size_t mark_interval = most_commands / 4;

    /// One without a request is a mark within the request behind it, whose ops are too many to be on the stream at a
    /// time.
    struct flight {
        event end;
        std::uint64_t ticket = 0;
        request* who = nullptr;
        /// What was put on the stream for it.
        std::size_t commands = 0;
        clock::time_point took_off{};
        end_forecast::kind kind = 0;
    };

    /// A request that waits for another lane.
    struct hold {
        std::uint64_t ticket = 0;
        point until;
    };

    struct departure {
        request* who;
        std::uint64_t ticket;
        frontier waits;
        std::size_t next_op = 0;
        bool launched = false;
        /// The op before which the next mark is set.
        std::size_t next_mark = mark_interval;
    };

    /// A request of n ops has so many tickets, the last of which is its own.
    static constexpr std::uint64_t tickets_for(std::size_t n) noexcept
    {
        return n <= mark_interval ? 1 : (n - 1) / mark_interval + 1;
    }

    lane(stream s, lane_id i, context_events& e) : work(std::move(s)), id(i), events_(e) {}

    bool busy() const noexcept { return !flights.empty() || !departures.empty(); }

    /// When the oldest flight began, as far as one can tell.
    clock::time_point began() const noexcept { return std::max(flights.front().took_off, last_landing); }

    /// The event at the end of a flight. The one a sync_waiter blocks on is kept apart, because the ring may move.
    event& end_of(std::uint64_t ticket) noexcept
    {
        return ticket == watched_ticket_ ? watched : flights[ticket - flights.front().ticket].end;
    }

    bool has_room() const noexcept { return commands < most_commands; }

    /// Whether memory may be freed on the stream, behind the newest flight. Such a free counts as part of that flight,
    /// because an idle lane has no later one that would show its end. It may still be on the stream when the flight
    /// has passed, so a flight takes only a limited number of them.
    bool has_room_for_free() const noexcept
    {
        return has_room() && unmarked_ == 0 && !flights.empty() && flights.back().commands < most_commands / 2;
    }

    /// Memory was freed on the stream.
    void note_free() noexcept
    {
        ++commands;
        ++flights.back().commands;
    }

    /// An op, a wait or a record was put on the stream.
    void note_command() noexcept
    {
        ++commands;
        ++unmarked_;
    }

    /// Records the end of what is on the stream, under the next ticket: of all of a request, or null, of a part.
    error_code take_off(B& b, request* who, clock::time_point now)
    {
        if (flights.full())
            flights.set_capacity(flights.capacity() * 2);
        flight f;
        f.ticket = ++taken_off;
        f.who = who;
        note_command();
        f.commands = std::exchange(unmarked_, 0);
        f.took_off = now;
        f.kind = who ? end_forecast::kind_of(*who) : 0;
        const error_code ec = b.record(f.end, work);
        flights.push_back(std::move(f));
        return ec;
    }

    /// How many flights have passed: those before one that has, have too, so it takes few questions to find out.
    result<std::size_t> count_passed(B& b)
    {
        armed_ &= !fired_.exchange(false, std::memory_order_acquire);
        if (flights.empty() || (armed_ && waiter_.busy()))
            return 0;
        const std::size_t all = flights.size();
        std::size_t passed = 0;
        std::size_t pending = all;
        for (std::size_t step = 1; passed < pending; step *= 2) {
            const bool leaping = pending == all;
            const std::size_t at = leaping ? std::min(passed + step, all) - 1 : passed + (pending - passed) / 2;
            BOOST_OUTCOME_TRY(auto where, b.query(end_of(flights[at].ticket)));
            (where == progress::passed ? passed : pending) = where == progress::passed ? at + 1 : at;
        }
        return passed;
    }

    /// Sees to it that the context is woken when the oldest flight has passed.
    error_code arm(B& b, completion how)
    {
        if (armed_ || flights.empty())
            return {};
        const notification n{&lane::on_notify, this};
        flight& first = flights.front();
        error_code ec;
        if (how == completion::sync) {
            // It may be the one that was watched before.
            if (watched_ticket_ != first.ticket)
                watched = std::move(first.end);
            watched_ticket_ = first.ticket;
            ec = waiter_.wait_for([&b, e = &watched] { (void)b.synchronize(*e); }, n);
            // There is no thread to be had; a context that works is not lost for that.
            if (ec)
                ec = b.notify(watched, n);
        } else {
            ec = b.notify(first.end, n);
        }
        armed_ = !ec;
        return ec;
    }

    /// Lets go of the backend; what the waiter blocks on must have been aborted. False: the waiter did not let go.
    [[nodiscard]] bool stop(clock::time_point until) noexcept
    {
        const bool let_go = waiter_.stop(until);
        for (auto& f : flights)
            f.end = event{};
        watched = event{};
        return let_go;
    }

    stream work;
    const lane_id id;
    std::uint64_t last_ticket = 0;
    /// Up to here, everything is on the stream.
    std::uint64_t taken_off = 0;
    /// On the stream, for flights and for the request that is being put there.
    std::size_t commands = 0;
    boost::circular_buffer<flight> flights{64};
    std::deque<departure> departures;
    std::deque<hold> holds;
    clock::time_point last_landing{};
    /// Until then, if ever, the oldest waited for another lane.
    clock::time_point held_back{};
    /// The time came for the oldest to end, and it did not.
    bool overdue = false;
    event watched;

private:
    static void on_notify(void* self) noexcept
    {
        auto* l = static_cast<lane*>(self);
        l->fired_.store(true, std::memory_order_release);
        l->events_.wake();
    }

    context_events& events_;
    std::size_t unmarked_ = 0;
    bool armed_ = false;
    std::uint64_t watched_ticket_ = 0;
    std::atomic<bool> fired_{false};
    sync_waiter waiter_;
};

} // namespace coaccel::detail

#endif
