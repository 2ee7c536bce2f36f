#include "worker/parent/worker_link.hpp"

#include "core/escape_text.hpp"
#include "posix/fork_detector.hpp"
#include "worker/process/worker_environment.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <new>
#include <sys/socket.h>
#include <utility>

namespace coaccel::worker {
namespace {

using clock = process_observer::clock;

// Not zero: with zero the kernel still pipes the dump to a program named in core_pattern.
constexpr rlimit no_core_dump{1, 1};

// A worker can be replaced, so the kernel should kill it before its parent when memory runs out.
constexpr int oom_score_raise = 500;

result<std::array<detail::unique_fd, 2>> make_lifeline()
{
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return make_error_with_message(errc::out_of_memory,
                                       std::string("no socket for a worker: ") + std::strerror(errno));
    std::array made{detail::above_standard(ends[0]), detail::above_standard(ends[1])};
    if (!made[0] || !made[1])
        return make_error_with_message(errc::out_of_memory,
                                       std::string("no socket for a worker: ") + std::strerror(errno));
    return made;
}

std::string milliseconds_since(clock::time_point from)
{
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - from).count());
}

/// A killed process that no thread waits for any more. Once added to the process_monitor it owns itself.
class unreaped_process final : public process_observer {
public:
    unreaped_process(detail::child_process child, std::shared_ptr<process_monitor> watch) noexcept
        : child_(std::move(child)), watch_(std::move(watch))
    {}

    error_code watch() { return watch_->add(*this, child_.pidfd(), -1, {}); }

    void ended() noexcept override { delete this; }
    void said(std::string_view) noexcept override {}
    // The object leaks, because the end of the process cannot be waited for.
    void unwatched() noexcept override {}
    bool alive(clock::time_point) noexcept override { return true; }

private:
    detail::child_process child_;
    std::shared_ptr<process_monitor> watch_;
};

} // namespace

result<std::unique_ptr<worker_link>> worker_link::start(const link_plan& plan)
{
    detail::watch_forks();
    auto watch = process_monitor::shared();
    if (!watch && detail::forked())
        return make_error_with_message(errc::start_failed,
                                       "a forked child of the process that has workers cannot start any");
    if (!watch)
        return make_error_with_message(errc::out_of_memory, "no thread or no descriptors to watch over workers");
    BOOST_OUTCOME_TRY(auto control, detail::shared_memory::create(control_bytes, "coaccel-control"));
    BOOST_OUTCOME_TRY(auto requests, doorbell::create());
    BOOST_OUTCOME_TRY(auto replies, doorbell::create());
    BOOST_OUTCOME_TRY(auto lifeline, make_lifeline());
    BOOST_OUTCOME_TRY(auto descriptors, descriptor_socket::create());

    auto* block = new (control.bytes().data()) control_block;
    block->magic_number = magic;
    block->build = build_identity();
    block->setup = plan.setup;
    block->setup.beat = heartbeat_monitor::beat_of(plan.heartbeat);

    detail::child_setup how;
    how.program = plan.program;
    if (plan.plugin)
        how.arguments = {plugin_flag, *plan.plugin};
    how.environment = worker_environment(plan.environment ? *plan.environment : detail::environment{});
    if (!plan.core_dumps)
        how.core = no_core_dump;
    how.oom_score_raise = oom_score_raise;
    how.affinity = plan.affinity;
    // Workers are started one after another, so the others wait for this one.
    how.exec_limit = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(plan.start_timeout),
                                std::chrono::milliseconds(1), std::chrono::milliseconds(10'000));
    how.descriptors = {control.fd(),      plan.staging_fd,   requests.wait_fd(),
                       replies.ring_fd(), lifeline[1].get(), descriptors.second.fd()};
    BOOST_OUTCOME_TRY(auto child, detail::child_process::start(how));
    return std::make_unique<worker_link>(plan, std::move(control), std::move(requests), std::move(replies),
                                         std::move(lifeline[0]), std::move(descriptors.first), std::move(child),
                                         std::move(watch));
}

worker_link::worker_link(const link_plan& plan, detail::shared_memory control, doorbell requests, doorbell replies,
                         detail::unique_fd lifeline, descriptor_socket descriptors, detail::child_process child,
                         std::shared_ptr<process_monitor> watch)
    : plan_(plan), control_area_(std::move(control)), request_bell_(std::move(requests)),
      reply_bell_(std::move(replies)), lifeline_(std::move(lifeline)), descriptors_(std::move(descriptors)),
      child_(std::move(child)), errors_(child_.take_errors()), watch_(std::move(watch)),
      requests_(this->control().requests, control_area_.bytes().subspan(ring_offset, ring_bytes)),
      replies_(this->control().replies, control_area_.bytes().subspan(ring_offset + ring_bytes, ring_bytes)),
      began_(clock::now()), heartbeat_(plan.start_timeout, plan.heartbeat, began_), lines_(began_)
{
    // A process that cannot be watched is treated as ended.
    if (watch_->add(*this, child_.pidfd(), errors_.get(), heartbeat_.look_every())) {
        end(errc::worker_exited);
        ended();
    }
}

worker_link::~worker_link()
{
    listen({});
    end(errc::worker_exited);
    const bool gone = wait_for_end();
    watch_->remove(*this);
    if (!gone && !has_ended())
        leave_behind();
}

void worker_link::leave_behind() noexcept
try {
    log(log_level::warning, "was killed and does not end; left to end when it can");
    auto left = std::make_unique<unreaped_process>(std::move(child_), watch_);
    // If the process cannot be watched, the destructor of child_process waits for it here.
    if (!left->watch())
        (void)left.release();
} catch (const std::bad_alloc&) {
    // As above: the destructor of child_ waits.
}

control_block& worker_link::control() const noexcept
{
    return *std::launder(reinterpret_cast<control_block*>(control_area_.bytes().data()));
}

error_code worker_link::wait_until_ready(purpose what)
{
    std::vector<std::byte> record;
    const auto asked = clock::now();
    for (;;) {
        // Checked first: replies that the worker wrote before it ended still count.
        const bool over = is_doomed();
        auto got = replies_.read(record);
        if (!got) {
            end(errc::worker_corrupted);
            return reason();
        }
        if (got.value()) {
            const error_code ec = read_greeting(record);
            if (!ec && plan_.setup.standby && what == purpose::context)
                log(log_level::info, "standby took over after " + milliseconds_since(asked) + " ms; it was started " +
                                         milliseconds_since(began_) + " ms ago");
            else if (!ec)
                log(log_level::info, (what == purpose::standby ? "standby ready after " : "ready after ") +
                                         milliseconds_since(began_) + " ms");
            return ec;
        }
        if (over)
            return reason();
        if (!replies_.may_sleep())
            continue;
        // Computed as a remaining duration: an unlimited timeout cannot be added to a time point.
        const auto left = plan_.start_timeout - (clock::now() - began_);
        if (left <= left.zero()) {
            end(errc::worker_late);
            return reason();
        }
        (void)reply_bell_.wait(left);
        replies_.awake();
    }
}

error_code worker_link::read_greeting(std::span<const std::byte> record)
{
    decoder in(record);
    message_type what{};
    error_code ec;
    if (in.get(what, message_type::ready, message_type::refused)) {
        answered_.store(true, std::memory_order_relaxed);
        if (what == message_type::ready && in.get_text(backend_) && get_hardware(in, hardware_) &&
            in.get(exporting_, exporting::no, exporting::yes) && in.at_end()) {
            hardware_.process = child_.pid();
            backend_ = detail::escape_text(backend_);
            return {};
        }
        if (what == message_type::refused && in.get_error(ec) && in.at_end() && ec) {
            log(log_level::info, "refused to start: " + ec.message());
            // The next start runs in a new process, so this failure says nothing about it.
            return is_context_lost(ec) ? make_error_with_message(errc::start_failed, ec.message()) : ec;
        }
    }
    end(errc::worker_corrupted);
    return reason();
}

void worker_link::wake_worker() noexcept
{
    if (requests_.wants_bell())
        request_bell_.ring();
}

void worker_link::end(errc why) noexcept
{
    bool first = false;
    {
        const std::scoped_lock lock(mutex_);
        first = !is_doomed();
        if (first) {
            ended_here_ = true;
            doom(why);
        }
    }
    // After the reason is set, or the signal would become the reason.
    const bool killed = child_.kill();
    // The worker watches the other end and then exits. shutdown instead of close, because forked children keep the
    // descriptor open.
    if (!killed)
        ::shutdown(lifeline_.get(), SHUT_RDWR);
    if (first && !killed)
        log(log_level::warning, "cannot be killed, because this process has another user now; asked to end");
    if (first)
        reply_bell_.interrupt();
}

/// Requires the mutex. Waiting threads are notified immediately, because a killed process may take long to end.
void worker_link::doom(errc why) noexcept
{
    reason_ = why;
    doomed_at_ = clock::now();
    doomed_.store(true, std::memory_order_release);
    tell();
}

/// Requires the mutex.
void worker_link::tell() noexcept
{
    changed_.notify_all();
    if (listener_.function)
        listener_.function(listener_.argument);
}

bool worker_link::wait_for_end() noexcept
{
    if (detail::forked())
        return true;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_doomed(); });
    // Measured from doomed_at_, so that a second call does not wait for the full time again.
    const auto left = plan_.patience - (clock::now() - doomed_at_);
    return changed_.wait_for(lock, left, [this] { return has_ended(); });
}

bool worker_link::alive(clock::time_point now) noexcept
{
    log_dropped(lines_.report(now));
    const errc why = heartbeat_.look(control().beats.load(std::memory_order_relaxed), now);
    if (why == errc{})
        return true;
    end(why);
    return false;
}

void worker_link::ended() noexcept
{
    const auto how = child_.ended();
    over(how ? report_end(*how, last_word())
             : end_report{errc::worker_exited, detail::loss_cause::outside, "cannot be waited for"});
}

void worker_link::unwatched() noexcept
{
    end(errc::context_lost);
    // The program has also closed this end of the lifeline, so the worker exits.
    over({errc::context_lost, detail::loss_cause::outside,
          "can be watched no longer: the program has closed descriptors of coaccel"});
}

void worker_link::over(end_report how) noexcept
{
    bool on_request = false;
    {
        const std::scoped_lock lock(mutex_);
        end_ = std::move(how);
        if (!is_doomed()) {
            reason_ = end_.what;
            doomed_.store(true, std::memory_order_release);
        }
        on_request = ended_here_ && (reason_ == errc::worker_exited || reason_ == errc::worker_killed);
        ended_.store(true, std::memory_order_release);
        tell();
    }
    reply_bell_.interrupt();
    log_dropped(lines_.last_report());
    // The owner logs an unexpected end, with its consequence, but never to plan_.log.
    if (!on_request && !plan_.log)
        return;
    try {
        log_text(log_level::info, detail::escape_text(reason().message()));
    } catch (const std::bad_alloc&) {
        // Logging is best effort.
    }
}

/// The exit status that the worker sent before it ended.
std::optional<int> worker_link::last_word() const noexcept
{
    unsigned char status = 0;
    if (::recv(lifeline_.get(), &status, 1, MSG_DONTWAIT) != 1)
        return std::nullopt;
    return status;
}

void worker_link::remember(std::string_view line) noexcept
try {
    const std::scoped_lock lock(mutex_);
    if (first_words_.empty() && control().attached.load(std::memory_order_relaxed) == 0)
        first_words_ = detail::escape_text(line);
} catch (const std::bad_alloc&) {
    // The error message then omits this line.
}

/// Requires the mutex. For a program that ended or did not answer in time, and never attached to the shared memory.
std::string worker_link::not_a_worker() const
{
    // The exit statuses of a shell and of the dynamic loader that cannot start a program.
    const bool unable = reason_ == errc::worker_exited && (end_.text.ends_with(" 126") || end_.text.ends_with(" 127"));
    std::string text = plan_.program + (unable ? " cannot be run: it " : " is not a coaccel worker: it ");
    if (reason_ == errc::worker_exited)
        text += end_.text;
    else
        text += "did not answer within " +
                std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(plan_.start_timeout).count()) +
                " ms";
    if (!first_words_.empty())
        text += " and printed \"" + first_words_ + "\"";
    return text;
}

error_code worker_link::reason() const
{
    const std::scoped_lock lock(mutex_);
    std::string text = "worker " + std::to_string(child_.pid());
    const bool attached =
        control().attached.load(std::memory_order_relaxed) != 0 || answered_.load(std::memory_order_relaxed);
    const bool by_itself = reason_ == errc::worker_exited && has_ended() && !ended_here_;
    if (!attached && (by_itself || reason_ == errc::worker_late))
        text += ": " + not_a_worker();
    else if (reason_ == errc::worker_mismatch)
        text += ": " + plan_.program + " is of another version or build";
    else if (has_ended() && (!ended_here_ || end_.what == errc::context_lost))
        text += ' ' + end_.text;
    else if (reason_ == errc::worker_exited || reason_ == errc::worker_killed)
        text += " was ended by this process";
    else
        text += ": " + make_error_code(reason_).message();
    return make_error_with_message(reason_ == errc{} ? errc::context_lost : reason_, std::move(text));
}

detail::loss_cause worker_link::cause() const noexcept
{
    const std::scoped_lock lock(mutex_);
    if (has_ended() && !ended_here_)
        return end_.cause;
    return reason_ == errc::worker_hung || reason_ == errc::worker_corrupted ? detail::loss_cause::fault
                                                                             : detail::loss_cause::outside;
}

void worker_link::listen(notification n) noexcept
{
    const std::scoped_lock lock(mutex_);
    listener_ = n;
}

void worker_link::said(std::string_view line) noexcept
{
    remember(line);
    const auto now = clock::now();
    log_dropped(lines_.report(now));
    if (lines_.take(now))
        log(log_level::warning, line);
}

void worker_link::log_dropped(std::uint64_t lines) const noexcept
try {
    if (lines > 0)
        log(log_level::warning, std::to_string(lines) + " lines of its output dropped");
} catch (const std::bad_alloc&) {
    // Logging is best effort.
}

void worker_link::log(log_level level, std::string_view line) const noexcept
try {
    if (plan_.log || detail::log_enabled(level))
        log_text(level, "worker " + std::to_string(child_.pid()) + ": " + detail::escape_text(line));
} catch (const std::bad_alloc&) {
    // Logging is best effort.
}

void worker_link::log_text(log_level level, std::string_view text) const
{
    std::string all = plan_.device != 0 ? "device " + std::to_string(plan_.device) + ": " : std::string();
    all += text;
    if (plan_.log)
        detail::log_to(plan_.log, all);
    else
        detail::log(level, all);
}

} // namespace coaccel::worker
