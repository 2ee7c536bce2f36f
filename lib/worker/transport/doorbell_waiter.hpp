#ifndef COACCEL_WORKER_TRANSPORT_DOORBELL_WAITER_HPP
#define COACCEL_WORKER_TRANSPORT_DOORBELL_WAITER_HPP

#include "context/context.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <atomic>
#include <memory>
#include <mutex>

namespace coaccel::worker {

namespace asio = boost::asio;

/// Waits for a doorbell on the executor, and requests a turn when it rings. It counts as outstanding work of the
/// executor only while it is armed.
class COACCEL_DECL doorbell_waiter : public std::enable_shared_from_this<doorbell_waiter> {
public:
    /// Null if no descriptors are left. The events must outlive the waiter, or `stop` must be called before their end.
    static std::shared_ptr<doorbell_waiter> create(const asio::any_io_executor& ex, int bell,
                                                   detail::context_events& events);

    doorbell_waiter(asio::posix::stream_descriptor d, detail::context_events& events)
        : descriptor_(std::move(d)), events_(&events)
    {}

    /// Only in the device's turn.
    void arm();
    void disarm() noexcept;
    /// From any thread; no turn is requested afterwards.
    void stop() noexcept;
    void wake() noexcept;

private:
    asio::posix::stream_descriptor descriptor_;
    std::atomic<bool> armed_{false};
    std::mutex mutex_;
    detail::context_events* events_;
};

} // namespace coaccel::worker

#endif
