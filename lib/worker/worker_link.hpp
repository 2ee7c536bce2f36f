#ifndef COACCEL_WORKER_WORKER_LINK_HPP
#define COACCEL_WORKER_WORKER_LINK_HPP

#include "core/environment.hpp"
#include "worker/child_process.hpp"
#include "worker/doorbell.hpp"
#include "worker/end_report.hpp"
#include "worker/line_limit.hpp"
#include "worker/overseer.hpp"
#include "worker/pulse.hpp"
#include "worker/shared_area.hpp"
#include "worker/wire.hpp"

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
    /// That of the process, as it was when the device was made.
    std::shared_ptr<const detail::environment> environment{};
    worker_setup setup;
    int staging_fd = -1;
    std::chrono::nanoseconds start_timeout{};
    std::chrono::nanoseconds heartbeat{};
    /// Null: the log of the process.
    void (*log)(std::string_view line) = nullptr;
    /// Of the device, for messages; 0: of none.
    std::uint32_t device = 0;
    bool core_dumps = false;
    /// The CPUs that the worker may run on; empty: those of the thread that starts it.
    cpu_mask affinity{};
    /// How long to wait for the end of one that was killed: a call of the driver may hold it for any time.
    std::chrono::nanoseconds patience = std::chrono::seconds(10);
};

/// One worker process and the memory in which one talks with it. Ends the process when it goes.
class COACCEL_DECL worker_link final : ward {
public:
    static result<std::unique_ptr<worker_link>> start(const link_plan& plan);

    worker_link(const link_plan& plan, shared_area control, doorbell requests, doorbell replies, unique_fd lifeline,
                child_process child, std::shared_ptr<overseer> watch);
    worker_link(const worker_link&) = delete;
    worker_link& operator=(const worker_link&) = delete;
    /// Blocks like wait_for_end(). A process that has not ended then is left to the overseer.
    ~worker_link();

    /// Blocks until the worker has its context, at most as long as the plan allows.
    ///
    /// Errors: what the worker says, or errc::worker_mismatch, worker_late, worker_exited, worker_killed, …
    error_code wait_until_ready();

    ring_writer& requests() noexcept { return requests_; }
    ring_reader& replies() noexcept { return replies_; }
    /// The worker rings it when there are replies for a sleeping reader. A wait() also ends when the worker is doomed
    /// or has ended, which a listener is told.
    doorbell& reply_bell() noexcept { return reply_bell_; }
    /// After something was written.
    void wake_worker() noexcept;

    const std::string& backend() const noexcept { return backend_; }
    const hardware_info& hardware() const noexcept { return hardware_; }
    const gauges& now() const noexcept { return control().now; }
    std::chrono::nanoseconds start_timeout() const noexcept { return plan_.start_timeout; }
    int process() const noexcept { return child_.pid(); }

    /// Ends the worker, for a reason that becomes that of its end unless it already has one.
    void end(errc why) noexcept;
    /// It has ended, or was killed and will: nothing is to be hoped from it. It may still write to shared memory.
    bool is_doomed() const noexcept { return doomed_.load(std::memory_order_acquire); }
    bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }
    /// Blocks until it has ended, but once it is doomed no longer than the plan has patience.
    ///
    /// False: it has not, and what it may write to must not be given to others.
    bool wait_for_end() noexcept;
    /// Why it ended, or is about to, with a message that names the process.
    error_code reason() const;

    /// Told, from any thread, when the worker is doomed, and again when it has ended. An empty one: nobody is.
    void listen(notification n) noexcept;

    /// One line about the worker.
    void log(log_level level, std::string_view line) const noexcept;

private:
    // ward
    void said(std::string_view line) noexcept override;
    bool alive(ward::clock::time_point now) noexcept override;
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
    shared_area control_area_;
    doorbell request_bell_;
    doorbell reply_bell_;
    unique_fd lifeline_;
    child_process child_;
    unique_fd errors_;
    std::shared_ptr<overseer> watch_;
    ring_writer requests_;
    ring_reader replies_;
    std::string backend_;
    hardware_info hardware_;

    std::atomic<bool> doomed_{false};
    std::atomic<bool> ended_{false};
    std::atomic<bool> answered_{false};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    errc verdict_{};
    /// The first line of its standard error, until it has attached.
    std::string first_words_;
    ward::clock::time_point doomed_at_{};
    // Whether it was ended by end().
    bool ended_here_ = false;
    end_report end_;
    notification listener_;

    const ward::clock::time_point began_;
    // Of the overseer's thread.
    pulse pulse_;
    line_limit lines_;
};

} // namespace coaccel::worker

#endif
