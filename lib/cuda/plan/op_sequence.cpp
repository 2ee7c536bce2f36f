#include "cuda/plan/op_sequence.hpp"

#include "cuda/backend.hpp"

namespace coaccel::cuda {

op_sequence::op_sequence(backend& b) noexcept : backend_(b), catch_up_(b.blocking()) {}

error_code wait_on_own_stream(backend& b, CUstream own, CUstream after)
{
    watched_waits::wait wait(b.waits());
    if (auto ec = b.check(b.api().cuStreamSynchronize(after)))
        return ec;
    wait.begin(std::chrono::steady_clock::now());
    return b.check(b.api().cuStreamSynchronize(own));
}

void op_sequence::start(std::span<bound_op> ops, CUstream after) noexcept
{
    ops_ = ops;
    after_ = after;
    next_ = begun_ = finished_ = commands_ = 0;
    for (bound_op& o : ops_) {
        o.status = {};
        o.state = nullptr;
    }
}

result<progress> op_sequence::advance(stream_state& s)
{
    backend::stream where(s);
    while (next_ < ops_.size()) {
        if (commands_ >= most_commands) {
            BOOST_OUTCOME_TRY(const auto done, catch_up_.run([&b = backend_, native = s.native, after = after_] {
                return after ? wait_on_own_stream(b, native, after) : b.check(b.api().cuStreamSynchronize(native));
            }));
            if (done == progress::pending)
                return done;
            commands_ = 0;
            if (auto ec = finish_until(next_))
                return ec;
        }
        bound_op& o = ops_[next_];
        begun_ = next_ + 1;
        BOOST_OUTCOME_TRY(const auto ready, backend_.prepare(where, o));
        if (ready == readiness::pending)
            return progress::pending;
        if (ready == readiness::ready)
            if (auto ec = backend_.enqueue(where, o))
                return ec;
        commands_ += backend::commands_of(o);
        ++next_;
    }
    return progress::passed;
}

error_code op_sequence::finish_until(std::size_t end) noexcept
{
    error_code first;
    for (; finished_ < end; ++finished_)
        if (auto ec = backend_.finish(ops_[finished_]); ec && !first)
            first = ec;
    return first;
}

} // namespace coaccel::cuda
