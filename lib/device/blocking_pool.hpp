#ifndef COACCEL_DEVICE_BLOCKING_POOL_HPP
#define COACCEL_DEVICE_BLOCKING_POOL_HPP

#include "device/growing_pool.hpp"

#include <boost/asio/execution_context.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

namespace coaccel::detail {

/// The threads for what may not run on the caller's executor. One pool for all devices of an execution context, started
/// on first use.
class COACCEL_DECL blocking_pool : public boost::asio::execution_context::service {
public:
    using key_type = blocking_pool;
    static boost::asio::execution_context::id id;

    /// Each has threads of its own: a device whose context was lost does not wait for somebody's compiler. Nor for
    /// another device: one may take as long as it takes a worker to start, or to end.
    enum class kind : std::uint8_t {
        /// Making and ending contexts.
        contexts,
        /// Compiling. What has not begun when the execution context goes is dropped.
        compiling,
    };

    explicit blocking_pool(boost::asio::execution_context& owner);
    ~blocking_pool() override;

    /// `hurry` is called, while the job waits or runs, when the execution context goes and everything has to end.
    void run(kind what, std::function<void()> job, std::function<void()> hurry = {});

private:
    void forget_parents_threads() noexcept;
    void shutdown() override;
    void notify_fork(boost::asio::execution_context::fork_event event) override;

    std::mutex mutex_;
    std::list<std::function<void()>> hurries_;
    std::array<std::unique_ptr<growing_pool>, 2> threads_;
    std::atomic<bool> closed_{false};
    /// In which process the threads are.
    std::atomic<std::uint32_t> forks_;
};

} // namespace coaccel::detail

#endif
