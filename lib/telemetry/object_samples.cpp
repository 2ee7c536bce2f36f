#include "telemetry/object_samples.hpp"

#include "jit/registry.hpp"
#include "plan/content_registry.hpp"
#include "telemetry/units.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <string>

namespace coaccel::detail {

using telemetry::labels;
using telemetry::metric_writer;

error_code nothing_to_add(std::string_view kind, std::string_view name)
{
    return op_error(errc::invalid_argument, "registry.add", {"the ", kind, " \"", name, "\" is empty"});
}

void write_mailbox(metric_writer& out, std::string_view name, std::size_t size, std::size_t capacity, bool open)
{
    const labels with{{"mailbox", std::string(name)}};
    out.gauge("coaccel_mailbox_messages", "Messages accepted and not yet received.", with, as_number(size));
    out.gauge("coaccel_mailbox_capacity", "The maximum number of messages.", with, as_number(capacity));
    out.gauge("coaccel_mailbox_open", "1 while the mailbox accepts messages, else 0.", with, open ? 1 : 0);
}

void write_actor(metric_writer& out, std::string_view name, const actor_stats& s)
{
    const labels with{{"actor", std::string(name)}};
    out.counter("coaccel_actor_messages_total", "Messages that the behaviour was given.", with, as_number(s.messages));
    out.counter("coaccel_actor_failures_total", "Failures of the behaviour.", with, as_number(s.failures));
    out.counter("coaccel_actor_starts_total", "Starts of the actor; all but the first are restarts.", with,
                as_number(s.starts));
}

void write_supervisor(metric_writer& out, std::string_view name, const supervisor_stats& s)
{
    const labels with{{"supervisor", std::string(name)}};
    out.gauge("coaccel_supervisor_running", "1 while the supervisor supervises, else 0.", with, s.running ? 1 : 0);
    out.gauge("coaccel_supervisor_children", "Actors and supervisors that it supervises.", with, as_number(s.children));
    out.counter("coaccel_supervisor_failures_total", "Failures that its children have reported.", with,
                as_number(s.failures));
    out.counter("coaccel_supervisor_restarts_total", "Starts of a child after a failure.", with, as_number(s.restarts));
    out.counter("coaccel_supervisor_escalations_total", "Failures that it has passed on, or that have ended it.", with,
                as_number(s.escalations));
}

void write_trace_buffer(metric_writer& out, std::string_view name, const trace_buffer& events)
{
    const labels with{{"trace", std::string(name)}};
    out.gauge("coaccel_trace_capacity", "Events that fit in the buffer.", with, as_number(events.capacity()));
    out.counter("coaccel_trace_events_total", "Events that were added.", with, as_number(events.added()));
    out.counter("coaccel_trace_lost_events_total", "Events that were overwritten or dropped.", with,
                as_number(events.lost()));
}

void write_caches(metric_writer& out)
{
    const jit::image_counts kernels = jit::count_images();
    out.gauge("coaccel_jit_kernels", "Compiled kernels that exist in the process.", {}, as_number(kernels.existing));
    constexpr auto made = "coaccel_jit_kernels_made_total";
    constexpr auto help = "Kernels that were made, by the origin of their code.";
    out.counter(made, help, {{"from", "compiler"}}, as_number(kernels.compiled));
    out.counter(made, help, {{"from", "cache"}}, as_number(kernels.from_cache));
    out.gauge("coaccel_plan_contents", "Constants and initial states of plans that the process has identified.", {},
              as_number(identified_contents()));
}

} // namespace coaccel::detail
