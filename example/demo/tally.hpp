#ifndef COACCEL_EXAMPLE_DEMO_TALLY_HPP
#define COACCEL_EXAMPLE_DEMO_TALLY_HPP

#include <chrono>
#include <cstdint>
#include <vector>

namespace demo {

/// The counters of all events. Everything runs on one thread, so they need not be atomic.
struct tally {
    using clock = std::chrono::steady_clock;

    // Counted by the clients. No request is sent twice.
    std::uint64_t sent = 0;
    std::uint64_t answered = 0;
    std::uint64_t products = 0;
    std::uint64_t failed = 0;
    std::uint64_t wrong = 0;
    std::uint64_t clients_active = 0;
    std::uint64_t clients_broken = 0;
    std::vector<clock::duration> latencies;

    std::uint64_t faults = 0;
    bool stopping = false;
};

} // namespace demo

#endif
