#ifndef COACCEL_WORKER_COPY_CREW_HPP
#define COACCEL_WORKER_COPY_CREW_HPP

#include <coaccel/core/backend.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace coaccel::worker {

/// Threads for copies that would hold up the executor; started when first needed. Jobs must not throw.
class COACCEL_DECL copy_crew {
public:
    /// What has been copied, until somebody takes it.
    using token = void*;

    explicit copy_crew(int most_threads) noexcept : most_(most_threads) {}
    copy_crew(const copy_crew&) = delete;
    copy_crew& operator=(const copy_crew&) = delete;
    ~copy_crew() { stop(); }

    /// Runs the job, then has the token among the `done`, and notifies. Without a thread to be had it runs here.
    void run(std::function<void()> job, token t, notification done);

    /// Takes the tokens of the jobs that have ended.
    void take_done(std::vector<token>& out);

    /// Ends what has begun, and waits for it; the rest is never run.
    void stop() noexcept;

private:
    struct task {
        std::function<void()> job;
        token t;
        notification done;
    };

    void work();
    void finish(const task& t);

    const int most_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<task> tasks_;
    std::vector<token> done_;
    std::vector<std::thread> threads_;
    int idle_ = 0;
    bool stopping_ = false;
};

} // namespace coaccel::worker

#endif
