#include "cuda/plan/plan_recording.hpp"

#include "cuda/backend.hpp"

namespace coaccel::cuda {

plan_recording::plan_recording(backend& b, plan_instance& i, stream_state* recorder) noexcept
    : backend_(b), instance_(i), recorder_(recorder), warm_up_(b), job_(b.blocking())
{}

result<readiness> plan_recording::advance(stream_state& lane)
{
    while (!failure_ && stage_ != stage::loaded) {
        const auto done = step(lane);
        if (!done)
            failure_ = done.error();
        else if (done.value() == progress::pending)
            return readiness::pending;
    }
    if (failure_)
        return fail(lane);
    return readiness::launched;
}

progress plan_recording::go_to(stage next) noexcept
{
    stage_ = next;
    return progress::passed;
}

result<progress> plan_recording::step(stream_state& lane)
{
    const auto next = [this](const result<progress>& done, stage after) -> result<progress> {
        return done && done.value() == progress::passed ? go_to(after) : done;
    };
    switch (stage_) {
    case stage::staging: return next(job_.run([&i = instance_] { return i.make_staging(); }), stage::start);
    case stage::start:
        if (auto ec = start(lane))
            return ec;
        return go_to(recorder_ ? stage::warm_up : stage::loaded);
    case stage::warm_up: return next(warm_up_.advance(*recorder_), stage::wait);
    case stage::wait: return wait_for_warm_up(lane);
    case stage::prepare: return prepare_ops(lane);
    case stage::capture: return capture();
    case stage::instantiate:
        return next(job_.run([&i = instance_, s = recorder_->native] { return i.instantiate(s); }), stage::end);
    case stage::end:
        if (auto ec = make_wait(lane, *recorder_))
            return ec;
        return go_to(stage::loaded);
    case stage::loaded: break;
    }
    return progress::passed;
}

error_code plan_recording::start(stream_state& lane)
{
    if (!recorder_)
        return instance_.clear(lane.native);
    // The engine has made the lane wait for the work that writes the constants.
    if (auto ec = make_wait(*recorder_, lane))
        return ec;
    if (auto ec = instance_.clear(recorder_->native))
        return ec;
    instance_.bind(plan_instance::states::spare);
    warm_up_.start(instance_.ops(), lane.native);
    return {};
}

error_code plan_recording::make_wait(stream_state& waiting, stream_state& for_work)
{
    backend::stream from(for_work);
    backend::stream to(waiting);
    backend::event e;
    if (auto ec = backend_.record(e, from))
        return ec;
    return backend_.wait(to, e);
}

result<progress> plan_recording::wait_for_recorder(stream_state& lane)
{
    return job_.run(
        [&b = backend_, own = recorder_->native, after = lane.native] { return wait_on_own_stream(b, own, after); });
}

result<progress> plan_recording::wait_for_warm_up(stream_state& lane)
{
    BOOST_OUTCOME_TRY(const auto done, wait_for_recorder(lane));
    if (done == progress::pending)
        return done;
    if (auto ec = warm_up_.finish())
        return ec;
    next_ = 0;
    return go_to(stage::prepare);
}

// Still with the spare states: an op may be launched, and must not change the real ones.
result<progress> plan_recording::prepare_ops(stream_state& lane)
{
    backend::stream where(*recorder_);
    const auto ops = instance_.ops();
    while (next_ < ops.size()) {
        if (commands_ >= op_sequence::most_commands) {
            BOOST_OUTCOME_TRY(const auto done, wait_for_recorder(lane));
            if (done == progress::pending)
                return done;
            commands_ = 0;
        }
        BOOST_OUTCOME_TRY(const auto ready, backend_.prepare(where, ops[next_]));
        if (ready == readiness::pending)
            return progress::pending;
        if (ready == readiness::ready) {
            ++next_;
            surprises_ = 0;
            continue;
        }
        if (++surprises_ > most_surprises)
            return make_error_with_message(errc::backend_error,
                                           "plan.load: " + ops[next_].info->name + " cannot be recorded");
        commands_ += backend::commands_of(ops[next_]);
    }
    instance_.bind(plan_instance::states::real);
    return go_to(stage::capture);
}

result<progress> plan_recording::capture()
{
    result<progress> done = progress::passed;
    if (instance_.ops().size() > most_ops_captured_here)
        done = job_.run([&i = instance_, s = recorder_] { return i.capture(*s); });
    else if (auto ec = instance_.capture(*recorder_))
        done = ec;
    if (done)
        return done.value() == progress::passed ? go_to(stage::instantiate) : done;
    if (backend_.dead() || ++captures_ == most_captures)
        return done;
    instance_.bind(plan_instance::states::spare);
    next_ = 0;
    return go_to(stage::prepare);
}

result<readiness> plan_recording::fail(stream_state& lane)
{
    if (backend_.dead())
        return failure_;
    // The memory of the instance may be released after this op, so nothing may still use it.
    const auto done = instance_.dispose(recorder_ ? recorder_->native : lane.native);
    if (done && done.value() == progress::pending)
        return readiness::pending;
    return failure_;
}

} // namespace coaccel::cuda
