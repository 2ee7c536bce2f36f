#include "cuda/backend.hpp"
#include "cuda/op_libraries.hpp"
#include "cuda/plan/plan_instances.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <new>
#include <utility>

namespace coaccel::cuda {
namespace {

using detail::plan_load_head;
using detail::plan_run_op;
using detail::plan_unload_op;

plan_instances& instances(backend& b)
{
    return b.resources().get<plan_instances>(b);
}

error_code not_loaded(std::string_view op, std::uint64_t instance) noexcept
{
    return detail::op_error(errc::invalid_argument, op, {"instance ", instance, " is not loaded"});
}

result<readiness> load(backend& b, stream_state& s, bound_op& o)
try {
    auto& all = instances(b);
    if (!o.state) {
        BOOST_OUTCOME_TRY(o.state, all.add(o.as<plan_load_head>(), o.operands));
    }
    auto& entry = *static_cast<plan_entry*>(o.state);
    auto done = entry.recording->advance(s);
    if (done && done.value() == readiness::pending)
        return done;
    o.state = nullptr;
    if (done) {
        entry.recording.reset();
        if (o.reply)
            static_cast<detail::plan_loaded*>(o.reply)->recorded = entry.instance.recorded();
    } else if (entry.instance.disposed()) {
        all.remove(entry.instance.id);
    }
    return done;
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
}

/// The event that a recording waits for, and a wait for its end.
std::size_t load_commands(const bound_op&) noexcept
{
    return 2;
}

result<readiness> prepare_run(backend& b, stream_state& s, bound_op& o)
{
    const auto id = o.as<plan_run_op>().instance;
    auto* instance = instances(b).find(id);
    return instance ? instance->prepare_run(s, o) : not_loaded(plan_run_op::name, id);
}

error_code launch(backend&, stream_state& s, bound_op& o)
{
    auto* instance = static_cast<plan_instance*>(o.state);
    // The instance may be gone before such a run is finished.
    if (instance->runs_freely())
        o.state = nullptr;
    return instance->launch_run(s);
}

error_code finish_run(backend&, bound_op& o) noexcept
{
    if (auto* instance = static_cast<plan_instance*>(o.state))
        instance->finish_run();
    return o.status;
}

std::size_t run_commands(const bound_op& o) noexcept
{
    return o.state ? static_cast<const plan_instance*>(o.state)->run_commands() : 1;
}

result<readiness> unload(backend& b, stream_state& s, bound_op& o)
{
    const auto id = o.as<plan_unload_op>().instance;
    auto& all = instances(b);
    auto* instance = all.find(id);
    if (!instance)
        return not_loaded(plan_unload_op::name, id);
    // The engine has put this op behind the runs of the instance.
    BOOST_OUTCOME_TRY(const auto done, instance->dispose(s.native));
    if (done == progress::pending)
        return readiness::pending;
    all.remove(id);
    return readiness::launched;
}

// Without descriptions: the ops contain addresses, and a process that describes an op accepts it from another process.
void add_ops(op_table& table)
{
    table.add(detail::plan_load_id, {.prepare = load, .commands = load_commands});
    table.add(info_of<plan_run_op>().id,
              {.prepare = prepare_run, .enqueue = launch, .finish = finish_run, .commands = run_commands});
    table.add(info_of<plan_unload_op>().id, {.prepare = unload});
}

} // namespace

const op_library plan_ops{.add_ops = add_ops};

} // namespace coaccel::cuda
