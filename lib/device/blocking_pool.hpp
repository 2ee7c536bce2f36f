#ifndef COACCEL_DEVICE_BLOCKING_POOL_HPP
#define COACCEL_DEVICE_BLOCKING_POOL_HPP

#include <boost/asio/execution_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <mutex>
#include <optional>

namespace coaccel::detail {

/// The threads for what may not run on the caller's executor: making and ending contexts. One pool for
/// all devices of an execution context, started on first use.
class blocking_pool : public boost::asio::execution_context::service {
public:
    using key_type = blocking_pool;
    static boost::asio::execution_context::id id;

    explicit blocking_pool(boost::asio::execution_context& owner);
    ~blocking_pool() override;

    void run(std::function<void()> job);

private:
    void shutdown() override;

    std::mutex mutex_;
    std::optional<boost::asio::thread_pool> threads_;
    bool closed_ = false;
};

} // namespace coaccel::detail

#endif
