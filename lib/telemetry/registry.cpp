#include "telemetry/object_samples.hpp"
#include "telemetry/registry_state.hpp"

#include <coaccel/telemetry/registry.hpp>

namespace coaccel {

namespace detail {

void cancel_collect::operator()(asio::cancellation_type type) const
{
    constexpr auto honoured =
        asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
    if ((type & honoured) == asio::cancellation_type::none)
        return;
    if (const auto s = state.lock())
        s->cancel(*op);
}

initiate_collect::executor_type initiate_collect::get_executor() const noexcept
{
    return state_->executor();
}

void initiate_collect::begin(collection_op& op) const
{
    state_->collect(op);
}

} // namespace detail

namespace telemetry {
namespace {

/// Calls add(owned_metrics&), unless the name is reserved for this library.
template <class Metric, class Add>
result<Metric> add_own(detail::registry_state& state, std::string_view name, Add add)
{
    return state.with_metrics([&](detail::owned_metrics& m) -> result<Metric> {
        if (const error_code ec = m.check_reserved(name))
            return ec;
        return add(m);
    });
}

} // namespace

registry::registry(executor_type ex, const registry_options& options)
    : state_(std::make_shared<detail::registry_state>(std::move(ex), options))
{}

registry::executor_type registry::get_executor() const noexcept
{
    return state_->executor();
}

result<counter> registry::add_counter(std::string_view name, std::string_view help, labels with) const
{
    return add_own<counter>(*state_, name, [&](auto& m) { return m.add_counter(name, help, std::move(with)); });
}

result<gauge> registry::add_gauge(std::string_view name, std::string_view help, labels with) const
{
    return add_own<gauge>(*state_, name, [&](auto& m) { return m.add_gauge(name, help, std::move(with)); });
}

result<histogram> registry::add_histogram(std::string_view name, std::string_view help, labels with,
                                          const histogram_options& options) const
{
    return add_own<histogram>(*state_, name,
                              [&](auto& m) { return m.add_histogram(name, help, std::move(with), options); });
}

registration registry::add_source(std::function<void(metric_writer&)> source) const
{
    auto added = std::make_shared<detail::registered_source>(std::move(source));
    state_->add(added);
    return registration(state_, std::move(added));
}

result<registration> registry::add(device gpu, std::string name) const
{
    if (!gpu)
        return detail::nothing_to_add("device", name);
    auto added = std::make_shared<detail::registered_source>(std::move(gpu), std::move(name));
    state_->add(added);
    return registration(state_, std::move(added));
}

result<registration> registry::add(const std::shared_ptr<supervisor>& what, std::string name) const
{
    if (!what)
        return detail::nothing_to_add("supervisor", name);
    return add_source([weak = std::weak_ptr<supervisor>(what), name = std::move(name)](metric_writer& out) {
        if (const auto s = weak.lock())
            detail::write_supervisor(out, name, s->stats());
    });
}

result<registration> registry::add(const std::shared_ptr<trace_buffer>& what, std::string name) const
{
    if (!what)
        return detail::nothing_to_add("trace buffer", name);
    return add_source([weak = std::weak_ptr<trace_buffer>(what), name = std::move(name)](metric_writer& out) {
        if (const auto events = weak.lock())
            detail::write_trace_buffer(out, name, *events);
    });
}

std::vector<device_sample> registry::devices() const
{
    return state_->devices();
}

void registration::remove() noexcept
{
    const auto source = std::move(source_);
    const auto registry = std::exchange(registry_, {}).lock();
    if (!source)
        return;
    if (registry)
        registry->remove(*source);
    source->close();
}

} // namespace telemetry

} // namespace coaccel
