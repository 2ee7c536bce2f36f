#include "serve/batcher_core.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/system_executor.hpp>

namespace coaccel::detail {
namespace {

error_code is_empty_batcher() noexcept
{
    return op_error(errc::invalid_argument, "batcher", {"it is empty: default-constructed or moved from"});
}

} // namespace

void submit(const batcher_ptr& core, batch_request& r)
{
    if (core)
        return core->submit(r);
    r.ec = is_empty_batcher();
    r.post();
}

void submit(const batcher_ptr& core, batch_control& r)
{
    if (core)
        return core->submit(r);
    r.ec = is_empty_batcher();
    r.post();
}

void cancel_batched(const batcher_ptr& core, std::uint64_t cancel_id, asio::cancellation_type type)
{
    constexpr auto honoured =
        asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
    if ((type & honoured) != asio::cancellation_type::none)
        core->cancel(cancel_id, type);
}

const asio::any_io_executor& executor_of(const batcher_ptr& core) noexcept
{
    // Never destroyed: objects with static storage duration may use it.
    static const auto& none = *new asio::any_io_executor(asio::system_executor());
    return core ? core->executor() : none;
}

void ended(const batcher_ptr& core, batch_run& run) noexcept
{
    core->push(run);
}

batcher_ptr make_batcher(asio::any_io_executor ex, const serve::batcher_options& options,
                         std::vector<std::uint32_t> sizes, std::unique_ptr<batch_runner> runner)
{
    return batcher_core::make(std::move(ex), options, std::move(sizes), std::move(runner));
}

batcher_ptr self_of(batcher_core& core) noexcept
{
    return core.shared_from_this();
}

batcher_handle::~batcher_handle()
{
    core->handle_dropped();
}

serve::batcher_stats batcher_handle::stats() const
{
    return core->stats();
}

const std::string& batcher_handle::name() const noexcept
{
    return core->name();
}

} // namespace coaccel::detail
