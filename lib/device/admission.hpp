#ifndef COACCEL_DEVICE_ADMISSION_HPP
#define COACCEL_DEVICE_ADMISSION_HPP

#include <coaccel/core/detail/request.hpp>
#include <coaccel/device/device_options.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <optional>

namespace coaccel::detail {

/// The admission queue: which requests wait, which may start next, and which have exceeded their deadline. First come,
/// first served, with one exception: while a transfer waits for bytes in flight to complete, requests that move no host
/// bytes may overtake it if they share no buffer with any request they overtake. The class has no clock and starts
/// nothing itself.
class COACCEL_DECL admission {
public:
    using time_point = exec_options::clock::time_point;

    explicit admission(const queue_limits& limits) noexcept : limits_(limits) {}
    ~admission();

    /// Accepts a request, or returns why not. `open`: the device could start a request now.
    error_code offer(request& r, bool open, time_point now) noexcept;

    /// Whether `offer` would return errc::queue_full because of waiting requests, some of which could be started first.
    bool would_refuse(const request& r) const noexcept;

    /// Queues a request again that has ended, before all requests that arrived after it.
    void put_back(request& r) noexcept;

    /// The waiting request that arrived first.
    request* front() noexcept { return again_.empty() ? static_cast<request*>(queue_.front()) : &*again_.begin(); }

    /// Whether a request may overtake waiting requests.
    enum class order : std::uint8_t { strict, overtaking };

    /// The next request that may start, counted as in flight from then on; nullptr if all must wait.
    request* next(order how = order::overtaking) noexcept;
    bool has_next(order how = order::overtaking) noexcept { return find_next(how) != nullptr; }

    /// A request returned by `next` has ended.
    void finished(request& r) noexcept;

    /// A request whose deadline has passed, reported once. A waiting request is removed from the queue, an in-flight
    /// request stays. nullptr if there is none.
    request* expired(time_point now) noexcept;
    time_point first_deadline() const noexcept;

    /// Calls the function with every in-flight request.
    template <class Function>
    void for_each_in_flight(Function function)
    {
        for (request& r : started_)
            function(r);
    }

    /// Removes a waiting request.
    void remove(request& r) noexcept;
    request* pop() noexcept;

    /// Drops the in-flight requests, which are about to be destroyed elsewhere.
    void forget_in_flight() noexcept;

    std::uint64_t queued() const noexcept { return queued_; }
    std::uint64_t in_flight() const noexcept { return in_flight_; }
    bool empty() const noexcept { return queued_ == 0 && in_flight_ == 0; }

private:
    struct earlier {
        bool operator()(const request& a, const request& b) const noexcept
        {
            return a.options.deadline < b.options.deadline;
        }
    };

    using deadline_set =
        boost::intrusive::multiset<request, boost::intrusive::member_hook<request, set_hook, &request::by_deadline>,
                                   boost::intrusive::compare<earlier>, boost::intrusive::constant_time_size<false>>;

    struct before {
        bool operator()(const request& a, const request& b) const noexcept { return a.sequence < b.sequence; }
    };

    using ordered_set =
        boost::intrusive::multiset<request, boost::intrusive::member_hook<request, set_hook, &request::by_sequence>,
                                   boost::intrusive::compare<before>, boost::intrusive::constant_time_size<false>>;

    using started_list =
        boost::intrusive::list<request, boost::intrusive::member_hook<request, list_hook, &request::in_flight>,
                               boost::intrusive::constant_time_size<false>>;

    /// A request larger than the limit is not counted in bytes_: otherwise no other request could run beside it,
    /// however small.
    bool is_oversize(const request& r) const noexcept { return r.bytes > limits_.max_bytes_in_flight; }
    bool fits(const request& r) const noexcept;
    void count(const request& r) noexcept;
    void unlink(request& r) noexcept;
    void forget_deadline(request& r) noexcept;
    void note_waiting(request& r) noexcept;
    request* after(request& r) noexcept;
    request* find_next(order how) noexcept;
    request* find_overtaking() noexcept;
    bool may_overtake_all(const request& r) noexcept;

    queue_limits limits_;
    /// Requests that were put back, ordered by arrival. They end in any order, but all arrived before those that were
    /// never started.
    ordered_set again_;
    async_op_list queue_;
    /// Deadlines of waiting and in-flight requests.
    deadline_set deadlines_;
    started_list started_;
    std::uint64_t queued_ = 0;
    std::uint64_t in_flight_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t oversize_ = 0;
    /// The cached result of find_overtaking, valid until the queue changes: it is queried repeatedly during polling.
    std::optional<request*> overtaking_;
};

} // namespace coaccel::detail

#endif
