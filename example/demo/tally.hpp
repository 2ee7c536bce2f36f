#ifndef COACCEL_EXAMPLE_DEMO_TALLY_HPP
#define COACCEL_EXAMPLE_DEMO_TALLY_HPP

#include <chrono>
#include <cstdint>
#include <vector>

namespace demo {

/// What happened so far. Everything runs on one thread, so plain numbers will do.
struct tally {
    using clock = std::chrono::steady_clock;

    // The clients' side. A request that is repeated counts once for each time it is sent.
    std::uint64_t sent = 0;
    std::uint64_t answered = 0;
    std::uint64_t products = 0;
    std::uint64_t repeated = 0;
    std::uint64_t refused = 0;
    std::uint64_t wrong = 0;
    std::uint64_t clients_active = 0;
    std::uint64_t clients_broken = 0;
    std::vector<clock::duration> latencies;

    // The server's side.
    std::uint64_t context_lost = 0;
    std::uint64_t stale_ref = 0;
    std::uint64_t other_errors = 0;

    std::uint64_t faults = 0;
    bool stopping = false;
};

} // namespace demo

#endif
