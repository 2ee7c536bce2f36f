#include "posix/launcher.hpp"

#include "posix/fork_detector.hpp"
#include "posix/scoped_signal_block.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace coaccel::detail {

class launcher::state {
public:
    spawned start(const spawn_plan& plan)
    {
        order mine(plan);
        std::unique_lock lock(mutex_);
        orders_.push_back(&mine);
        changed_.notify_all();
        changed_.wait(lock, [&] { return mine.begun; });
        // Several short waits: time in which this process, and with it the child, was stopped counts as one of them.
        for (int waits = 1;
             !changed_.wait_for(lock, plan.exec_limit / waits_for_exec, [&] { return mine.made.has_value(); }); ++waits)
            if (waits >= waits_for_exec)
                mine.child.give_up();
        return std::move(*mine.made);
    }

    void run() noexcept
    {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return stopping_ || !orders_.empty(); });
            if (orders_.empty())
                return;
            order& next = *orders_.front();
            orders_.pop_front();
            next.begun = true;
            changed_.notify_all();
            lock.unlock();
            auto made = spawn(next.plan, next.child);
            lock.lock();
            next.made = std::move(made);
            changed_.notify_all();
        }
    }

    void stop() noexcept
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }

private:
    static constexpr int waits_for_exec = 10;

    struct order {
        explicit order(const spawn_plan& p) noexcept : plan(p) {}

        const spawn_plan& plan;
        starting_child child;
        bool begun = false;
        std::optional<spawned> made;
    };

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<order*> orders_;
    bool stopping_ = false;
};

launcher::launcher(std::shared_ptr<state> s) : state_(std::move(s))
{
    const scoped_signal_block inherited;
    thread_ = std::thread([shared = state_] { shared->run(); });
}

std::shared_ptr<launcher> launcher::shared()
{
    static std::mutex mutex;
    // Never destroyed: threads of the library may outlive main().
    static auto& current = *new std::weak_ptr<launcher>;
    watch_forks();
    if (forked())
        return nullptr;
    const std::scoped_lock lock(mutex);
    auto found = current.lock();
    if (found)
        return found;
    try {
        found.reset(new launcher(std::make_shared<state>()));
    } catch (const std::exception&) {
        return nullptr;
    }
    current = found;
    return found;
}

launcher::~launcher()
{
    if (forked()) {
        // The thread does not exist in this process: it can be neither joined nor detached.
        (void)new std::thread(std::move(thread_));
        return;
    }
    state_->stop();
    thread_.join();
}

spawned launcher::start(const spawn_plan& plan)
{
    return state_->start(plan);
}

} // namespace coaccel::detail
