#include "report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <unistd.h>

namespace demo {
namespace {

double milliseconds(tally::clock::duration d)
{
    return std::chrono::duration<double, std::milli>(d).count();
}

double quantile(std::vector<tally::clock::duration>& times, double q)
{
    if (times.empty())
        return 0;
    const auto at = times.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(times.size() - 1));
    std::nth_element(times.begin(), at, times.end());
    return milliseconds(*at);
}

} // namespace

progress_line::progress_line() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

std::chrono::milliseconds progress_line::interval() const
{
    return std::chrono::milliseconds(terminal_ ? 200 : 2000);
}

void progress_line::show(const tally& counts, std::uint64_t faults, std::chrono::duration<double> elapsed) const
{
    std::printf("%s%5.1f s  %9" PRIu64 " requests  %4" PRIu64 " faults  %6" PRIu64 " requests failed%s",
                terminal_ ? "\r" : "", elapsed.count(), counts.answered, faults, counts.failed, terminal_ ? "" : "\n");
    std::fflush(stdout);
}

void progress_line::finish() const
{
    if (terminal_)
        std::printf("\n");
}

bool summarize(tally& counts, const coaccel::device_stats& stats, std::uint64_t faults, int clients,
               std::chrono::duration<double> elapsed)
{
    const std::uint64_t lost = counts.sent - counts.answered + stats.queued + stats.in_flight;
    const double rate = static_cast<double>(counts.products) / elapsed.count();

    std::printf("\n%d clients, %.1f s\n", clients, elapsed.count());
    std::printf("  requests                %10" PRIu64 "   %.0f/s, each result checked by its client\n",
                counts.answered, rate);
    std::printf("  latency of a request    p50 %.2f ms, p99 %.2f ms, max %.0f ms\n", quantile(counts.latencies, 0.50),
                quantile(counts.latencies, 0.99), quantile(counts.latencies, 1));
    std::printf("  faults                  %10" PRIu64 "   workers replaced: %" PRIu64 "\n", faults, stats.restarts);
    std::printf("  repeated by the device  %10" PRIu64 "\n", stats.reruns);
    std::printf("  requests failed: %" PRIu64 "\n", counts.failed);

    const bool right = lost + counts.failed + counts.wrong + counts.clients_broken + counts.clients_active == 0 &&
                       counts.products > 0 && faults > 0;
    if (!right)
        std::printf("FAILED: %" PRIu64 " lost, %" PRIu64 " wrong, %" PRIu64 " clients broken, %" PRIu64
                    " still waiting\n",
                    lost, counts.wrong, counts.clients_broken, counts.clients_active);
    if (stats.backend == "cuda")
        std::printf("\nThis ran on %s. Each fault was a kernel that wrote to an illegal address.\n",
                    stats.hardware.name.c_str());
    else
        std::printf("\nThis ran on the CPU. Each fault was a kill -9 of the device's worker process.\n");
    return right;
}

} // namespace demo
