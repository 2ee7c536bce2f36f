#include "serve/batcher_core.hpp"

#include <coaccel/telemetry/metric_writer.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <string_view>
#include <utility>

namespace coaccel::detail {
namespace {

void write(telemetry::metric_writer& out, const std::string& name, const serve::batcher_stats& s)
{
    const telemetry::labels mine{{"batcher", name}};
    const auto outcome = [&](const char* what, std::uint64_t n) {
        out.counter("coaccel_batcher_requests_total", "Requests that ended, by outcome.",
                    {{"batcher", name}, {"outcome", what}}, static_cast<double>(n));
    };
    outcome("completed", s.completed);
    outcome("failed", s.failed);
    outcome("cancelled", s.cancelled);
    outcome("expired", s.expired);
    outcome("refused", s.refused);
    constexpr std::string_view levels[] = {"low", "normal", "high"};
    for (std::size_t p = 0; p < priority_count; ++p)
        out.gauge("coaccel_batcher_queue", "Requests that wait for their batch, by priority.",
                  {{"batcher", name}, {"level", std::string(levels[p])}}, static_cast<double>(s.queued[p]));
    const auto count = [&](const char* metric, const char* help, std::uint64_t n) {
        out.counter(metric, help, mine, static_cast<double>(n));
    };
    out.gauge("coaccel_batcher_batches_in_flight", "Batches that run.", mine, static_cast<double>(s.in_flight));
    count("coaccel_batcher_batches_total", "Batches that were started.", s.batches);
    count("coaccel_batcher_rows_total", "Rows of requests in batches that were started.", s.rows);
    count("coaccel_batcher_padding_rows_total", "Rows of padding in batches that were started.", s.padding);
    count("coaccel_batcher_split_batches_total", "Batches whose requests ran one by one after a fault.", s.split);
    count("coaccel_batcher_restarts_total", "Failures of the function after which the batcher went on.", s.restarts);
    out.histogram("coaccel_batcher_batch_size", "Rows of each batch.", mine, s.sizes);
    out.histogram("coaccel_batcher_queue_seconds", "From the arrival of a request to its batch.", mine, s.queue_time);
    out.histogram("coaccel_batcher_form_seconds", "Collecting the inputs of a batch.", mine, s.form_time);
    out.histogram("coaccel_batcher_run_seconds", "Running a batch.", mine, s.run_time);
}

} // namespace

telemetry::registration report(const telemetry::registry& where, const batcher_ptr& core)
{
    return where.add_source([core](telemetry::metric_writer& out) { write(out, core->name(), core->stats()); });
}

} // namespace coaccel::detail
