#ifndef COACCEL_TEST_CHAOS_SERVER_RUNS_HPP
#define COACCEL_TEST_CHAOS_SERVER_RUNS_HPP

#include <cstdint>

namespace chaos {

struct server_chaos_options {
    int seconds = 10;
    std::uint32_t seed = 1;
};

/// An inference server under clients that are polite, slow, gone, or send what ends the worker, while workers are
/// killed and model files change. Every polite request must be answered rightly. Returns the exit status.
int run_server(const server_chaos_options& how);

} // namespace chaos

#endif
