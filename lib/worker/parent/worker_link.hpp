#ifndef COACCEL_WORKER_PARENT_WORKER_LINK_HPP
#define COACCEL_WORKER_PARENT_WORKER_LINK_HPP

#include "posix/child_process.hpp"
#include "posix/environment.hpp"
#include "posix/shared_memory.hpp"
#include "worker/parent/heartbeat_monitor.hpp"
#include "worker/process/end_report.hpp"
#include "worker/process/line_limit.hpp"
#include "worker/process/process_monitor.hpp"
#include "worker/protocol/wire.hpp"
#include "worker/transport/descriptor_socket.hpp"
#include "worker/transport/doorbell.hpp"

#include <coaccel/core/log.hpp>
#include <coaccel/worker/worker_options.hpp>

#include <condition_variable>
#include <mutex>
#include <string>

namespace coaccel::worker {

/// How a worker process is started and watched.
struct link_plan {
    std::string program;
    std::optional<std::string> plugin{};
    /// The environment of this process at the time the device was made.
    std::shared_ptr<const detail::environment> environment{};
    worker_setup setup;
    int staging_fd = -1;
    std::chrono::nanoseconds start_timeout{};
    std::chrono::nanoseconds heartbeat{};
    /// Null: the log of this process.
    void (*log)(std::string_view line) = nullptr;
    /// The number of the device, for messages; 0: no device.
    std::uint32_t device = 0;
    bool core_dumps = false;
    /// The CPUs on which the worker may run; empty: those of the thread that starts it.
    detail::cpu_mask affinity{};
    /// How long to wait for the end of a killed worker: a driver call may delay it for any time.
    std::chrono::nanoseconds patience = std::chrono::seconds(10);
};

/// A worker process and the memory shared with it. The destructor ends the process.
class COACCEL_DECL worker_link final : process_observer {
public:
    static result<std::unique_ptr<worker_link>> start(const link_plan& plan);

    worker_link(const link_plan& plan, detail::shared_memory control, doorbell requests, doorbell replies,
                detail::unique_fd lifeline, descriptor_socket descriptors, detail::child_process child,
                std::shared_ptr<process_monitor> watch);
    worker_link(const worker_link&) = delete;
    worker_link& operator=(const worker_link&) = delete;
    /// Blocks like wait_for_end(). A process that has not ended by then is left to the process_monitor.
    ~worker_link();

    /// What a worker is waited for, for the log: its context is used from now on, or later.
    enum class purpose : std::uint8_t { context, standby };

    /// Blocks until the worker has its context, at most for the start timeout.
    ///
    /// Errors: those that the worker reports, or errc::worker_mismatch, worker_late, worker_exited, worker_killed, …
    error_code wait_until_ready(purpose what = purpose::context);

    ring_writer& requests() noexcept { return requests_; }
    ring_reader& replies() noexcept { return replies_; }
    /// The worker rings it when there are replies and the reader sleeps. A wait() also ends when the worker is doomed
    /// or has ended, of which the listener is notified.
    doorbell& reply_bell() noexcept { return reply_bell_; }
    descriptor_socket& descriptors() noexcept { return descriptors_; }
    /// Call after writing a request.
    void wake_worker() noexcept;

    const std::string& backend() const noexcept { return backend_; }
    const hardware_info& hardware() const noexcept { return hardware_; }
    /// Whether its context can export memory.
    bool can_export() const noexcept { return exporting_ == exporting::yes; }
    const gauges& now() const noexcept { return control().now; }
    std::chrono::nanoseconds start_timeout() const noexcept { return plan_.start_timeout; }
    int process() const noexcept { return child_.pid(); }

    /// Ends the worker. `why` becomes the reason for its end unless it already has one.
    void end(errc why) noexcept;
    /// The worker has ended, or was killed and will end: no more replies are expected. It may still write to shared
    /// memory.
    bool is_doomed() const noexcept { return doomed_.load(std::memory_order_acquire); }
    bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }
    /// Blocks until the worker has ended, but once it is doomed no longer than link_plan::patience.
    ///
    /// Returns false if it has not ended: memory that it may write to must not be reused.
    bool wait_for_end() noexcept;
    /// Why the worker ended or is about to end, with a message that names the process.
    error_code reason() const;
    /// What ended it, or is about to end it.
    detail::loss_cause cause() const noexcept;

    /// Sets the function that is called, from any thread, when the worker is doomed and again when it has ended. An
    /// empty one disables the notification.
    void listen(notification n) noexcept;

    /// Logs one line about the worker.
    void log(log_level level, std::string_view line) const noexcept;

private:
    // process_observer
    void said(std::string_view line) noexcept override;
    bool alive(process_observer::clock::time_point now) noexcept override;
    void ended() noexcept override;
    void unwatched() noexcept override;

    control_block& control() const noexcept;
    void doom(errc why) noexcept;
    void over(end_report how) noexcept;
    std::optional<int> last_word() const noexcept;
    void tell() noexcept;
    void log_text(log_level level, std::string_view text) const;
    void log_dropped(std::uint64_t lines) const noexcept;
    void leave_behind() noexcept;
    error_code read_greeting(std::span<const std::byte> record);
    void remember(std::string_view line) noexcept;
    std::string not_a_worker() const;

    const link_plan plan_;
    detail::shared_memory control_area_;
    doorbell request_bell_;
    doorbell reply_bell_;
    detail::unique_fd lifeline_;
    descriptor_socket descriptors_;
    detail::child_process child_;
    detail::unique_fd errors_;
    std::shared_ptr<process_monitor> watch_;
    ring_writer requests_;
    ring_reader replies_;
    std::string backend_;
    hardware_info hardware_;
    exporting exporting_ = exporting::no;

    std::atomic<bool> doomed_{false};
    std::atomic<bool> ended_{false};
    std::atomic<bool> answered_{false};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    errc reason_{};
    /// The first line of its standard error before it attached.
    std::string first_words_;
    process_observer::clock::time_point doomed_at_{};
    // Whether end() ended it.
    bool ended_here_ = false;
    end_report end_;
    notification listener_;

    const process_observer::clock::time_point began_;
    // Used only by the thread of the process_monitor.
    heartbeat_monitor heartbeat_;
    line_limit lines_;
};

} // namespace coaccel::worker

#endif
