#ifndef COACCEL_DEVICE_BLOCKING_POOL_HPP
#define COACCEL_DEVICE_BLOCKING_POOL_HPP

#include <boost/asio/execution_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace coaccel::detail {

/// The threads for what may not run on the caller's executor: making and ending contexts. One pool for
/// all devices of an execution context, started on first use.
class blocking_pool : public boost::asio::execution_context::service {
public:
    using key_type = blocking_pool;
    static boost::asio::execution_context::id id;

    explicit blocking_pool(boost::asio::execution_context& owner);
    ~blocking_pool() override;

    /// `hurry` is called, while the job waits or runs, when the execution context goes and everything has to end.
    void run(std::function<void()> job, std::function<void()> hurry = {});

private:
    void shutdown() override;
    void notify_fork(boost::asio::execution_context::fork_event event) override;

    std::mutex mutex_;
    std::list<std::function<void()>> hurries_;
    std::unique_ptr<boost::asio::thread_pool> threads_;
    bool closed_ = false;
};

} // namespace coaccel::detail

#endif
