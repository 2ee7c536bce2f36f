#include "server/server_core.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/server/server.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>

#include <exception>
#include <utility>

namespace coaccel::server {

server& server::operator=(server&& other) noexcept
{
    if (this != &other) {
        if (core_)
            core_->abandon();
        core_ = std::move(other.core_);
    }
    return *this;
}

server::~server()
{
    if (core_)
        core_->abandon();
}

std::uint16_t server::port() const noexcept
{
    return core_ ? core_->port() : 0;
}

bool server::ready() const
{
    return core_ && core_->ready();
}

} // namespace coaccel::server

namespace coaccel::detail {
namespace {

/// The error of a coroutine that threw.
error_code error_of(const std::exception_ptr& thrown) noexcept
{
    try {
        std::rethrow_exception(thrown);
    } catch (const boost::system::system_error& e) {
        return e.code();
    } catch (const std::exception& e) {
        return op_error(errc::start_failed, "server", {e.what()});
    } catch (...) {
        return errc::start_failed;
    }
}

} // namespace

void create_server(const asio::any_io_executor& ex, server::server_options options, telemetry::registry metrics,
                   server_created handler)
{
    auto core = std::make_shared<server::server_core>(ex, std::move(options), std::move(metrics));
    const auto strand = core->strand();
    auto& c = *core;
    // Emitted and cleared on the handler's executor.
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected())
        slot.assign([weak = std::weak_ptr(core)](asio::cancellation_type) {
            if (const auto starting = weak.lock())
                starting->abandon();
        });
    asio::co_spawn(strand, c.start(),
                   [core = std::move(core), handler = std::move(handler), ex,
                    slot](const std::exception_ptr& thrown, const result<void>& started) mutable {
                       const error_code ec = thrown ? error_of(thrown) : !started ? started.error() : error_code();
                       // Pending operations, such as that of the listener, would keep it.
                       if (ec)
                           core->abandon();
                       server::server made = ec ? server::server() : server::server(std::move(core));
                       const auto to = asio::get_associated_executor(handler, ex);
                       asio::dispatch(to, [handler = std::move(handler), ec, slot, made = std::move(made)]() mutable {
                           slot.clear();
                           std::move(handler)(ec, std::move(made));
                       });
                   });
}

void stop_server(const std::shared_ptr<server::server_core>& core, shutdown mode, server_stopped handler)
{
    const auto ex = executor_of(core);
    const auto to = asio::get_associated_executor(handler, ex);
    if (!core) {
        const auto ec = op_error(errc::invalid_argument, "server", {"the server is empty"});
        return asio::post(
            ex, asio::bind_executor(to, [handler = std::move(handler), ec]() mutable { std::move(handler)(ec); }));
    }
    asio::co_spawn(core->strand(), core->stop(mode),
                   [core, handler = std::move(handler), to](const std::exception_ptr& thrown) mutable {
                       const error_code ec = thrown ? error_of(thrown) : error_code();
                       asio::dispatch(to, [handler = std::move(handler), ec]() mutable { std::move(handler)(ec); });
                   });
}

asio::any_io_executor executor_of(const std::shared_ptr<server::server_core>& core) noexcept
{
    return core ? core->executor() : asio::any_io_executor(asio::system_executor());
}

} // namespace coaccel::detail
