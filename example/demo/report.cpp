#include "report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <unistd.h>
#include <variant>
#include <vector>

namespace demo {
namespace {

namespace telemetry = coaccel::telemetry;

/// In milliseconds; reorders the times.
double quantile(std::vector<tally::clock::duration>& times, double q)
{
    if (times.empty())
        return 0;
    const auto at = times.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(times.size() - 1));
    std::nth_element(times.begin(), at, times.end());
    return std::chrono::duration<double, std::milli>(*at).count();
}

telemetry::histogram_snapshot batch_sizes(const telemetry::snapshot& metrics)
{
    for (const auto& family : metrics.families)
        if (family.name == "coaccel_batcher_batch_size" && !family.samples.empty())
            return std::get<telemetry::histogram_snapshot>(family.samples[0].value);
    return {};
}

} // namespace

progress_line::progress_line() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

std::chrono::milliseconds progress_line::interval() const
{
    return std::chrono::milliseconds(terminal_ ? 200 : 2000);
}

void progress_line::show(const tally& counts, std::chrono::duration<double> elapsed) const
{
    std::printf("%s%5.1f s  %9" PRIu64 " requests  %4" PRIu64 " faults  %6" PRIu64 " requests failed%s",
                terminal_ ? "\r" : "", elapsed.count(), counts.answered, counts.faults, counts.failed,
                terminal_ ? "" : "\n");
    std::fflush(stdout);
}

void progress_line::finish() const
{
    if (terminal_)
        std::printf("\n");
}

bool summarize(tally& counts, const telemetry::snapshot& metrics, int clients, std::chrono::duration<double> elapsed)
{
    const coaccel::device_stats none;
    const auto& device = !metrics.devices.empty() && metrics.devices[0].stats ? *metrics.devices[0].stats : none;
    const auto batches = batch_sizes(metrics);

    std::printf("\n%d clients, %.1f s, on %s\n", clients, elapsed.count(),
                device.backend == "cuda" ? device.hardware.name.c_str() : "the CPU");
    std::printf("  requests            %10" PRIu64 "   %.0f/s, each answer checked by its client\n", counts.answered,
                static_cast<double>(counts.answered) / elapsed.count());
    std::printf("  latency                          p50 %.1f ms, p99 %.1f ms, longest %.0f ms\n",
                quantile(counts.latencies, 0.50), quantile(counts.latencies, 0.99), quantile(counts.latencies, 1));
    std::printf("  batches             %10" PRIu64 "   %.1f requests on average, half of them %.0f or more\n",
                batches.count, batches.count > 0 ? batches.sum / static_cast<double>(batches.count) : 0.0,
                batches.quantile(0.5));
    std::printf("  faults              %10" PRIu64 "   kill -9 of the device's worker process; %" PRIu64
                " batches computed again\n",
                counts.faults, device.reruns);
    std::printf("  recovery                         p50 %.1f ms, longest %.0f ms, until a new request was answered\n",
                quantile(counts.recoveries, 0.50), quantile(counts.recoveries, 1));
    std::printf("  requests failed: %" PRIu64 "\n", counts.failed);

    const std::uint64_t lost = counts.sent - counts.answered;
    const bool right = lost + counts.failed + counts.wrong + counts.clients_broken + counts.clients_active == 0 &&
                       counts.answered > 0 && counts.faults > 0;
    if (counts.faults == 0)
        std::printf("FAILED: it ended before the first fault\n");
    else if (!right)
        std::printf("FAILED: %" PRIu64 " lost, %" PRIu64 " wrong, %" PRIu64 " clients broken, %" PRIu64
                    " still waiting\n%s\n",
                    lost, counts.wrong, counts.clients_broken, counts.clients_active, counts.first_failure.c_str());
    return right;
}

} // namespace demo
