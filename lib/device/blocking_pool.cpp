#include "device/blocking_pool.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace coaccel::detail {

namespace asio = boost::asio;

asio::execution_context::id blocking_pool::id;

blocking_pool::blocking_pool(asio::execution_context& owner) : service(owner) {}

blocking_pool::~blocking_pool() = default;

void blocking_pool::run(std::function<void()> job)
{
    const std::scoped_lock lock(mutex_);
    if (closed_)
        return;
    if (!threads_)
        threads_.emplace(2);
    asio::post(*threads_, std::move(job));
}

void blocking_pool::shutdown()
{
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
    }
    if (threads_)
        threads_->join();
}

} // namespace coaccel::detail
