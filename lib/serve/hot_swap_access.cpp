#include "serve/hot_swap_core.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/system_error.hpp>

#include <utility>

namespace coaccel::detail {
namespace {

error_code is_empty_hot_swap() noexcept
{
    return op_error(errc::invalid_argument, "hot_swap", {"it is empty: default-constructed or moved from"});
}

template <class Op>
bool begin_or_refuse(const hot_swap_ptr& core, Op& op, bool (hot_swap_core::*call)(Op&))
{
    if (core)
        return ((*core).*call)(op);
    op.ec = is_empty_hot_swap();
    return false;
}

} // namespace

served_version::~served_version() = default;
version_maker::~version_maker() = default;

void version_closed::done() noexcept
{
    if (auto c = std::exchange(core_, nullptr))
        c->closed(version_);
}

result<hot_swap_ptr> make_hot_swap(asio::any_io_executor ex, const serve::hot_swap_options& options)
{
    if (auto ec = options.check())
        return ec;
    return hot_swap_core::make(std::move(ex), options);
}

result<picked_version> pick_version(const hot_swap_ptr& core)
{
    if (!core)
        return is_empty_hot_swap();
    return core->pick();
}

void request_ended(const hot_swap_ptr& core, std::uint64_t version, const error_code* ec) noexcept
{
    core->ended(version, ec);
}

void version_loaded(const hot_swap_ptr& core, std::uint64_t version, const error_code& ec,
                    std::shared_ptr<const served_version> what)
{
    core->loaded(version, ec, std::move(what));
}

void version_warmed_up(const hot_swap_ptr& core, std::uint64_t version, const error_code& ec)
{
    core->warmed_up(version, ec);
}

asio::any_io_executor executor_of(const hot_swap_ptr& core) noexcept
{
    return core ? core->executor() : asio::any_io_executor(asio::system_executor());
}

error_code roll_back_version(const hot_swap_ptr& core, std::uint64_t from)
{
    return core ? core->roll_back(from) : is_empty_hot_swap();
}

error_code confirm_version(const hot_swap_ptr& core, std::uint64_t which)
{
    return core ? core->confirm(which) : is_empty_hot_swap();
}

serve::hot_swap_stats stats_of(const hot_swap_ptr& core)
{
    return core ? core->stats() : serve::hot_swap_stats();
}

error_code version_function_failed(const std::exception_ptr& e) noexcept
{
    if (!e)
        return make_error_code(errc::no_reply);
    try {
        std::rethrow_exception(e);
    } catch (const std::exception& x) {
        return op_error(errc::user_exception, "the function threw", {x.what()});
    } catch (...) {
        return op_error(errc::user_exception, "the function threw", {"something that is no std::exception"});
    }
}

error_code version_threw(const hot_swap_ptr& core, const std::exception_ptr& e) noexcept
{
    // This is how coroutines report that they were cancelled, which is not the fault of the version.
    try {
        std::rethrow_exception(e);
    } catch (const boost::system::system_error& x) {
        if (x.code() == asio::error::operation_aborted)
            return x.code();
    } catch (...) {
    }
    return op_error(errc::user_exception, core->name(), {version_function_failed(e).message()});
}

bool has_lost_its_context(const hot_swap_ptr& core) noexcept
{
    return core && core->has_lost_its_context();
}

error_code version_function_vanished(const hot_swap_ptr& core) noexcept
{
    return op_error(errc::no_reply, core->name(), {"the coroutine of the function was destroyed before it ended"});
}

error_code version_error(const error_code& ec) noexcept
{
    return ec ? ec : op_error(errc::no_reply, "the function", {"it returned an error without a code"});
}

error_code version_is_empty() noexcept
{
    return op_error(errc::invalid_argument, "the load function", {"it returned an empty version"});
}

error_code check_version_source(bool has_load) noexcept
{
    return has_load ? error_code() : op_error(errc::invalid_argument, "version_source", {"load is empty"});
}

hot_swap_handle::~hot_swap_handle()
{
    core->handle_dropped();
}

void cancel_swap(const hot_swap_ptr& core, load_version_op& op)
{
    core->cancel(op);
}

void cancel_swap(const hot_swap_ptr& core, stop_swap_op& op)
{
    core->cancel(op);
}

bool begin(const hot_swap_ptr& core, load_version_op& op)
{
    return begin_or_refuse(core, op, &hot_swap_core::load);
}

bool begin(const hot_swap_ptr& core, stop_swap_op& op)
{
    return begin_or_refuse(core, op, &hot_swap_core::stop);
}

} // namespace coaccel::detail
