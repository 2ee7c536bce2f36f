#ifndef COACCEL_WORKER_BELL_WATCH_HPP
#define COACCEL_WORKER_BELL_WATCH_HPP

#include "context/context.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <atomic>
#include <memory>
#include <mutex>

namespace coaccel::worker {

namespace asio = boost::asio;

/// Has the executor wait for a doorbell, and asks for a turn when it rings. It counts as work of the executor only
/// while it is armed.
class COACCEL_DECL bell_watch : public std::enable_shared_from_this<bell_watch> {
public:
    /// Null when there are no descriptors left. The events outlive the watch, or `stop` comes before their end.
    static std::shared_ptr<bell_watch> create(const asio::any_io_executor& ex, int bell,
                                              detail::context_events& events);

    bell_watch(asio::posix::stream_descriptor d, detail::context_events& events)
        : descriptor_(std::move(d)), events_(&events)
    {}

    /// In the device's turn.
    void arm();
    void disarm() noexcept;
    /// From any thread; nobody is asked for a turn afterwards.
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
