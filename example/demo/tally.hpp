#ifndef COACCEL_EXAMPLE_DEMO_TALLY_HPP
#define COACCEL_EXAMPLE_DEMO_TALLY_HPP

#include <chrono>
#include <cstdint>
#include <vector>

namespace demo {

/// The counters of all events. Everything runs on one thread, so they need not be atomic.
struct tally {
    using clock = std::chrono::steady_clock;

    // Counted by the clients. A repeated request counts each time it is sent.
    std::uint64_t sent = 0;
    std::uint64_t answered = 0;
    std::uint64_t products = 0;
    std::uint64_t repeated = 0;
    std::uint64_t refused = 0;
    std::uint64_t wrong = 0;
    std::uint64_t clients_active = 0;
    std::uint64_t clients_broken = 0;
    std::vector<clock::duration> latencies;

    // Counted by the server.
    std::uint64_t context_lost = 0;
    std::uint64_t stale_ref = 0;
    std::uint64_t other_errors = 0;

    std::uint64_t faults = 0;
    bool stopping = false;
};

} // namespace demo

#endif
