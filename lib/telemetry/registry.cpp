#include "telemetry/registry_state.hpp"

#include <coaccel/core/detail/op_error.hpp>
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

registry::registry(executor_type ex, const registry_options& options)
    : state_(std::make_shared<detail::registry_state>(std::move(ex), options))
{}

registry::executor_type registry::get_executor() const noexcept
{
    return state_->executor();
}

result<counter> registry::add_counter(std::string_view name, std::string_view help, labels with) const
{
    return state_->with_metrics([&](detail::owned_metrics& m) -> result<counter> {
        if (const error_code ec = m.check_reserved(name))
            return ec;
        return m.add_counter(name, help, std::move(with));
    });
}

result<gauge> registry::add_gauge(std::string_view name, std::string_view help, labels with) const
{
    return state_->with_metrics([&](detail::owned_metrics& m) -> result<gauge> {
        if (const error_code ec = m.check_reserved(name))
            return ec;
        return m.add_gauge(name, help, std::move(with));
    });
}

result<histogram> registry::add_histogram(std::string_view name, std::string_view help, labels with,
                                          const histogram_options& options) const
{
    return state_->with_metrics([&](detail::owned_metrics& m) -> result<histogram> {
        if (const error_code ec = m.check_reserved(name))
            return ec;
        return m.add_histogram(name, help, std::move(with), options);
    });
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
        return detail::op_error(errc::invalid_argument, "registry.add", {"the device \"", name, "\" is empty"});
    auto added = std::make_shared<detail::registered_source>(std::move(gpu), std::move(name));
    state_->add(added);
    return registration(state_, std::move(added));
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
