#include "server/server_core.hpp"

#include "server/http/connection.hpp"
#include "telemetry/http/routes.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <utility>

namespace coaccel::server {
namespace {

using asio::ip::tcp;
using detail::op_error;

constexpr auto await_tuple = asio::as_tuple(asio::use_awaitable);

// How exactly the time limits of connections are kept: a tenth of the shortest, within these bounds.
constexpr std::chrono::nanoseconds shortest_sweep = std::chrono::milliseconds(5);
constexpr std::chrono::nanoseconds longest_sweep = std::chrono::milliseconds(500);

// How long a device stays failed before it is tried again.
constexpr std::chrono::nanoseconds revive_pause = std::chrono::seconds(5);

std::chrono::nanoseconds sweep_interval(const connection_limits& limits)
{
    const auto shortest = std::min({limits.idle_timeout, limits.header_timeout, limits.transfer_timeout});
    return std::clamp<std::chrono::nanoseconds>(shortest / 10, shortest_sweep, longest_sweep);
}

/// For messages and metrics: "cpu0", "gpu0" and so on; "device0" if it is not known before what it is.
std::string device_name(const device_options& options, std::size_t index)
{
    const char* const kind = options.kind == device_kind::host   ? "cpu"
                             : options.kind == device_kind::cuda ? "gpu"
                                                                 : "device";
    return kind + std::to_string(index);
}

} // namespace

server_core::server_core(const asio::any_io_executor& ex, server_options options, telemetry::registry metrics)
    : executor_(ex), strand_(asio::make_strand(ex)), options_(std::move(options)), metrics_(std::move(metrics)),
      store_(std::make_shared<model_store>(ex, options_, metrics_)), sweep_(strand_), emptied_(strand_),
      stop_ended_(strand_)
{}

server_core::~server_core() = default;

void server_core::limit_connections()
{
    // For workers, devices and files.
    constexpr rlim_t reserve = 256;
    const std::size_t wanted = options_.limits.max_connections;
    max_connections_ = wanted;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    const rlim_t most = limit.rlim_cur > 2 * reserve ? limit.rlim_cur - reserve : limit.rlim_cur / 2;
    if (most >= wanted)
        return;
    max_connections_ = std::max<std::size_t>(static_cast<std::size_t>(most), 1);
    detail::log(log_level::warning, "server: at most " + std::to_string(max_connections_) + " connections instead of " +
                                        std::to_string(wanted) + ", because the process may have only " +
                                        std::to_string(limit.rlim_cur) + " descriptors (RLIMIT_NOFILE)");
}

error_code server_core::listen()
{
    error_code ec;
    const auto address = asio::ip::make_address(options_.address, ec);
    if (ec)
        return op_error(errc::invalid_option, "server",
                        {"address is \"", options_.address, "\", which is not an IP address"});
    is_local_ = address.is_loopback();
    ec = listener_.open(executor_, tcp::endpoint(address, options_.port));
    if (ec)
        return op_error(errc::start_failed, "server",
                        {"cannot listen on address ", options_.address, ", port ", options_.port, ": ", ec.message()});
    return {};
}

asio::awaitable<result<void>> server_core::make_devices()
{
    auto wanted = options_.devices;
    if (wanted.empty())
        wanted.push_back(default_device());
    for (std::size_t i = 0; i < wanted.size() && !stopping(); ++i) {
        const auto name = device_name(wanted[i], i);
        BOOST_OUTCOME_CO_TRY(auto made, co_await device::async_create(executor_, wanted[i]));
        {
            const std::lock_guard lock(mutex_);
            devices_.push_back({name, made, {}});
        }
        BOOST_OUTCOME_CO_TRY(auto reported, metrics_.add(made, name));
        registrations_.push_back(std::move(reported));
    }
    co_return outcome::success();
}

asio::awaitable<result<void>> server_core::start()
{
    const auto self = shared_from_this();
    result<void> started = outcome::success();
    std::exception_ptr thrown;
    try {
        started = co_await start_parts();
    } catch (...) {
        thrown = std::current_exception();
    }
    if (!thrown && started && !stopping())
        co_return outcome::success();
    co_await stop(shutdown::abandon);
    // A stop that ran beside the start has not seen what was made after it.
    co_await stop_devices();
    if (thrown)
        std::rethrow_exception(thrown);
    if (started)
        co_return error_code(asio::error::operation_aborted);
    co_return started;
}

asio::awaitable<result<void>> server_core::start_parts()
{
    if (auto ec = options_.check())
        co_return ec;
    BOOST_OUTCOME_CO_TRY(log_, access_log::open(options_.access_log));
    limit_connections();
    BOOST_OUTCOME_CO_TRY(tenants_, tenants::create(executor_, options_, metrics_));
    if (auto ec = listen())
        co_return ec;
    BOOST_OUTCOME_CO_TRYV(co_await make_devices());
    if (stopping())
        co_return outcome::success();
    // Without a cycle: the registration does not keep the server.
    registrations_.push_back(metrics_.add_source([this, weak = weak_from_this()](telemetry::metric_writer& out) {
        if (const auto self = weak.lock())
            counters_.write(out, count());
    }));
    asio::co_spawn(strand_, close_late_connections(), asio::detached);
    listener_.start(shared_from_this());
    const auto store = store_;
    std::vector<device> all;
    for (const auto& d : devices_)
        all.push_back(d.made);
    co_await asio::co_spawn(store->strand(), store->start(std::move(all)), asio::use_awaitable);
    loaded_.store(true, std::memory_order_relaxed);
    co_return outcome::success();
}

asio::awaitable<void> server_core::close_late_connections()
{
    const auto self = shared_from_this();
    const auto interval = sweep_interval(options_.limits);
    while (!stopping() || count() > 0) {
        bool failed = false;
        try {
            sweep_.expires_after(interval);
            co_await sweep_.async_wait(await_tuple);
            const auto now = clock::now();
            for (const auto& c : connections())
                c->check_deadline(now);
            if (!stopping())
                revive_failed(now);
        } catch (const std::exception&) {
            failed = true;
        }
        // Memory may be there again soon. A timer would need some, too.
        if (failed)
            std::this_thread::sleep_for(shortest_sweep);
    }
}

/// Starts devices again that have failed, at intervals: no operation of the protocol does it.
void server_core::revive_failed(clock::time_point now)
{
    std::vector<device> failed;
    {
        const std::lock_guard lock(mutex_);
        for (auto& d : devices_) {
            if (d.made.status().state != device_state::failed) {
                d.revive_at.reset();
                continue;
            }
            if (d.revive_at && now >= *d.revive_at)
                failed.push_back(d.made);
            if (!d.revive_at || now >= *d.revive_at)
                d.revive_at = now + revive_pause;
        }
    }
    for (const auto& d : failed)
        d.async_revive(asio::detached);
}

std::vector<std::shared_ptr<connection>> server_core::connections()
{
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<connection>> all;
    all.reserve(connections_.size());
    for (connection* c : connections_)
        // One whose destructor has begun waits for the lock.
        if (auto alive = c->weak_from_this().lock())
            all.push_back(std::move(alive));
    return all;
}

std::size_t server_core::count() const
{
    const std::lock_guard lock(mutex_);
    return connections_.size();
}

asio::any_io_executor server_core::session_executor()
{
    // One thread needs no strand.
    if (options_.io_threads == 1)
        return executor_;
    return asio::make_strand(executor_);
}

void server_core::begin_session(tcp::socket socket)
{
    counters_.accepted.fetch_add(1, std::memory_order_relaxed);
    if (stopping())
        return;
    if (is_full() && !replace_longest_idle()) {
        counters_.refused.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const auto made = std::make_shared<connection>(shared_from_this(), std::move(socket));
    {
        const std::lock_guard lock(mutex_);
        connections_.insert(made.get());
    }
    asio::post(made->executor(), [made] { made->guarded([&] { made->start(); }); });
}

bool server_core::is_full() const
{
    const std::lock_guard lock(mutex_);
    return connections_.size() - replaced_ >= max_connections_;
}

bool server_core::replace_longest_idle()
{
    // Otherwise clients that connect and send nothing could keep all others out. One that was chosen is not chosen
    // again: each further connection takes the place of another one.
    std::shared_ptr<connection> longest;
    {
        const std::lock_guard lock(mutex_);
        connection* chosen = nullptr;
        clock::time_point since;
        for (connection* c : connections_) {
            const auto waits = c->is_replaced ? std::nullopt : c->idle_since();
            if (waits && (!chosen || *waits < since)) {
                chosen = c;
                since = *waits;
            }
        }
        if (!chosen)
            return false;
        chosen->is_replaced = true;
        ++replaced_;
        longest = chosen->weak_from_this().lock();
    }
    // The destructor of one that is not alive waits for the lock.
    if (longest)
        longest->give_place_later();
    return true;
}

void server_core::keeps_place(connection& c) noexcept
{
    {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(c.is_replaced, false))
            return;
        --replaced_;
    }
    // If no other one waits for a request, there is one more than allowed until one ends.
    (void)replace_longest_idle();
}

void server_core::remove(connection& c) noexcept
{
    bool last = false;
    {
        const std::lock_guard lock(mutex_);
        if (connections_.erase(&c) > 0 && c.is_replaced)
            --replaced_;
        last = connections_.empty();
    }
    if (!last || !stopping())
        return;
    try {
        asio::post(strand_, [weak = weak_from_this()] {
            if (const auto self = weak.lock())
                self->emptied_.cancel();
        });
    } catch (const std::exception&) {
        // The wait ends with its limit.
    }
}

bool server_core::serves_host(std::string_view host) const noexcept
{
    return !is_local_ || detail::is_local_host(host);
}

std::vector<telemetry::device_sample> server_core::devices() const
{
    const std::lock_guard lock(mutex_);
    std::vector<telemetry::device_sample> all;
    for (const auto& d : devices_)
        all.push_back({d.name, d.made.status(), {}});
    return all;
}

bool server_core::any_device_works() const
{
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(devices_, [](const named_device& d) {
        const auto state = d.made.status().state;
        return state != device_state::failed && state != device_state::stopping && state != device_state::stopped;
    });
}

bool server_core::ready() const
{
    return loaded_.load(std::memory_order_relaxed) && !stopping() && any_device_works();
}

/// Waits in vain no longer than to the limit, and not in a mode that has changed.
asio::awaitable<void> server_core::wait_until_empty(clock::time_point limit, shutdown mode)
{
    while (count() > 0 && stop_mode_ == mode && clock::now() < limit) {
        emptied_.expires_at(limit);
        if (count() > 0)
            co_await emptied_.async_wait(await_tuple);
    }
}

asio::awaitable<void> server_core::stop(shutdown mode)
{
    const auto self = shared_from_this();
    const bool first = !stopping_.exchange(true, std::memory_order_relaxed);
    listener_.close();
    if (first)
        stop_mode_ = mode;
    const bool escalates = !first && mode == shutdown::abandon && std::exchange(stop_mode_, mode) != mode;
    if (escalates) {
        emptied_.cancel();
        // Those that are being stopped already are told again.
        for (const auto& d : devices_)
            d.made.async_shutdown(mode, asio::detached);
    }
    while (!stopped_) {
        if (stop_runs_) {
            co_await stop_ended_.async_wait(await_tuple);
            continue;
        }
        // After an exception the next call tries again.
        stop_runs_ = true;
        // Here and not where it is waited for: setting the time ends the waits of others.
        stop_ended_.expires_at(clock::time_point::max());
        const auto end = [](server_core* core) {
            core->stop_runs_ = false;
            core->stop_ended_.cancel();
        };
        const std::unique_ptr<server_core, decltype(end)> at_end(this, end);
        co_await stop_parts();
        stopped_ = true;
    }
}

asio::awaitable<void> server_core::stop_parts()
{
    if (stop_mode_ == shutdown::drain) {
        for (const auto& c : connections())
            c->end_if_idle_later();
        co_await wait_until_empty(clock::now() + options_.drain_timeout, shutdown::drain);
    }
    for (const auto& c : connections())
        c->abandon_later();
    co_await wait_until_empty(clock::now() + std::chrono::seconds(1), stop_mode_);
    sweep_.cancel();
    const auto store = store_;
    co_await asio::co_spawn(store->strand(), store->stop(), asio::use_awaitable);
    co_await stop_devices();
}

asio::awaitable<void> server_core::stop_devices()
{
    // They stay in the list while they stop, so that a later call can find them. It may grow meanwhile.
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const device d = devices_[i].made;
        auto ended = co_await d.async_shutdown(stop_mode_);
        (void)ended;
    }
    registrations_.clear();
    const std::lock_guard lock(mutex_);
    devices_.clear();
}

void server_core::abandon() noexcept
{
    if (stopping())
        return;
    try {
        asio::co_spawn(strand_, stop(shutdown::abandon), asio::detached);
    } catch (const std::exception&) {
        listener_.close();
    }
}

} // namespace coaccel::server
