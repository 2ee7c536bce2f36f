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
    std::printf("%s%5.1f s  %9" PRIu64 " products  %4" PRIu64 " faults  %6" PRIu64 " requests repeated%s",
                terminal_ ? "\r" : "", elapsed.count(), counts.products, faults, counts.repeated,
                terminal_ ? "" : "\n");
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
    const std::uint64_t ops = stats.completed + stats.failed;
    const double rate = static_cast<double>(counts.products) / elapsed.count();
    const double op_rate = static_cast<double>(ops) / elapsed.count();

    std::printf("\n%d clients, %.1f s\n", clients, elapsed.count());
    std::printf("  products                     %10" PRIu64 "   %.0f/s, each checked by its client\n", counts.products,
                rate);
    std::printf("  ops                          %10" PRIu64 "   %.0f/s on one device\n", ops, op_rate);
    std::printf("  latency of a product         p50 %.2f ms, p99 %.2f ms, repeats included\n",
                quantile(counts.latencies, 0.50), quantile(counts.latencies, 0.99));
    std::printf("  faults                       %10" PRIu64 "   workers replaced: %" PRIu64 "\n", faults,
                stats.restarts);
    std::printf("  ops failed with context_lost %10" PRIu64 "\n", counts.context_lost);
    std::printf("  ops failed with stale_ref    %10" PRIu64 "\n", counts.stale_ref);
    std::printf("  requests repeated            %10" PRIu64 "\n", counts.repeated);
    std::printf("  ops lost: %" PRIu64 "\n", lost);

    const bool right = lost == 0 && counts.wrong == 0 && counts.refused == 0 && counts.other_errors == 0 &&
                       counts.clients_broken == 0 && counts.clients_active == 0 && counts.products > 0;
    if (!right)
        std::printf("FAILED: %" PRIu64 " wrong, %" PRIu64 " refused, %" PRIu64 " unexpected errors, %" PRIu64
                    " clients broken, %" PRIu64 " still waiting\n",
                    counts.wrong, counts.refused, counts.other_errors, counts.clients_broken, counts.clients_active);
    if (stats.backend == "cuda")
        std::printf("\nThis ran on %s. Each fault was a kernel that wrote to an illegal address.\n",
                    stats.hardware.name.c_str());
    else
        std::printf("\nThis ran on the CPU. Each fault was a kill -9 of the device's worker process.\n");
    return right;
}

} // namespace demo
