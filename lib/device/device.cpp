#include "device/device_core_nodes.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/device/device.hpp>

#include <boost/asio/system_executor.hpp>
#include <boost/assert.hpp>

namespace coaccel {
namespace detail {

asio::any_io_executor executor_of(const core_ptr& core) noexcept
{
    return core ? core->executor() : asio::any_io_executor(asio::system_executor());
}

void submit(const core_ptr& core, request& r)
{
    if (!core)
        r.ec = op_error(errc::invalid_argument, r.title ? std::string_view(r.title->text) : "device",
                        {"it is empty: default-constructed or moved from"});
    else if (r.call == request_kind::exec && r.ops.empty())
        r.ec = op_error(errc::invalid_argument, "op_list", {"it has no ops"});
    else
        return core->submit(r);
    r.post();
}

void cancel(const core_ptr& core, std::uint64_t cancel_id, asio::cancellation_type type)
{
    core->cancel(cancel_id, type);
}

std::uint64_t next_cancel_id() noexcept
{
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::shared_ptr<buffer_owner> make_buffer_owner(const core_ptr& core)
{
    return core ? core->make_owner() : nullptr;
}

core_ptr make_core(asio::any_io_executor ex, const device_options& options)
{
    return device_core::make(std::move(ex), options);
}

device_handle::~device_handle()
{
    core->handle_dropped();
}

} // namespace detail

void device::cancel() const
{
    if (handle_)
        handle_->core->cancel_all();
}

device_status device::status() const
{
    return handle_ ? handle_->core->status() : device_status{device_state::stopped, 0, {}};
}

watch<device_status> device::watch_state() const
{
    BOOST_ASSERT(handle_);
    return handle_->core->watch_state();
}

watch<generation> device::watch_generation() const
{
    BOOST_ASSERT(handle_);
    return handle_->core->watch_generation();
}

} // namespace coaccel
