#ifndef COACCEL_DEVICE_INSTANCE_POOL_HPP
#define COACCEL_DEVICE_INSTANCE_POOL_HPP

#include <coaccel/core/detail/request.hpp>

#include <boost/assert.hpp>
#include <boost/intrusive/set.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace coaccel::detail {

struct runs_before {
    bool operator()(const request& a, const request& b) const noexcept
    {
        return a.suspicion != b.suspicion ? a.suspicion < b.suspicion : a.sequence < b.sequence;
    }
};

/// Suspects first, then all others, each in the order of their arrival.
using ordered_requests =
    boost::intrusive::multiset<request, boost::intrusive::member_hook<request, set_hook, &request::by_sequence>,
                               boost::intrusive::compare<runs_before>, boost::intrusive::constant_time_size<false>>;

/// The instances of a loaded plan that no run uses, and the runs that wait for one. Plans with common states share one
/// queue of waiting runs, because their runs happen in the order of their arrival.
class instance_pool {
public:
    /// `most`: the number of instances that there will ever be. `common`: the queue that it shares; null: its own.
    explicit instance_pool(std::size_t most, ordered_requests* common = nullptr)
        : ring_(most), waiting_(common ? *common : own_)
    {}
    instance_pool(const instance_pool&) = delete;
    instance_pool& operator=(const instance_pool&) = delete;

    bool has_free() const noexcept { return free_ > 0; }
    std::size_t free() const noexcept { return free_; }
    std::size_t capacity() const noexcept { return ring_.size(); }

    /// The instance that has been unused for longest, so that runs are spread over all of them.
    /// Preconditions: has_free().
    std::uint32_t take() noexcept
    {
        BOOST_ASSERT(has_free());
        const std::uint32_t taken = ring_[first_];
        first_ = (first_ + 1) % ring_.size();
        --free_;
        return taken;
    }

    void add(std::uint32_t instance) noexcept
    {
        BOOST_ASSERT(free_ < ring_.size());
        ring_[(first_ + free_) % ring_.size()] = instance;
        ++free_;
    }

    void clear() noexcept { free_ = 0; }

    /// Whether a run that arrives gets an instance: there is one, and no earlier run waits.
    bool is_open() const noexcept { return has_free() && waiting_.empty(); }

    /// Whether runs of this plan wait.
    bool has_waiting() const noexcept { return parked_ > 0; }

    /// How many runs of this plan wait.
    std::size_t parked() const noexcept { return parked_; }

    /// Whether a run waits for another instance, and not only for its turn.
    bool is_short() const noexcept { return parked_ > 0 && !has_free(); }

    void park(request& r) noexcept
    {
        r.parked = true;
        ++parked_;
        // Most runs arrive after those that wait.
        waiting_.insert(waiting_.end(), r);
    }

    void unpark(request& r) noexcept
    {
        r.parked = false;
        --parked_;
        waiting_.erase(waiting_.iterator_to(r));
    }

    /// Waiting runs, those of plans with common states included.
    ordered_requests& waiting() noexcept { return waiting_; }

private:
    std::vector<std::uint32_t> ring_;
    std::size_t first_ = 0;
    std::size_t free_ = 0;
    /// How many of its own runs wait.
    std::size_t parked_ = 0;
    ordered_requests own_;
    ordered_requests& waiting_;
};

} // namespace coaccel::detail

#endif
