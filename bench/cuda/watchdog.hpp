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

/// Ends the program when it lives longer than it may. A GPU that hangs cannot be left otherwise.
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
    // Last: it uses the others.
    std::jthread thread_;
};

} // namespace coaccel::bench

#endif
