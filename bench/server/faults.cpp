#include "row.hpp"
#include "server/http_load.hpp"
#include "server/served_identity.hpp"

#include <boost/asio/use_future.hpp>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <sys/types.h>

namespace coaccel::bench {
namespace {

constexpr int fault_clients = 300;
constexpr double fault_seconds = 10;

/// The process of the context that runs batches now.
int worker_of(telemetry::registry& metrics)
{
    const auto all = metrics.async_collect(asio::use_future).get();
    if (all.devices.empty() || !all.devices[0].stats)
        return 0;
    return all.devices[0].stats->hardware.process;
}

} // namespace

/// The worker is killed each second while 300 clients send requests one after another.
void http_fault_row(rows& table)
{
    device_options cpu;
    cpu.kind = device_kind::host;
    cpu.host.threads = 1;
    cpu.isolation = isolation::worker;
    cpu.standby = 1;
    // More restarts than the test has in a minute.
    cpu.restart.max_restarts = 1000;
    served_identity served(cpu);
    int killed = 0;
    http_load load;
    load.port = served.port();
    load.request = served_identity::binary_request();
    load.connections = fault_clients;
    load.seconds = fault_seconds;
    load.tick = [&](double now) {
        if (now < killed + 1)
            return;
        if (const int process = worker_of(served.metrics()); process > 0 && ::kill(process, SIGKILL) == 0)
            ++killed;
    };
    const auto r = run_http_load(load);
    if (killed < static_cast<int>(fault_seconds) / 2)
        throw std::runtime_error("the worker was killed only " + std::to_string(killed) + " times");
    std::fprintf(stderr, "serve_fault_stall: %d faults, %llu requests answered, %llu failed %s\n", killed,
                 static_cast<unsigned long long>(r.answered), static_cast<unsigned long long>(r.failed),
                 r.first_failure.c_str());
    const double longest = r.longest * 1e3;
    table.push_back({"serve_fault_failed", static_cast<double>(r.failed) / static_cast<double>(r.answered),
                     static_cast<double>(r.failed), static_cast<double>(r.answered), "requests", "0", r.failed == 0});
    table.push_back({"serve_fault_stall", longest / 300, longest, 300, "ms, longest", "<= 300 ms", longest <= 300});
}

} // namespace coaccel::bench
