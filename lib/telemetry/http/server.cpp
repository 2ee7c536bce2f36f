#include "telemetry/http/server.hpp"

#include "telemetry/http/session.hpp"
#include "telemetry/http/shared_collection.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <new>
#include <utility>

namespace coaccel::detail {
namespace {

using asio::ip::tcp;

asio::awaitable<void> run_session(std::unique_ptr<http_session> session)
{
    co_await session->run();
}

} // namespace

http_server::http_server(asio::any_io_executor ex, telemetry::registry metrics,
                         telemetry::http_endpoint_options options)
    : executor_(std::move(ex)), strand_(asio::make_strand(executor_.get())), metrics_(std::move(metrics)),
      options_(std::move(options))
{
    enlist(executor_.get());
}

http_server::~http_server()
{
    withdraw();
}

error_code http_server::listen()
{
    error_code ec;
    const auto address = asio::ip::make_address(options_.address, ec);
    if (ec)
        return op_error(errc::invalid_option, "http_endpoint",
                        {"address is \"", options_.address, "\", which is not an IP address"});
    only_local_ = address.is_loopback() && options_.token.empty();
    ec = listener_.open(executor_.get(), tcp::endpoint(address, options_.port));
    if (ec)
        return op_error(errc::start_failed, "http_endpoint",
                        {"cannot listen on address ", options_.address, ", port ", options_.port, ": ", ec.message()});
    return {};
}

void http_server::run()
{
    {
        const std::lock_guard lock(mutex_);
        end_signal_.emplace(strand_.get(), asio::steady_timer::time_point::max());
        end_signal_->async_wait([self = shared_from_this()](error_code) {
            if (self->abandoned())
                self->begin_stop(ending::abrupt);
        });
    }
    try {
        listener_.start(shared_from_this());
    } catch (...) {
        // Its handler keeps the server, and with it the port.
        const std::lock_guard lock(mutex_);
        end_signal_.reset();
        throw;
    }
}

bool http_server::abandoned()
{
    const std::lock_guard lock(mutex_);
    return abandoned_;
}

void http_server::begin_session(tcp::socket socket)
{
    if (stopping_ || (sessions_.size() >= options_.max_connections && !close_longest_idle()))
        return;
    // Exists, and is counted, before its coroutine begins.
    auto session = std::make_unique<http_session>(shared_from_this(), std::move(socket));
    // An exception, such as std::bad_alloc, ends only its session.
    asio::co_spawn(strand_.get(), run_session(std::move(session)), [](std::exception_ptr) {});
}

bool http_server::close_longest_idle()
{
    // Otherwise clients that connect and send nothing could keep all others out.
    http_session* longest = nullptr;
    for (http_session* s : sessions_)
        if (s->idle_since() && (!longest || *s->idle_since() < *longest->idle_since()))
            longest = s;
    if (longest)
        longest->close();
    return longest != nullptr;
}

void http_server::remove(http_session& s) noexcept
{
    sessions_.erase(&s);
    if (stopping_)
        complete_stops();
}

void http_server::stop(async_op_base& op)
{
    std::unique_lock lock(mutex_);
    if (shut_down_) {
        lock.unlock();
        return op.destroy();
    }
    try {
        asio::post(strand_.get(), [self = shared_from_this()] { self->begin_stop(ending::graceful); });
    } catch (...) {
        lock.unlock();
        op.destroy();
        throw;
    }
    stops_.add(op);
}

void http_server::cancel_stop(async_op_base& op)
{
    {
        const std::lock_guard lock(mutex_);
        if (!op.waiting())
            return;
        stops_.remove(op);
    }
    op.ec = asio::error::operation_aborted;
    op.post();
}

void http_server::abandon() noexcept
{
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    if (end_signal_)
        end_signal_->cancel();
}

asio::awaitable<std::shared_ptr<const shared_collection>> http_server::collect()
{
    if (!collecting_ || collecting_->lost) {
        auto begun = std::make_shared<shared_collection>();
        metrics_.async_collect(collection_answer(weak_from_this(), begun));
        collecting_ = std::move(begun);
    }
    const auto c = collecting_;
    asio::steady_timer limit(strand_.get(), options_.write_timeout);
    const collection_wait waiting(*c, limit);
    co_await limit.async_wait(asio::as_tuple(asio::use_awaitable));
    std::shared_ptr<const shared_collection> result;
    if (c->done)
        result = c;
    co_return result;
}

void http_server::collected(const std::shared_ptr<shared_collection>& c, error_code ec,
                            telemetry::snapshot&& all) noexcept
{
    const std::lock_guard lock(mutex_);
    if (shut_down_)
        return;
    try {
        asio::post(strand_.get(), [self = shared_from_this(), c, ec, got = std::move(all)]() mutable {
            c->done = true;
            c->ec = ec;
            c->all = std::move(got);
            if (self->collecting_ == c)
                self->collecting_.reset();
            c->wake_all();
        });
    } catch (const std::bad_alloc&) {
        c->lost = true;
    }
}

collection_answer::~collection_answer()
{
    if (!collection_)
        return;
    if (const auto s = server_.lock())
        s->collected(collection_, asio::error::operation_aborted, {});
}

void collection_answer::operator()(error_code ec, telemetry::snapshot all)
{
    const auto c = std::move(collection_);
    if (const auto s = server_.lock())
        s->collected(c, ec, std::move(all));
}

void http_server::begin_stop(ending how)
{
    stopping_ = true;
    listener_.close();
    for (http_session* s : sessions_) {
        if (how == ending::abrupt)
            s->close();
        else
            s->end_if_idle();
    }
    if (how == ending::abrupt && collecting_)
        collecting_->wake_all();
    complete_stops();
}

void http_server::complete_stops()
{
    if (!stopping_ || !sessions_.empty())
        return;
    async_op_list done;
    {
        const std::lock_guard lock(mutex_);
        end_signal_.reset();
        stops_.move_all(done);
    }
    done.post_all();
}

void http_server::shutdown(async_op_list& out) noexcept
{
    const std::lock_guard lock(mutex_);
    shut_down_ = true;
    stops_.move_all(out);
    listener_.shutdown();
    end_signal_.reset();
    strand_.let_go(out);
    executor_.let_go(out);
}

void cancel_endpoint_stop::operator()(asio::cancellation_type type) const
{
    constexpr auto honoured =
        asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
    if ((type & honoured) == asio::cancellation_type::none)
        return;
    if (const auto s = server.lock())
        s->cancel_stop(*op);
}

initiate_endpoint_stop::executor_type initiate_endpoint_stop::get_executor() const noexcept
{
    return server_->executor();
}

void initiate_endpoint_stop::begin(async_op_base& op) const
{
    server_->stop(op);
}

} // namespace coaccel::detail
