#ifndef COACCEL_DETAIL_POST_WITH_HPP
#define COACCEL_DETAIL_POST_WITH_HPP

#include <coaccel/core/config.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/allocator.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/thread_pool.hpp>

#include <type_traits>
#include <utility>

namespace coaccel::detail {

/// Posts f, in memory of this allocator as far as the executor allows.
///
/// An any_io_executor does not: it takes two allocations from a cache of two blocks, so that a burst of
/// completions goes to the heap. Most often it holds one of Asio's own executors, and those do.
template <class Executor, class Allocator, class Function>
void post_with(const Executor& ex, const Allocator& alloc, Function&& f)
{
    if constexpr (std::is_same_v<Executor, asio::any_io_executor>) {
        if (const auto* io = ex.template target<asio::io_context::executor_type>())
            return post_with(*io, alloc, std::forward<Function>(f));
        if (const auto* pool = ex.template target<asio::thread_pool::executor_type>())
            return post_with(*pool, alloc, std::forward<Function>(f));
    }
    asio::prefer(asio::require(ex, asio::execution::blocking.never), asio::execution::relationship.fork,
                 asio::execution::allocator(alloc))
        .execute(std::forward<Function>(f));
}

inline bool runs_here(const asio::io_context::executor_type& ex) noexcept
{
    return ex.running_in_this_thread();
}

/// Whether this is a thread of the executor's, as far as one can tell.
inline bool runs_here(const asio::any_io_executor& ex) noexcept
{
    if (const auto* io = ex.target<asio::io_context::executor_type>())
        return io->running_in_this_thread();
    if (const auto* pool = ex.target<asio::thread_pool::executor_type>())
        return pool->running_in_this_thread();
    return false;
}

} // namespace coaccel::detail

#endif
