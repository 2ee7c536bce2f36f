#include "row.hpp"
#include "server/echo_server.hpp"
#include "server/http_load.hpp"
#include "server/served_identity.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace coaccel::bench {
namespace {

/// Microseconds for each request.
double time_per_request(std::uint16_t port, const std::string& request)
{
    http_load load;
    load.port = port;
    load.request = request;
    load.requests = 40'000;
    const auto r = run_http_load(load);
    if (r.failed > 0)
        throw std::runtime_error(std::to_string(r.failed) + " requests failed: " + r.first_failure);
    return r.seconds / static_cast<double>(r.answered) * 1e6;
}

} // namespace

void http_request_rows(rows& table)
{
    device_options cpu;
    cpu.kind = device_kind::host;
    cpu.host.threads = 1;
    const served_identity ours(cpu);
    io_thread theirs;
    const echo_server echo(theirs.io);
    for (const bool binary : {true, false}) {
        const std::string request = binary ? served_identity::binary_request() : served_identity::json_request();
        const auto p = side_by_side(
            5, [&] { return time_per_request(ours.port(), request); },
            [&] { return time_per_request(echo.port(), request); });
        table.push_back(at_most(binary ? "serve_http_rps_binary" : "serve_http_rps_json", p, 2, "us/request", "<= 2x"));
    }
    theirs.io.stop();
}

/// Against another server of the same protocol on this machine that serves the same model: input x and output y, both
/// FP32, [rows, 16].
void other_server_row(rows& table)
{
    const char* const port = std::getenv("COACCEL_TRITON_PORT");
    const int number = port ? std::atoi(port) : 0;
    if (number <= 0 || number > 65535) {
        std::fprintf(stderr, "serve_vs_triton: not run, because COACCEL_TRITON_PORT names no server\n");
        return;
    }
    const served_identity ours(device_options{});
    const auto request = served_identity::binary_request();
    const auto p = side_by_side(
        5, [&] { return 1e6 / time_per_request(ours.port(), request); },
        [&] { return 1e6 / time_per_request(static_cast<std::uint16_t>(number), request); });
    table.push_back(at_least("serve_vs_triton", p, 1, "requests/s", ">= 1x"));
}

} // namespace coaccel::bench
