#ifndef COACCEL_SERVE_DETAIL_HOT_SWAP_ACCESS_HPP
#define COACCEL_SERVE_DETAIL_HOT_SWAP_ACCESS_HPP

#include <coaccel/core/detail/handler_op.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/device/shutdown.hpp>
#include <coaccel/serve/hot_swap_options.hpp>
#include <coaccel/telemetry/registration.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace coaccel::telemetry {

class registry;

} // namespace coaccel::telemetry

namespace coaccel::detail {

class hot_swap_core;
class served_version;
using hot_swap_ptr = std::shared_ptr<hot_swap_core>;

/// The handler of a version's shutdown. If it is destroyed instead of being called, the shutdown has ended too.
class COACCEL_DECL version_closed {
public:
    version_closed(hot_swap_ptr core, std::uint64_t version) noexcept : core_(std::move(core)), version_(version) {}
    /// For a version that the hot_swap does not know any more; it exists until its shutdown has ended.
    version_closed(hot_swap_ptr core, std::uint64_t version, std::shared_ptr<const served_version> what) noexcept
        : kept_(std::move(what)), core_(std::move(core)), version_(version)
    {}
    version_closed(version_closed&&) noexcept = default;
    version_closed& operator=(version_closed&&) = delete;
    ~version_closed() { done(); }

    void operator()(const error_code&) { done(); }
    void operator()() { done(); }

private:
    void done() noexcept;

    std::shared_ptr<const served_version> kept_;
    hot_swap_ptr core_;
    std::uint64_t version_;
};

/// A loaded version, with its type erased.
class COACCEL_DECL served_version {
public:
    served_version() = default;
    served_version(const served_version&) = delete;
    served_version& operator=(const served_version&) = delete;
    virtual ~served_version();

    /// Begins the shutdown. Called without locks.
    virtual void close(shutdown mode, version_closed done) const = 0;
};

/// Where a version comes from, with its type erased.
class COACCEL_DECL version_maker {
public:
    version_maker() = default;
    version_maker(const version_maker&) = delete;
    version_maker& operator=(const version_maker&) = delete;
    virtual ~version_maker();

    /// Calls the load function, which ends with version_loaded().
    virtual void load(const hot_swap_ptr& core, std::uint64_t version) = 0;
    /// Calls the warm-up function, which ends with version_warmed_up(). False: there is none.
    virtual bool warm_up(const hot_swap_ptr& core, std::uint64_t version,
                         const std::shared_ptr<const served_version>& what) = 0;
    /// Cancels the function that is being called.
    virtual void cancel() noexcept = 0;
};

/// A call of hot_swap::async_load.
class load_version_op : public async_op_base {
public:
    load_version_op(std::string n, std::shared_ptr<version_maker> m, error_code why) noexcept
        : name(std::move(n)), maker(std::move(m)), refused(why)
    {}

    std::string name;
    std::shared_ptr<version_maker> maker;
    /// Why it cannot be accepted.
    error_code refused;
    /// The number of the version; 0 if it was not accepted.
    std::uint64_t version = 0;

    auto take() { return std::tuple(ec, ec ? std::uint64_t(0) : version); }

protected:
    ~load_version_op() = default;
};

/// A call of hot_swap::async_shutdown.
class stop_swap_op : public async_op_base {
public:
    explicit stop_swap_op(shutdown m) noexcept : mode(m) {}

    const shutdown mode;

    std::tuple<error_code> take() const noexcept { return {ec}; }

protected:
    ~stop_swap_op() = default;
};

/// The version for one request.
struct picked_version {
    std::shared_ptr<const served_version> what;
    std::uint64_t version = 0;
};

COACCEL_DECL result<hot_swap_ptr> make_hot_swap(asio::any_io_executor ex, const serve::hot_swap_options& options);
COACCEL_DECL result<picked_version> pick_version(const hot_swap_ptr& core);
/// `ec` is null if the request has ended without an outcome.
COACCEL_DECL void request_ended(const hot_swap_ptr& core, std::uint64_t version, const error_code* ec) noexcept;
/// The load function has ended: with a version, or with an error.
COACCEL_DECL void version_loaded(const hot_swap_ptr& core, std::uint64_t version, const error_code& ec,
                                 std::shared_ptr<const served_version> what);
COACCEL_DECL void version_warmed_up(const hot_swap_ptr& core, std::uint64_t version, const error_code& ec);
COACCEL_DECL asio::any_io_executor executor_of(const hot_swap_ptr& core) noexcept;
COACCEL_DECL error_code roll_back_version(const hot_swap_ptr& core, std::uint64_t from);
COACCEL_DECL error_code confirm_version(const hot_swap_ptr& core, std::uint64_t which);
COACCEL_DECL serve::hot_swap_stats stats_of(const hot_swap_ptr& core);
COACCEL_DECL telemetry::registration report(const telemetry::registry& where, const hot_swap_ptr& core);

/// The error of a function that threw; of one that was destroyed before it ended if there is no exception.
COACCEL_DECL error_code version_function_failed(const std::exception_ptr& e) noexcept;
/// The error of a function that returned this one. An error without a code becomes errc::no_reply.
COACCEL_DECL error_code version_error(const error_code& ec) noexcept;
/// Why a value cannot be a version.
COACCEL_DECL error_code version_is_empty() noexcept;
/// Why a version_source cannot be used; `has_load`: it has a load function.
COACCEL_DECL error_code check_version_source(bool has_load) noexcept;
/// Whether the execution context has been destroyed. Calls then destroy their handlers.
COACCEL_DECL bool has_lost_its_context(const hot_swap_ptr& core) noexcept;
/// The error of a request whose coroutine was destroyed before it ended.
COACCEL_DECL error_code version_function_vanished(const hot_swap_ptr& core) noexcept;
/// The error of a call that threw, for requests.
COACCEL_DECL error_code version_threw(const hot_swap_ptr& core, const std::exception_ptr& e) noexcept;

/// Shared by all copies of a hot_swap. After the last one, it lets its requests end, and stops.
class COACCEL_DECL hot_swap_handle {
public:
    explicit hot_swap_handle(hot_swap_ptr c) noexcept : core(std::move(c)) {}
    hot_swap_handle(const hot_swap_handle&) = delete;
    hot_swap_handle& operator=(const hot_swap_handle&) = delete;
    ~hot_swap_handle();

    const hot_swap_ptr core;
};

COACCEL_DECL void cancel_swap(const hot_swap_ptr& core, load_version_op& op);
COACCEL_DECL void cancel_swap(const hot_swap_ptr& core, stop_swap_op& op);

template <class Op>
struct swap_canceller {
    std::weak_ptr<hot_swap_core> core;
    Op* op;

    void operator()(asio::cancellation_type type) const
    {
        constexpr auto honoured =
            asio::cancellation_type::total | asio::cancellation_type::partial | asio::cancellation_type::terminal;
        if ((type & honoured) == asio::cancellation_type::none)
            return;
        if (auto c = core.lock())
            cancel_swap(c, *op);
    }
};

/// False: the operation has ended, and the caller must post it. True: the hot_swap has it, or has destroyed it. Without
/// a hot_swap a call completes with errc::invalid_argument. Exceptions: std::bad_alloc; the operation stays with the
/// caller.
[[nodiscard]] COACCEL_DECL bool begin(const hot_swap_ptr& core, load_version_op& op);
[[nodiscard]] COACCEL_DECL bool begin(const hot_swap_ptr& core, stop_swap_op& op);

/// Starts a call of a hot_swap other than a request.
template <class Op>
struct initiate_swap_op {
    using executor_type = asio::any_io_executor;

    hot_swap_ptr core;

    executor_type get_executor() const noexcept { return executor_of(core); }

    template <class Handler, class... Args>
    void operator()(Handler&& handler, Args&&... args) const
    {
        using op_type = handler_op<Op, std::decay_t<Handler>, executor_type>;
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto* op = op_type::create(static_cast<Handler&&>(handler), get_executor(), static_cast<Args&&>(args)...);
        op->on_cancel(swap_canceller<Op>{core, static_cast<Op*>(op)});
        bool begun = false;
        try {
            begun = begin(core, *op);
        } catch (...) {
            // Before the handler is destroyed, which may own the signal.
            if (slot.is_connected())
                slot.clear();
            op->destroy();
            throw;
        }
        if (!begun)
            op->post();
    }
};

} // namespace coaccel::detail

#endif
