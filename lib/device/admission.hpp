#ifndef COACCEL_DEVICE_ADMISSION_HPP
#define COACCEL_DEVICE_ADMISSION_HPP

#include <coaccel/detail/request.hpp>
#include <coaccel/device/device_options.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <optional>

namespace coaccel::detail {

/// Which requests wait, which may go next, and which have run out of time. First come, first served, but for one case:
/// while a transfer waits for others to be through, requests that move no host bytes go before it, if they share no
/// buffer with any request they overtake. Has no clock and starts nothing itself.
class COACCEL_DECL admission {
public:
    using time_point = exec_options::clock::time_point;

    explicit admission(const queue_limits& limits) noexcept : limits_(limits) {}
    ~admission();

    /// Takes a request in, or says why not. `open`: the device could start something now.
    error_code offer(request& r, bool open, time_point now) noexcept;

    /// Whether it would be errc::queue_full because of others that wait, which might be started first.
    bool would_refuse(const request& r) const noexcept;

    /// Takes a request that has ended back in, to be started again before all that came after it.
    void put_back(request& r) noexcept;

    /// The request that came first.
    request* front() noexcept { return again_.empty() ? static_cast<request*>(queue_.front()) : &*again_.begin(); }

    /// Whether a request may go before others that wait.
    enum class order : std::uint8_t { strict, overtaking };

    /// The next request that may start, counted as in flight from then on; nullptr when all must wait.
    request* next(order how = order::overtaking) noexcept;
    bool has_next(order how = order::overtaking) noexcept { return find_next(how) != nullptr; }

    /// A request that `next` gave has ended.
    void finished(request& r) noexcept;

    /// A request whose deadline has passed, once: one that waits is taken out, one in flight stays. nullptr when there
    /// is none.
    request* expired(time_point now) noexcept;
    time_point first_deadline() const noexcept;

    /// Calls the function with every request in flight.
    template <class Function>
    void for_each_in_flight(Function function)
    {
        for (request& r : started_)
            function(r);
    }

    /// Takes a waiting request out.
    void remove(request& r) noexcept;
    request* pop() noexcept;

    /// Those in flight are about to be destroyed by others.
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

    /// One that is larger than the bound is not counted: others could not run beside it, however small they are.
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
    /// Requests that are put back end in any order, but all of them came before those that were never started.
    ordered_set again_;
    pending_list queue_;
    /// Of those that wait and those in flight.
    deadline_set deadlines_;
    started_list started_;
    std::uint64_t queued_ = 0;
    std::uint64_t in_flight_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t oversize_ = 0;
    /// What find_overtaking found, as long as nothing has changed since: it is asked again and again while it is
    /// polled.
    std::optional<request*> overtaking_;
};

} // namespace coaccel::detail

#endif
