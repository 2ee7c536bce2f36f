#include "worker/transport/copy_jobs.hpp"

#include <utility>

namespace coaccel::worker {

void copy_jobs::run(std::function<void()> job, token t, notification done)
{
    const auto run_and_report = [this, job = std::move(job), t, done] {
        job();
        {
            const std::scoped_lock lock(mutex_);
            done_.push_back(t);
        }
        done.function(done.argument);
    };
    if (!threads_.run(run_and_report))
        run_and_report();
}

void copy_jobs::take_done(std::vector<token>& out)
{
    out.clear();
    const std::scoped_lock lock(mutex_);
    out.swap(done_);
}

} // namespace coaccel::worker
