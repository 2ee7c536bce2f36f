#include "core/log_queue.hpp"
#include "posix/scoped_signal_block.hpp"

#include <coaccel/core/log.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

namespace coaccel {
namespace {

using std::chrono::nanoseconds;

// How long the thread waits for another message before it ends.
constexpr auto linger = std::chrono::milliseconds(100);
constexpr auto exit_patience = std::chrono::milliseconds(500);
// How often a write that waits for room checks whether the message is still wanted.
constexpr int poll_milliseconds = 50;
// A pipe that poll() reports as writable accepts this many bytes without blocking.
constexpr std::size_t largest_write = 4096;

std::atomic<log_level> threshold{log_level::warning};

/// The queue, the sink, and the thread that delivers from the queue to the sink. The thread exists only while there are
/// messages to deliver and for `linger` afterwards.
class logger {
public:
    static logger& instance() noexcept;

    void set(log_level least, log_sink sink);
    void add(log_level level, std::string_view message, void (*receiver)(std::string_view)) noexcept;
    bool flush(nanoseconds timeout) noexcept;

private:
    using sink_ptr = std::shared_ptr<const log_sink>;
    using clock = std::chrono::steady_clock;

    static void before_fork() noexcept;
    static void after_fork() noexcept;
    static void in_child() noexcept;
    static void at_exit() noexcept;

    void start() noexcept;
    void run() noexcept;
    void deliver(const detail::log_message& m, const log_sink* sink, std::uint64_t epoch) noexcept;
    void write_error(const detail::log_message& m, std::uint64_t epoch);
    bool on_own_thread() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }
    void close() noexcept;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::condition_variable idle_;
    detail::log_queue queue_;
    // Null: the standard error.
    sink_ptr sink_;
    // The sink that is being called.
    const log_sink* called_ = nullptr;
    // Changes with the sink, and at exit.
    std::atomic<std::uint64_t> epoch_{0};
    std::uint64_t added_ = 0;
    std::uint64_t handled_ = 0;
    int flushing_ = 0;
    bool running_ = false;
    bool closed_ = false;
    std::thread thread_;
};

std::atomic<logger*> current{nullptr};
// In a forked child, the logger of its parent. This pointer keeps leak checkers from reporting it.
std::atomic<logger*> of_parent{nullptr};

// Never destroyed: devices may log until the very end of the program.
logger& logger::instance() noexcept
{
    [[maybe_unused]] static const bool once = [] {
        current.store(new logger, std::memory_order_release);
        (void)::pthread_atfork(&logger::before_fork, &logger::after_fork, &logger::in_child);
        (void)std::atexit([] { logger::at_exit(); });
        return true;
    }();
    return *current.load(std::memory_order_acquire);
}

void logger::before_fork() noexcept
{
    instance().mutex_.lock();
}

void logger::after_fork() noexcept
{
    instance().mutex_.unlock();
}

// The thread and the callers that wait for it exist only in the parent, which delivers the queued messages. The old
// logger is not destroyed: the sink itself may have forked, and its thread continues in the old logger.
void logger::in_child() noexcept
{
    logger& old = instance();
    auto* const fresh = new logger;
    fresh->sink_ = old.sink_;
    fresh->closed_ = old.closed_;
    current.store(fresh, std::memory_order_release);
    of_parent.store(&old, std::memory_order_relaxed);
    old.mutex_.unlock();
}

void logger::at_exit() noexcept
{
    instance().close();
}

void logger::close() noexcept
{
    (void)flush(exit_patience);
    std::unique_lock lock(mutex_);
    closed_ = true;
    if (on_own_thread())
        return;
    epoch_.fetch_add(1, std::memory_order_relaxed);
    changed_.notify_all();
    // A sink that blocks is abandoned; a write to the standard error sees the new epoch and returns.
    if (idle_.wait_for(lock, std::chrono::milliseconds(4 * poll_milliseconds), [this] { return !running_; }) &&
        thread_.joinable())
        thread_.join();
}

void logger::set(log_level least, log_sink sink)
{
    auto next = sink ? std::make_shared<const log_sink>(std::move(sink)) : sink_ptr();
    // Destroyed outside the lock, because it is user code.
    sink_ptr former;
    std::unique_lock lock(mutex_);
    threshold.store(least, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_relaxed);
    former = std::exchange(sink_, std::move(next));
    if (former && !on_own_thread())
        idle_.wait(lock, [&] { return called_ != former.get(); });
    lock.unlock();
}

void logger::add(log_level level, std::string_view message, void (*receiver)(std::string_view)) noexcept
{
    const std::scoped_lock lock(mutex_);
    if (closed_)
        return;
    try {
        queue_.push(level, message, receiver);
    } catch (const std::exception&) {
        queue_.drop();
    }
    ++added_;
    if (running_)
        changed_.notify_one();
    else
        start();
}

/// Called under the mutex. If no thread can be started, the messages wait until the next one is logged.
void logger::start() noexcept
try {
    // The previous thread has left its loop and only needs to be joined.
    if (thread_.joinable())
        thread_.join();
    const detail::scoped_signal_block inherited;
    thread_ = std::thread([this] { run(); });
    running_ = true;
} catch (const std::exception&) {
    running_ = false;
}

bool logger::flush(nanoseconds timeout) noexcept
{
    std::unique_lock lock(mutex_);
    if (on_own_thread())
        return false;
    if (!running_ && !queue_.empty() && !closed_)
        start();
    const auto wanted = added_;
    ++flushing_;
    changed_.notify_all();
    const bool done = idle_.wait_for(lock, std::min<nanoseconds>(timeout, std::chrono::hours(24)),
                                     [&] { return !running_ || (handled_ >= wanted && !queue_.empty()); });
    --flushing_;
    if (!running_ && thread_.joinable())
        thread_.join();
    return done && (queue_.empty() || handled_ >= wanted);
}

void logger::run() noexcept
{
    std::unique_lock lock(mutex_);
    for (;;) {
        // Dropped messages count as handled once all messages before them are handled.
        if (queue_.empty())
            handled_ = added_;
        const bool ends = closed_ || flushing_ > 0;
        if (queue_.empty() && !ends)
            changed_.wait_for(lock, linger, [this] { return closed_ || flushing_ > 0 || !queue_.empty(); });
        if (closed_ || queue_.empty()) {
            running_ = false;
            idle_.notify_all();
            return;
        }
        std::optional<detail::log_message> next;
        try {
            next = queue_.pop();
        } catch (const std::exception&) {
            // No memory for the count of dropped messages: it is lost. Retrying would spin with the mutex held.
            queue_.forget_dropped();
            continue;
        }
        sink_ptr sink = sink_;
        const auto epoch = epoch_.load(std::memory_order_relaxed);
        called_ = next->receiver ? nullptr : sink.get();
        lock.unlock();
        deliver(*next, sink.get(), epoch);
        // Before the lock, because this may destroy the sink.
        sink.reset();
        lock.lock();
        called_ = nullptr;
        ++handled_;
        idle_.notify_all();
    }
}

void logger::deliver(const detail::log_message& m, const log_sink* sink, std::uint64_t epoch) noexcept
try {
    if (m.receiver)
        return m.receiver(m.text);
    if (m.level < threshold.load(std::memory_order_relaxed))
        return;
    if (sink)
        return (*sink)(m.level, m.text);
    write_error(m, epoch);
} catch (...) {
    // Only this message is lost, whatever the user's function throws.
}

/// Not through stdio: a write that blocks would hold the lock of stdio.
void logger::write_error(const detail::log_message& m, std::uint64_t epoch)
{
    std::string line;
    line.append("coaccel: ").append(to_string(m.level)).append(": ").append(m.text).append("\n");
    for (std::string_view left = line; !left.empty();) {
        pollfd room{STDERR_FILENO, POLLOUT, 0};
        const int ready = ::poll(&room, 1, poll_milliseconds);
        if (ready == 0 || (ready < 0 && errno == EINTR)) {
            if (epoch_.load(std::memory_order_relaxed) != epoch)
                return;
            continue;
        }
        if (ready < 0 || (room.revents & POLLOUT) == 0)
            return;
        const auto n = ::write(STDERR_FILENO, left.data(), std::min(left.size(), largest_write));
        if (n >= 0)
            left.remove_prefix(static_cast<std::size_t>(n));
        else if (errno != EINTR && errno != EAGAIN)
            return;
    }
}

} // namespace

std::string_view to_string(log_level level) noexcept
{
    switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
    case log_level::off: return "off";
    }
    return "unknown";
}

void set_log_sink(log_level least, log_sink sink)
{
    logger::instance().set(least, std::move(sink));
}

bool flush_log(nanoseconds timeout) noexcept
{
    return logger::instance().flush(timeout);
}

namespace detail {

bool log_enabled(log_level level) noexcept
{
    return level != log_level::off && level >= threshold.load(std::memory_order_relaxed);
}

void log(log_level level, std::string_view message) noexcept
{
    if (log_enabled(level))
        logger::instance().add(level, message, nullptr);
}

void log_to(void (*receiver)(std::string_view), std::string_view message) noexcept
{
    logger::instance().add(log_level::off, message, receiver);
}

} // namespace detail

} // namespace coaccel
