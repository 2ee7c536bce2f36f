#include "worker/process/process_monitor.hpp"

#include "core/escape_text.hpp"
#include "posix/fork_detector.hpp"
#include "posix/scoped_signal_block.hpp"
#include "posix/unique_fd.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace coaccel::worker {
namespace {

using clock = process_observer::clock;
using std::chrono::nanoseconds;

constexpr std::size_t longest_line = 1024;
constexpr nanoseconds longest_look = std::chrono::hours(1);

int as_timeout(nanoseconds left) noexcept
{
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::max(left, nanoseconds(0))).count());
}

} // namespace

struct process_monitor::watched_process {
    process_observer& who;
    const int pidfd;
    const int errors;
    nanoseconds look_every;
    clock::time_point next_look;
    std::string line{};
    std::atomic<bool> removed{false};

    bool wanted() const noexcept { return !removed.load(std::memory_order_acquire); }

    void say_line() noexcept { say(line.size()); }

    void say_rest() noexcept
    {
        if (!line.empty())
            say_line();
    }

    void take(std::string_view bytes) noexcept
    {
        for (const char c : bytes) {
            if (c == '\n')
                say_line();
            else if (line.size() == longest_line)
                say(detail::whole_characters(line));
            if (c != '\n')
                line.push_back(c);
        }
    }

private:
    void say(std::size_t bytes) noexcept
    {
        if (wanted())
            who.said(detail::escape_text(std::string_view(line).substr(0, bytes)));
        line.erase(0, bytes);
    }
};

class process_monitor::state {
public:
    bool open();
    void run() noexcept;
    void stop() noexcept;
    error_code add(std::shared_ptr<watched_process> c);
    void remove(process_observer& who, bool own_thread) noexcept;
    bool broken() noexcept;

private:
    // The kind of an event, in its lowest bit; the other bits are the number of the watched process.
    enum : std::uint64_t { of_process = 0, of_errors = 1 };

    std::shared_ptr<watched_process> begin(std::uint64_t number) noexcept;
    void finish() noexcept;
    void lose_all() noexcept;
    void wake() noexcept;
    bool watch(int descriptor, std::uint64_t event) noexcept;
    void forget(const watched_process& c) noexcept;
    int look() noexcept;
    void handle(std::uint64_t event) noexcept;
    void handle_errors(watched_process& c) noexcept;
    void handle_end(std::uint64_t number, watched_process& c) noexcept;

    detail::unique_fd epoll_;
    detail::unique_fd wake_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::uint64_t, std::shared_ptr<watched_process>> processes_;
    std::uint64_t last_number_ = 0;
    // The observer whose function is running.
    const process_observer* running_ = nullptr;
    bool stopping_ = false;
    bool broken_ = false;
    std::vector<std::uint64_t> due_;
};

bool process_monitor::state::open()
{
    epoll_ = detail::above_standard(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = detail::above_standard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return epoll_ && wake_ && watch(wake_.get(), 0);
}

void process_monitor::state::run() noexcept
{
    epoll_event events[16];
    for (;;) {
        const int timeout = look();
        {
            const std::scoped_lock lock(mutex_);
            if (stopping_)
                return;
        }
        const int n = ::epoll_wait(epoll_.get(), events, static_cast<int>(std::size(events)), timeout);
        if (n < 0 && errno != EINTR)
            return lose_all();
        for (int i = 0; i < n; ++i)
            handle(events[i].data.u64);
    }
}

// The descriptors were closed, and their numbers may belong to other files by now.
void process_monitor::state::lose_all() noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        broken_ = true;
        due_.clear();
        for (const auto& [number, c] : processes_)
            due_.push_back(number);
    }
    for (const auto number : due_)
        if (const auto c = begin(number)) {
            {
                const std::scoped_lock lock(mutex_);
                processes_.erase(number);
            }
            if (c->wanted())
                c->who.unwatched();
            finish();
        }
}

bool process_monitor::state::broken() noexcept
{
    const std::scoped_lock lock(mutex_);
    return broken_;
}

void process_monitor::state::stop() noexcept
{
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    if (!broken_)
        wake();
}

error_code process_monitor::state::add(std::shared_ptr<watched_process> c)
{
    const std::scoped_lock lock(mutex_);
    if (broken_)
        return errc::out_of_memory;
    const auto number = ++last_number_;
    const auto& added = *processes_.emplace(number, std::move(c)).first->second;
    if (!watch(added.pidfd, number << 1 | of_process) ||
        (added.errors >= 0 && !watch(added.errors, number << 1 | of_errors))) {
        forget(added);
        processes_.erase(number);
        return errc::out_of_memory;
    }
    if (added.look_every > nanoseconds(0))
        wake();
    return {};
}

void process_monitor::state::remove(process_observer& who, bool own_thread) noexcept
{
    std::unique_lock lock(mutex_);
    std::erase_if(processes_, [&](const auto& item) {
        auto& c = *item.second;
        if (&c.who != &who)
            return false;
        c.removed.store(true, std::memory_order_release);
        forget(c);
        return true;
    });
    if (!own_thread)
        changed_.wait(lock, [&] { return running_ != &who; });
}

std::shared_ptr<process_monitor::watched_process> process_monitor::state::begin(std::uint64_t number) noexcept
{
    const std::scoped_lock lock(mutex_);
    const auto at = processes_.find(number);
    if (at == processes_.end() || stopping_)
        return nullptr;
    running_ = &at->second->who;
    return at->second;
}

void process_monitor::state::finish() noexcept
{
    const std::scoped_lock lock(mutex_);
    running_ = nullptr;
    changed_.notify_all();
}

void process_monitor::state::wake() noexcept
{
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
}

bool process_monitor::state::watch(int descriptor, std::uint64_t event) noexcept
{
    epoll_event what{.events = EPOLLIN, .data = {.u64 = event}};
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &what) == 0;
}

// Closing the descriptors is not enough: a forked child may still have them open.
void process_monitor::state::forget(const watched_process& c) noexcept
{
    if (broken_)
        return;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.pidfd, nullptr);
    if (c.errors >= 0)
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.errors, nullptr);
}

// Returns the time until the next check.
int process_monitor::state::look() noexcept
{
    const auto now = clock::now();
    due_.clear();
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& [number, c] : processes_)
            if (c->look_every > nanoseconds(0) && c->next_look <= now)
                due_.push_back(number);
    }
    for (const auto number : due_)
        if (const auto c = begin(number)) {
            // Counted from now, so that a delayed thread does not check many times at once.
            c->next_look = now + c->look_every;
            if (!c->who.alive(now))
                c->look_every = nanoseconds(0);
            finish();
        }
    auto next = clock::time_point::max();
    const std::scoped_lock lock(mutex_);
    for (const auto& [number, c] : processes_)
        if (c->look_every > nanoseconds(0))
            next = std::min(next, c->next_look);
    return next == clock::time_point::max() ? -1 : as_timeout(next - clock::now());
}

void process_monitor::state::handle(std::uint64_t event) noexcept
{
    if (event == 0) {
        std::uint64_t count = 0;
        (void)!::read(wake_.get(), &count, sizeof count);
        return;
    }
    const auto c = begin(event >> 1);
    if (!c)
        return;
    if ((event & 1) == of_errors)
        handle_errors(*c);
    else
        handle_end(event >> 1, *c);
    finish();
}

void process_monitor::state::handle_errors(watched_process& c) noexcept
{
    char bytes[4096];
    const auto n = ::read(c.errors, bytes, sizeof bytes);
    if (n > 0)
        return c.take({bytes, static_cast<std::size_t>(n)});
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.errors, nullptr);
    c.say_rest();
}

void process_monitor::state::handle_end(std::uint64_t number, watched_process& c) noexcept
{
    // Reads only what is there now, because a process that it left behind may continue to write.
    int left = 0;
    if (c.errors >= 0 && ::ioctl(c.errors, FIONREAD, &left) != 0)
        left = 0;
    char bytes[4096];
    while (left > 0 && c.wanted()) {
        const auto n = ::read(c.errors, bytes, std::min(sizeof bytes, static_cast<std::size_t>(left)));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        left -= static_cast<int>(n);
        c.take({bytes, static_cast<std::size_t>(n)});
    }
    c.say_rest();
    {
        const std::scoped_lock lock(mutex_);
        if (c.removed)
            return;
        forget(c);
        processes_.erase(number);
    }
    c.who.ended();
}

process_monitor::process_monitor(std::shared_ptr<state> s) : state_(std::move(s))
{
    const detail::scoped_signal_block inherited;
    thread_ = std::thread([shared = state_] { shared->run(); });
}

std::shared_ptr<process_monitor> process_monitor::shared()
{
    static std::mutex mutex;
    // Never destroyed: threads of the library may outlive main().
    static auto& current = *new std::weak_ptr<process_monitor>;
    detail::watch_forks();
    if (detail::forked())
        return nullptr;
    const std::scoped_lock lock(mutex);
    auto found = current.lock();
    if (found && !found->state_->broken())
        return found;
    try {
        auto s = std::make_shared<state>();
        if (!s->open())
            return nullptr;
        found.reset(new process_monitor(std::move(s)));
    } catch (const std::exception&) {
        return nullptr;
    }
    current = found;
    return found;
}

process_monitor::~process_monitor()
{
    if (detail::forked()) {
        // The thread does not exist in this process: it can be neither joined nor detached.
        (void)new std::thread(std::move(thread_));
        return;
    }
    state_->stop();
    // An observer may release the last reference in a call from this thread.
    if (thread_.get_id() == std::this_thread::get_id())
        thread_.detach();
    else
        thread_.join();
}

error_code process_monitor::add(process_observer& who, int pidfd, int errors, nanoseconds look_every)
{
    if (detail::forked())
        return errc::start_failed;
    look_every = std::min(look_every, longest_look);
    return state_->add(std::shared_ptr<watched_process>(
        new watched_process{who, pidfd, errors, look_every, clock::now() + look_every}));
}

void process_monitor::remove(process_observer& who) noexcept
{
    if (!detail::forked())
        state_->remove(who, thread_.get_id() == std::this_thread::get_id());
}

} // namespace coaccel::worker
