#include "worker/overseer.hpp"

#include "core/block_signals.hpp"
#include "worker/fork_guard.hpp"
#include "worker/printable.hpp"
#include "worker/unique_fd.hpp"

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

using clock = ward::clock;
using std::chrono::nanoseconds;

constexpr std::size_t longest_line = 1024;
constexpr nanoseconds longest_look = std::chrono::hours(1);

int as_timeout(nanoseconds left) noexcept
{
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::max(left, nanoseconds(0))).count());
}

} // namespace

struct overseer::charge {
    ward& who;
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
                say(whole_characters(line));
            if (c != '\n')
                line.push_back(c);
        }
    }

private:
    void say(std::size_t bytes) noexcept
    {
        if (wanted())
            who.said(printable(std::string_view(line).substr(0, bytes)));
        line.erase(0, bytes);
    }
};

class overseer::state {
public:
    bool open();
    void run() noexcept;
    void stop() noexcept;
    error_code add(std::shared_ptr<charge> c);
    void remove(ward& who, bool own_thread) noexcept;
    bool broken() noexcept;

private:
    // What an event is about; the rest of its number tells which charge.
    enum : std::uint64_t { of_process = 0, of_errors = 1 };

    std::shared_ptr<charge> begin(std::uint64_t number) noexcept;
    void finish() noexcept;
    void lose_all() noexcept;
    void wake() noexcept;
    bool watch(int descriptor, std::uint64_t event) noexcept;
    void forget(const charge& c) noexcept;
    int look() noexcept;
    void handle(std::uint64_t event) noexcept;
    void handle_errors(charge& c) noexcept;
    void handle_end(std::uint64_t number, charge& c) noexcept;

    unique_fd epoll_;
    unique_fd wake_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::uint64_t, std::shared_ptr<charge>> charges_;
    std::uint64_t last_number_ = 0;
    // Whose call is under way.
    const ward* running_ = nullptr;
    bool stopping_ = false;
    bool broken_ = false;
    std::vector<std::uint64_t> due_;
};

bool overseer::state::open()
{
    epoll_ = above_standard(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = above_standard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return epoll_ && wake_ && watch(wake_.get(), 0);
}

void overseer::state::run() noexcept
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

// The descriptors were closed, and their numbers may be those of others by now.
void overseer::state::lose_all() noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        broken_ = true;
        due_.clear();
        for (const auto& [number, c] : charges_)
            due_.push_back(number);
    }
    for (const auto number : due_)
        if (const auto c = begin(number)) {
            {
                const std::scoped_lock lock(mutex_);
                charges_.erase(number);
            }
            if (c->wanted())
                c->who.unwatched();
            finish();
        }
}

bool overseer::state::broken() noexcept
{
    const std::scoped_lock lock(mutex_);
    return broken_;
}

void overseer::state::stop() noexcept
{
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    if (!broken_)
        wake();
}

error_code overseer::state::add(std::shared_ptr<charge> c)
{
    const std::scoped_lock lock(mutex_);
    if (broken_)
        return errc::out_of_memory;
    const auto number = ++last_number_;
    const auto& added = *charges_.emplace(number, std::move(c)).first->second;
    if (!watch(added.pidfd, number << 1 | of_process) ||
        (added.errors >= 0 && !watch(added.errors, number << 1 | of_errors))) {
        forget(added);
        charges_.erase(number);
        return errc::out_of_memory;
    }
    if (added.look_every > nanoseconds(0))
        wake();
    return {};
}

void overseer::state::remove(ward& who, bool own_thread) noexcept
{
    std::unique_lock lock(mutex_);
    std::erase_if(charges_, [&](const auto& item) {
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

std::shared_ptr<overseer::charge> overseer::state::begin(std::uint64_t number) noexcept
{
    const std::scoped_lock lock(mutex_);
    const auto at = charges_.find(number);
    if (at == charges_.end() || stopping_)
        return nullptr;
    running_ = &at->second->who;
    return at->second;
}

void overseer::state::finish() noexcept
{
    const std::scoped_lock lock(mutex_);
    running_ = nullptr;
    changed_.notify_all();
}

void overseer::state::wake() noexcept
{
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
}

bool overseer::state::watch(int descriptor, std::uint64_t event) noexcept
{
    epoll_event what{.events = EPOLLIN, .data = {.u64 = event}};
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &what) == 0;
}

// Closing the descriptors would not do it: a forked child may still have them open.
void overseer::state::forget(const charge& c) noexcept
{
    if (broken_)
        return;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.pidfd, nullptr);
    if (c.errors >= 0)
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.errors, nullptr);
}

// Answers how long there is until the next look.
int overseer::state::look() noexcept
{
    const auto now = clock::now();
    due_.clear();
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& [number, c] : charges_)
            if (c->look_every > nanoseconds(0) && c->next_look <= now)
                due_.push_back(number);
    }
    for (const auto number : due_)
        if (const auto c = begin(number)) {
            // Counted from now, so that a thread that was held up does not look many times at once.
            c->next_look = now + c->look_every;
            if (!c->who.alive(now))
                c->look_every = nanoseconds(0);
            finish();
        }
    auto next = clock::time_point::max();
    const std::scoped_lock lock(mutex_);
    for (const auto& [number, c] : charges_)
        if (c->look_every > nanoseconds(0))
            next = std::min(next, c->next_look);
    return next == clock::time_point::max() ? -1 : as_timeout(next - clock::now());
}

void overseer::state::handle(std::uint64_t event) noexcept
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

void overseer::state::handle_errors(charge& c) noexcept
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

void overseer::state::handle_end(std::uint64_t number, charge& c) noexcept
{
    // No more than there is, because a process it has left behind may go on writing.
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
        charges_.erase(number);
    }
    c.who.ended();
}

overseer::overseer(std::shared_ptr<state> s) : state_(std::move(s))
{
    const detail::block_signals inherited;
    thread_ = std::thread([shared = state_] { shared->run(); });
}

std::shared_ptr<overseer> overseer::shared()
{
    static std::mutex mutex;
    // Never destroyed: threads of the library may outlive the end of main().
    static auto& current = *new std::weak_ptr<overseer>;
    watch_forks();
    if (forked())
        return nullptr;
    const std::scoped_lock lock(mutex);
    auto found = current.lock();
    if (found && !found->state_->broken())
        return found;
    try {
        auto s = std::make_shared<state>();
        if (!s->open())
            return nullptr;
        found.reset(new overseer(std::move(s)));
    } catch (const std::exception&) {
        return nullptr;
    }
    current = found;
    return found;
}

overseer::~overseer()
{
    if (forked()) {
        // There is no such thread in this process: it can be neither joined nor detached.
        (void)new std::thread(std::move(thread_));
        return;
    }
    state_->stop();
    // A ward may drop the last user's hold in a call of ours.
    if (thread_.get_id() == std::this_thread::get_id())
        thread_.detach();
    else
        thread_.join();
}

error_code overseer::add(ward& who, int pidfd, int errors, nanoseconds look_every)
{
    if (forked())
        return errc::start_failed;
    look_every = std::min(look_every, longest_look);
    return state_->add(std::shared_ptr<charge>(new charge{who, pidfd, errors, look_every, clock::now() + look_every}));
}

void overseer::remove(ward& who) noexcept
{
    if (!forked())
        state_->remove(who, thread_.get_id() == std::this_thread::get_id());
}

} // namespace coaccel::worker
