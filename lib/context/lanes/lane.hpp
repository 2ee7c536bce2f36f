#ifndef COACCEL_CONTEXT_LANES_LANE_HPP
#define COACCEL_CONTEXT_LANES_LANE_HPP

#include "context/completion/duration_estimator.hpp"
#include "context/completion/sync_waiter.hpp"
#include "context/context.hpp"
#include "context/faults/leak_registry.hpp"
#include "context/lanes/hazards.hpp"

#include <boost/circular_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

namespace coaccel::detail {

/// A stream and its requests in the order of their tickets: first the in-flight requests, which are completely on the
/// stream with their end recorded, then the queued requests.
template <backend B>
class lane {
public:
    using event = typename B::event;
    using stream = typename B::stream;

    /// The most ops, waits, event records and frees allowed on the stream. A driver whose queue is full would block.
    static constexpr std::size_t most_commands = [] {
        if constexpr (requires { B::most_commands_on_stream; })
            return B::most_commands_on_stream;
        else
            return std::numeric_limits<std::size_t>::max();
    }();

    /// A longer request gets a mark (a recorded event) after every so many ops, so that its progress is visible.
    static constexpr std::size_t mark_interval = most_commands / 4;

    /// An entry without a request is a mark inside the next request, which has too many ops to be on the stream at
    /// once.
    struct in_flight_request {
        event end;
        std::uint64_t ticket = 0;
        request* who = nullptr;
        /// Commands put on the stream for it.
        std::size_t commands = 0;
        clock::time_point launched_at{};
        duration_estimator::kind kind = 0;
    };

    /// A request that waits for work on another lane.
    struct hold {
        std::uint64_t ticket = 0;
        point until;
    };

    struct queued_request {
        request* who;
        std::uint64_t ticket;
        frontier waits;
        std::size_t next_op = 0;
        bool launched = false;
        /// The index of the op before which the next mark is set.
        std::size_t next_mark = mark_interval;
    };

    /// The number of tickets of a request of n ops. The last one is the ticket of the request, the others belong to its
    /// marks.
    static constexpr std::uint64_t tickets_for(std::size_t n) noexcept
    {
        return n <= mark_interval ? 1 : (n - 1) / mark_interval + 1;
    }

    lane(stream s, lane_id i, context_events& e) : work(std::move(s)), id(i), events_(e) {}

    bool busy() const noexcept { return !in_flight.empty() || !queued.empty(); }

    /// The number of requests that have not completed; a mark counts as a request.
    std::size_t load() const noexcept { return in_flight.size() + queued.size(); }

    /// When the device started the oldest in-flight request, as far as known.
    clock::time_point began() const noexcept { return std::max(in_flight.front().launched_at, last_end); }

    /// The end event of an in-flight request. The event on which a sync_waiter blocks is stored outside the circular
    /// buffer, because the buffer may be reallocated.
    event& end_of(std::uint64_t ticket) noexcept
    {
        return ticket == watched_ticket_ ? *watched : in_flight[ticket - in_flight.front().ticket].end;
    }

    bool has_room() const noexcept { return commands < most_commands; }

    /// Whether memory may be freed in stream order, after the newest in-flight request. Such a free counts as a command
    /// of that request, because on an idle lane no later request would show that it completed. It may still be on the
    /// stream when the request has completed, so their number per request is limited.
    bool has_room_for_free() const noexcept
    {
        return has_room() && unmarked_ == 0 && !in_flight.empty() && in_flight.back().commands < most_commands / 2;
    }

    /// Memory was freed on the stream.
    void note_free() noexcept
    {
        ++commands;
        ++in_flight.back().commands;
    }

    /// An op, a wait or a record was put on the stream.
    void note_command() noexcept { note_commands(1); }

    void note_commands(std::size_t n) noexcept
    {
        commands += n;
        unmarked_ += n;
    }

    /// Records an event after the commands on the stream, under the next ticket. `who` is the request that is now
    /// completely on the stream, or null for a mark.
    error_code record_end(B& b, request* who, clock::time_point now)
    {
        if (in_flight.full())
            in_flight.set_capacity(in_flight.capacity() * 2);
        in_flight_request f;
        f.ticket = ++last_on_stream;
        f.who = who;
        note_command();
        f.commands = std::exchange(unmarked_, 0);
        f.launched_at = now;
        f.kind = who ? duration_estimator::kind_of(*who) : 0;
        const error_code ec = b.record(f.end, work);
        in_flight.push_back(std::move(f));
        return ec;
    }

    /// Call this before further commands are put on the stream, so that the end of the last request keeps its place.
    error_code settle([[maybe_unused]] B& b) noexcept
    {
        if constexpr (requires(event& e) { b.settle(e); })
            if (!in_flight.empty())
                return b.settle(end_of(in_flight.back().ticket));
        return {};
    }

    /// How many in-flight requests have completed. They complete in order, so a galloping search needs few queries.
    result<std::size_t> count_passed(B& b)
    {
        armed_ &= !fired_.exchange(false, std::memory_order_acquire);
        if (in_flight.empty() || (armed_ && waiter_.busy()))
            return 0;
        const std::size_t all = in_flight.size();
        std::size_t passed = 0;
        std::size_t pending = all;
        for (std::size_t step = 1; passed < pending; step *= 2) {
            const bool leaping = pending == all;
            const std::size_t at = leaping ? std::min(passed + step, all) - 1 : passed + (pending - passed) / 2;
            BOOST_OUTCOME_TRY(auto where, b.query(end_of(in_flight[at].ticket)));
            (where == progress::passed ? passed : pending) = where == progress::passed ? at + 1 : at;
        }
        return passed;
    }

    /// Requests a notification for the completion of the oldest in-flight request.
    error_code arm(B& b, completion how)
    {
        if (armed_ || in_flight.empty())
            return {};
        const notification n{&lane::on_notify, this};
        in_flight_request& first = in_flight.front();
        error_code ec;
        if (how == completion::sync) {
            // The waiter may already have blocked on this event before.
            if (watched_ticket_ != first.ticket)
                *watched = std::move(first.end);
            watched_ticket_ = first.ticket;
            ec = waiter_.wait_for([&b, e = watched.get()] { (void)b.synchronize(*e); }, n);
            // The thread could not be started. The context still works, so use a notification instead.
            if (ec)
                ec = b.notify(*watched, n);
        } else {
            ec = b.notify(first.end, n);
        }
        armed_ = !ec;
        return ec;
    }

    /// Drops all events; the event the waiter blocks on must have been aborted. False: the waiter thread is still
    /// blocked. It then keeps that event, and the backend must stay alive.
    [[nodiscard]] bool stop(clock::time_point until) noexcept
    {
        const bool let_go = waiter_.stop(until);
        for (auto& f : in_flight)
            f.end = event{};
        if (!let_go)
            leak_registry<event>::add(std::move(watched));
        watched.reset();
        return let_go;
    }

    stream work;
    const lane_id id;
    std::uint64_t last_ticket = 0;
    /// All work up to this ticket is on the stream.
    std::uint64_t last_on_stream = 0;
    /// Commands on the stream, of in-flight requests and of the request that is being put there.
    std::size_t commands = 0;
    boost::circular_buffer<in_flight_request> in_flight{64};
    std::deque<queued_request> queued;
    std::deque<hold> holds;
    clock::time_point last_end{};
    /// When the oldest in-flight request was last seen waiting for another lane.
    clock::time_point held_back{};
    /// The oldest in-flight request was still running at its expected end.
    bool overdue = false;
    /// Not part of the lane, because the waiter thread may outlive the lane. Null after `stop`.
    std::unique_ptr<event> watched = std::make_unique<event>();

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
