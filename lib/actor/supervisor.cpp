#include <coaccel/actor/supervisor.hpp>

#include <actor/supervisor_state.hpp>
#include <utility>

namespace coaccel {

namespace detail {

void cancel_end::operator()(asio::cancellation_type type) const
{
    auto s = type == asio::cancellation_type::none ? nullptr : state.lock();
    if (!s)
        return;
    if (kind == end_kind::run)
        s->cancel_run(*op);
    else
        s->cancel_stop(*op);
}

initiate_end::executor_type initiate_end::get_executor() const noexcept
{
    return state_->executor();
}

void initiate_end::begin(async_op_base& op) const
{
    if (kind_ == end_kind::run)
        state_->run(op);
    else
        state_->stop(op);
}

} // namespace detail

result<std::shared_ptr<supervisor>> supervisor::create(executor_type ex, const restart_policy& policy,
                                                       std::vector<std::shared_ptr<supervised>> children)
{
    if (const error_code ec = policy.validate())
        return ec;
    auto state = std::make_shared<detail::supervisor_state>(std::move(ex), policy, std::move(children));
    return std::shared_ptr<supervisor>(new supervisor(std::move(state)));
}

supervisor::supervisor(std::shared_ptr<detail::supervisor_state> state) noexcept : state_(std::move(state)) {}

supervisor::~supervisor()
{
    state_->abandon();
}

void supervisor::add(std::shared_ptr<supervised> c)
{
    state_->add(std::move(c));
}

supervisor::executor_type supervisor::get_executor() const noexcept
{
    return state_->executor();
}

supervisor_stats supervisor::stats() const noexcept
{
    return state_->stats();
}

void supervisor::start(child_listener listener)
{
    state_->start_below(std::move(listener));
}

void supervisor::resume()
{
    state_->resume_below();
}

void supervisor::stop()
{
    state_->request_stop({});
}

void supervisor::retire(error_code reason)
{
    state_->retire_below(reason);
}

} // namespace coaccel
