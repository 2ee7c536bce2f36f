#ifndef COACCEL_EXAMPLE_DEMO_TALLY_HPP
#define COACCEL_EXAMPLE_DEMO_TALLY_HPP

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace demo {

/// What the clients and the saboteur have counted. All of them run on one thread, so nothing needs to be atomic.
struct tally {
    using clock = std::chrono::steady_clock;

    std::uint64_t sent = 0; ///< No request is sent twice.
    std::uint64_t answered = 0;
    std::uint64_t failed = 0; ///< Answers with another status than 200.
    std::uint64_t wrong = 0;  ///< Answers whose probabilities are not those of the model.
    std::uint64_t clients_active = 0;
    std::uint64_t clients_broken = 0; ///< Clients whose connection ended.
    std::string first_failure;
    std::vector<clock::duration> latencies;

    std::uint64_t faults = 0;
    clock::time_point last_fault{}; ///< The one that the recovery is counted from.
    bool recovering = false;
    /// From each fault to the first answer to a request that was sent after it.
    std::vector<clock::duration> recoveries;

    bool stopping = false;

    void add_fault()
    {
        ++faults;
        // A fault during a recovery makes it longer.
        if (!recovering)
            last_fault = clock::now();
        recovering = true;
    }

    void add_answer(clock::time_point sent_at)
    {
        const auto now = clock::now();
        ++answered;
        latencies.push_back(now - sent_at);
        if (recovering && sent_at > last_fault) {
            recovering = false;
            recoveries.push_back(now - last_fault);
        }
    }

    void fail(std::string why)
    {
        if (failed++ == 0)
            first_failure = std::move(why);
    }
};

} // namespace demo

#endif
