#ifndef COACCEL_BENCH_MAILBOX_RATES_HPP
#define COACCEL_BENCH_MAILBOX_RATES_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace coaccel::bench {

/// The message in every implementation.
struct item {
    std::uint64_t producer;
    std::uint64_t value;
};

/// The capacity of the bounded implementations.
inline constexpr std::size_t capacity = 1024;

// Messages per second from `producers` threads to one consumer, `messages` in total.
double mailbox_rate(int producers, std::size_t messages);
double channel_rate(int producers, std::size_t messages);
double caf_rate(int producers, std::size_t messages);

class stopwatch {
public:
    double rate(std::size_t messages) const
    {
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began_;
        return static_cast<double>(messages) / elapsed.count();
    }

private:
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

} // namespace coaccel::bench

#endif
