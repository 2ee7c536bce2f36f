#ifndef COACCEL_DEVICE_BLOCKING_POOL_HPP
#define COACCEL_DEVICE_BLOCKING_POOL_HPP

#include "posix/thread_pool.hpp"

#include <boost/asio/execution_context.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace coaccel::detail {

/// The threads for blocking operations, which must not run on the caller's executor. One pool for all devices of an
/// execution context, started on first use.
class COACCEL_DECL blocking_pool : public boost::asio::execution_context::service {
public:
    using key_type = blocking_pool;
    static boost::asio::execution_context::id id;

    /// Each kind has its own threads: a device whose context was lost does not wait for a compilation. Nor does it wait
    /// for another device, whose operation may last as long as a worker takes to start or to end.
    enum class kind : std::uint8_t {
        /// Creating and destroying contexts.
        contexts,
        /// Compiling. Jobs that have not begun when the execution context is destroyed are dropped.
        compiling,
        /// Copying large amounts of memory. Dropped like compilations.
        copying,
    };

    explicit blocking_pool(boost::asio::execution_context& owner);
    ~blocking_pool() override;

    /// `hurry` is called if the execution context is destroyed while the job waits or runs; it makes the job end soon.
    /// False: no thread could be started, or memory is short; the job is not run.
    bool run(kind what, std::function<void()> job, std::function<void()> hurry = {});

private:
    void forget_parents_threads() noexcept;
    void shutdown() override;
    void notify_fork(boost::asio::execution_context::fork_event event) override;

    std::mutex mutex_;
    std::list<std::function<void()>> hurries_;
    std::array<std::unique_ptr<thread_pool>, 3> threads_;
    std::atomic<bool> closed_{false};
    /// The fork count of the process that has the threads.
    std::atomic<std::uint32_t> forks_;
};

} // namespace coaccel::detail

#endif
