#ifndef COACCEL_DEVICE_ADMISSION_HPP
#define COACCEL_DEVICE_ADMISSION_HPP

#include "device/instance_pool.hpp"

#include <coaccel/core/detail/request.hpp>
#include <coaccel/device/device_options.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <optional>
#include <vector>

namespace coaccel::detail {

/// The admission queue: which requests wait, which may start next, and which have exceeded their deadline. First come,
/// first served, with one exception: while a transfer waits for bytes in flight to complete, requests that move no host
/// bytes may overtake it if they share no buffer with any request they overtake. The run of a plan waits in the pool of
/// the plan's instances until one is free, and delays only other runs of that plan, and of plans that have states in
/// common with it.
///
/// Suspects are requests that were on a context when it died. Each of them runs alone, so that it is known whether it
/// is the cause; as long as there are any, all other requests wait.
///
/// The class has no clock and starts nothing itself.
class COACCEL_DECL admission {
public:
    using time_point = exec_options::clock::time_point;

    explicit admission(const queue_limits& limits) noexcept : limits_(limits) {}
    ~admission();

    /// Accepts a request, or returns why not. `open`: the device could start a request now.
    error_code offer(request& r, bool open, time_point now) noexcept;

    /// Accepts the run of a plan that must be alone on the device, as a suspect, although it has not been lost.
    /// Suspects are not limited in number.
    error_code offer_alone(request& r, time_point now) noexcept;
    /// Waiting suspects have waited long enough for requests that were started before: they are no suspects any more.
    void stop_isolating_waiting();

    /// Whether `offer` would return errc::queue_full because of waiting requests, some of which could be started first.
    bool would_refuse(const request& r) const noexcept;

    /// Queues a request again that was on a context when it died. `how`: suspect or prime.
    void put_back(request& r, suspicion how) noexcept;
    /// Whether there are suspects, so that only one request may be on the device at a time.
    bool isolating() const noexcept { return suspects_ > 0; }
    /// Whether the request whose turn it is must wait for a suspect to end.
    bool occupied() const noexcept { return isolating() && in_flight_ > beside_.size(); }
    /// A suspect on the device takes so long that others start beside it: it is no suspect any more.
    void stop_isolating(request& r);

    /// The instances of a plan. The pool must be removed before it is destroyed, and have no runs then.
    void add_pool(instance_pool& pool) { pools_.push_back(&pool); }
    void remove_pool(instance_pool& pool) noexcept { std::erase(pools_, &pool); }
    /// An instance can be used.
    void add_instance(instance_pool& pool, std::uint32_t instance) noexcept;
    /// The context is gone and with it all instances: their runs that have not been started wait for others.
    void forget_instances() noexcept;
    /// Removes a run that waits for an instance of this pool; null: there is none.
    request* pop(instance_pool& pool) noexcept;

    /// The waiting request that arrived first. Runs that wait for an instance and suspects do not count: they use no
    /// memory of the callers on the device.
    request* oldest() noexcept
    {
        auto* first = static_cast<request*>(queue_.front());
        return again_.empty() ? first : earlier(first, again_.begin());
    }

    /// The waiting request whose turn it is: a suspect, if there are any.
    request* front() noexcept
    {
        if (!isolating())
            return oldest();
        return ready_suspects_.empty() ? nullptr : &*ready_suspects_.begin();
    }

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
    struct expires_before {
        bool operator()(const request& a, const request& b) const noexcept
        {
            return a.options.deadline < b.options.deadline;
        }
    };

    using deadline_set =
        boost::intrusive::multiset<request, boost::intrusive::member_hook<request, set_hook, &request::by_deadline>,
                                   boost::intrusive::compare<expires_before>,
                                   boost::intrusive::constant_time_size<false>>;

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
    request* earlier(request* in_queue, ordered_requests::iterator in_again) noexcept;
    void note_waiting(request& r) noexcept;
    request* after(request& r) noexcept;
    request* find_next(order how) noexcept;
    request* find_overtaking() noexcept;
    void unpark(instance_pool& pool) noexcept;
    void give_back_instance(request& r) noexcept;
    bool take_back_instance(instance_pool& pool) noexcept;
    void set_ready(request& r) noexcept;
    void clear_suspicion(request& r) noexcept;
    void park_all(ordered_requests& from) noexcept;
    bool may_overtake_all(const request& r) noexcept;

    queue_limits limits_;
    /// Runs that waited for an instance, ordered by arrival.
    ordered_requests again_;
    /// Suspects that need not wait for an instance.
    ordered_requests ready_suspects_;
    /// All suspects, waiting or on the device.
    std::size_t suspects_ = 0;
    /// Requests on the device beside which others start, although they were suspects.
    std::vector<const request*> beside_;
    async_op_list queue_;
    /// Hold the runs of plans that wait for an instance.
    std::vector<instance_pool*> pools_;
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
