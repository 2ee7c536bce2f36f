#ifndef COACCEL_CORE_DETAIL_POST_WITH_HPP
#define COACCEL_CORE_DETAIL_POST_WITH_HPP

#include <coaccel/core/config.hpp>
#include <coaccel/core/detail/block_pool.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution/allocator.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coaccel::detail {

/// Memory for one posted function at a time. It is part of the posted object, so that posting allocates nothing and
/// cannot fail. The size is that of Asio's operation for a function object with two pointers.
struct post_room {
#if defined(BOOST_ASIO_ENABLE_HANDLER_TRACKING)
    static constexpr std::size_t size = 64;
#else
    static constexpr std::size_t size = 48;
#endif

    alignas(std::max_align_t) std::byte bytes[size];
};

/// Allocates from a post_room. For Asio's own execution contexts, which deallocate before they call the function.
template <class T>
struct room_allocator {
    using value_type = T;

    explicit room_allocator(post_room& r) noexcept : room(&r) {}
    template <class U>
    room_allocator(const room_allocator<U>& other) noexcept : room(other.room)
    {}

    T* allocate(std::size_t n)
    {
        if constexpr (fits())
            if (n == 1)
                return static_cast<T*>(static_cast<void*>(room->bytes));
        return block_allocator<T>().allocate(n);
    }

    // The room may already be destroyed: it belongs to the object that is destroyed along with the function.
    void deallocate(T* p, std::size_t n) noexcept
    {
        if (!fits() || n != 1)
            block_allocator<T>().deallocate(p, n);
    }

    friend bool operator==(const room_allocator& a, const room_allocator& b) noexcept { return a.room == b.room; }

    post_room* room;

private:
    static constexpr bool fits() noexcept { return sizeof(T) <= sizeof(post_room) && alignof(T) <= alignof(post_room); }
};

template <class Executor>
inline constexpr bool is_context_executor = false;
template <class Allocator, std::uintptr_t Bits>
inline constexpr bool is_context_executor<asio::io_context::basic_executor_type<Allocator, Bits>> = true;
template <class Allocator, unsigned Bits>
inline constexpr bool is_context_executor<asio::thread_pool::basic_executor_type<Allocator, Bits>> = true;

/// Posts f, in this room if the executor belongs to one of Asio's execution contexts.
///
/// An any_io_executor makes two allocations from a cache of two blocks, so that a burst of completions uses the heap.
/// It usually holds one of Asio's own executors; these are called directly.
template <class Executor, class Function>
void post_with(const Executor& ex, post_room& room, Function&& f)
{
    if constexpr (std::is_same_v<Executor, asio::any_io_executor>) {
        if (const auto* io = ex.template target<asio::io_context::executor_type>())
            return post_with(*io, room, std::forward<Function>(f));
        if (const auto* pool = ex.template target<asio::thread_pool::executor_type>())
            return post_with(*pool, room, std::forward<Function>(f));
    }
    // Other executors may need several blocks, or keep them beyond the call. The handler's allocator is not used: it
    // may be exhausted, and a completion must not fail.
    const auto post = [&](const auto& allocator) {
        asio::prefer(asio::require(ex, asio::execution::blocking.never), asio::execution::relationship.fork,
                     asio::execution::allocator(allocator))
            .execute(std::forward<Function>(f));
    };
    if constexpr (is_context_executor<Executor>)
        post(room_allocator<void>(room));
    else
        post(block_allocator<void>());
}

/// Whether the calling thread belongs to the executor, as far as this can be determined.
inline bool runs_here(const asio::any_io_executor& ex) noexcept
{
    if (const auto* io = ex.target<asio::io_context::executor_type>())
        return io->running_in_this_thread();
    if (const auto* pool = ex.target<asio::thread_pool::executor_type>())
        return pool->running_in_this_thread();
    return false;
}

/// The execution context any of whose threads may run the functions of this executor. Null: there is none, as for a
/// strand, or it is unknown.
template <class Executor>
const asio::execution_context* context_of(const Executor& ex) noexcept
{
    if constexpr (std::is_same_v<Executor, asio::any_io_executor>) {
        if (const auto* io = ex.template target<asio::io_context::executor_type>())
            return context_of(*io);
        if (const auto* pool = ex.template target<asio::thread_pool::executor_type>())
            return context_of(*pool);
        return nullptr;
    } else if constexpr (is_context_executor<Executor>) {
        return &asio::query(ex, asio::execution::context);
    } else {
        return nullptr;
    }
}

} // namespace coaccel::detail

#endif
