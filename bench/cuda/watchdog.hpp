#ifndef COACCEL_BENCH_CUDA_WATCHDOG_HPP
#define COACCEL_BENCH_CUDA_WATCHDOG_HPP

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace coaccel::bench {

/// Terminates the program after a time limit. A hung GPU cannot be abandoned in any other way.
class watchdog {
public:
    watchdog(std::string what, std::chrono::seconds limit)
        : thread_([this, what = std::move(what), limit](const std::stop_token& over) {
              std::unique_lock lock(mutex_);
              if (ended_.wait_for(lock, over, limit, [&over] { return over.stop_requested(); }))
                  return;
              std::fprintf(stderr, "%s: not ended after %d s, giving up\n", what.c_str(),
                           static_cast<int>(limit.count()));
              std::_Exit(1);
          })
    {}

private:
    std::mutex mutex_;
    std::condition_variable_any ended_;
    // Last, because the thread uses the other members.
    std::jthread thread_;
};

} // namespace coaccel::bench

#endif
