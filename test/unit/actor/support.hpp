#ifndef COACCEL_TEST_UNIT_ACTOR_SUPPORT_HPP
#define COACCEL_TEST_UNIT_ACTOR_SUPPORT_HPP

#include <coaccel/core/error.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace coaccel::test {

struct allocation_count {
    std::ptrdiff_t live = 0;
    std::size_t total = 0;
};

/// Counts the blocks it allocates; the test owns the count.
template <class T>
struct counting_allocator {
    using value_type = T;

    explicit counting_allocator(allocation_count* c) noexcept : count(c) {}

    template <class U>
    counting_allocator(const counting_allocator<U>& other) noexcept : count(other.count)
    {}

    T* allocate(std::size_t n)
    {
        ++count->live;
        ++count->total;
        return std::allocator<T>().allocate(n);
    }

    void deallocate(T* p, std::size_t n)
    {
        --count->live;
        std::allocator<T>().deallocate(p, n);
    }

    template <class U>
    bool operator==(const counting_allocator<U>& other) const noexcept
    {
        return count == other.count;
    }

    allocation_count* count;
};

/// Runs a context on several threads and joins them.
inline void run_on_threads(asio::io_context& ctx, int threads)
{
    std::vector<std::thread> pool;
    for (int i = 1; i < threads; ++i)
        pool.emplace_back([&ctx] { ctx.run(); });
    ctx.run();
    for (auto& t : pool)
        t.join();
}

/// The result of a handler: empty until it is called.
struct outcome_probe {
    std::optional<error_code> ec;
    int calls = 0;

    auto handler()
    {
        return [this](error_code e, auto&&...) {
            ec = e;
            ++calls;
        };
    }
};

} // namespace coaccel::test

#endif
