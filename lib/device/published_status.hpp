#ifndef COACCEL_DEVICE_PUBLISHED_STATUS_HPP
#define COACCEL_DEVICE_PUBLISHED_STATUS_HPP

#include <coaccel/actor/watch.hpp>
#include <coaccel/device/device_state.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <atomic>

namespace coaccel::detail {

/// The state and the generation of a device, as its watches see them. Set in the device's turns, read on any thread.
class published_status {
public:
    explicit published_status(const asio::any_io_executor& ex)
        : state_(ex, device_status{}), generation_(ex, generation{0})
    {}

    /// Tells the watches if something has changed. `busy`: requests are in flight. The watches are not told of that,
    /// because it changes with every request.
    void set(const device_status& current, bool busy)
    {
        busy_.store(busy, std::memory_order_relaxed);
        if (current == last_)
            return;
        last_ = current;
        state_.publish(current);
    }

    void set(generation g) { generation_.publish(g); }

    device_status status() const
    {
        device_status s = state_.get();
        if (s.state == device_state::ready && busy())
            s.state = device_state::busy;
        return s;
    }
    bool busy() const noexcept { return busy_.load(std::memory_order_relaxed); }
    watch<device_status> watch_state() const { return state_.subscribe(); }
    watch<generation> watch_generation() const { return generation_.subscribe(); }

    /// The device has stopped: nothing follows.
    void close()
    {
        state_.close();
        generation_.close();
    }

private:
    device_status last_;
    watch_source<device_status> state_;
    watch_source<generation> generation_;
    std::atomic<bool> busy_{false};
};

} // namespace coaccel::detail

#endif
