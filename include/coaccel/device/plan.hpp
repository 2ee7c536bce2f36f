#ifndef COACCEL_DEVICE_PLAN_HPP
#define COACCEL_DEVICE_PLAN_HPP

#include <coaccel/device/detail/plan_requests.hpp>
#include <coaccel/device/detail/temporary_range.hpp>
#include <coaccel/device/device.hpp>

#include <boost/asio/async_result.hpp>

#include <array>
#include <concepts>
#include <cstring>
#include <memory>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coaccel {

/// An input of a run: contiguous elements in host memory, which must stay valid until the run completes.
template <element_range Range>
run_range from(const Range& elements) noexcept
{
    using value = std::ranges::range_value_t<Range>;
    auto* data = const_cast<value*>(std::ranges::data(elements));
    return {reinterpret_cast<std::byte*>(data), std::ranges::size(elements), dtype_v<value>, slot_kind::input};
}

/// The same for a temporary container. It lives long enough within a co_await expression. It does not compile with a
/// token that starts the run at once.
template <element_range Range>
    requires(!std::ranges::borrowed_range<Range>)
temporary_run_range from(Range&& elements) noexcept
{
    return {from(std::as_const(elements))};
}

/// An output of a run: contiguous elements in host memory, which must stay valid until the run completes.
template <element_range Range>
    requires std::ranges::borrowed_range<Range>
run_range to(Range&& elements) noexcept
{
    using value = std::ranges::range_value_t<Range>;
    static_assert(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>,
                  "a run writes to this memory");
    return {reinterpret_cast<std::byte*>(std::ranges::data(elements)), std::ranges::size(elements), dtype_v<value>,
            slot_kind::output};
}

/// The same for a temporary container, for an output that is not needed; see `from`.
template <element_range Range>
    requires(!std::ranges::borrowed_range<Range>)
temporary_run_range to(Range&& elements) noexcept
{
    return {to(elements)};
}

/// The value of a parameter for a run. It is copied here, and its type must be that of the parameter.
template <element T>
run_value value(const T& number) noexcept
{
    static_assert(sizeof(T) <= run_value::most_bytes);
    run_value made;
    std::memcpy(made.data, &number, sizeof(number));
    made.type = dtype_v<T>;
    return made;
}

namespace detail {

template <class T>
inline constexpr bool is_temporary_range = std::same_as<std::remove_cvref_t<T>, temporary_run_range>;
template <class T>
inline constexpr bool is_run_range = std::same_as<std::remove_cvref_t<T>, run_range> || is_temporary_range<T>;
template <class T>
inline constexpr bool is_run_value = std::same_as<std::remove_cvref_t<T>, run_value>;

/// Whether the arguments exist until an operation that was returned as a `Started` begins and ends.
template <class Started, class... Args>
inline constexpr bool outlive = starts_when_awaited<Started> || !(is_temporary_range<Args> || ...);

/// The arguments of a run, of both kinds, each in its order. A completion token is not among them.
template <std::size_t N, std::size_t M>
struct run_arguments {
    template <class... Args>
    explicit run_arguments(const Args&... args) noexcept
    {
        (add(args), ...);
    }

    void add(const run_range& r) noexcept { ranges[next_range++] = r; }
    void add(const temporary_run_range& r) noexcept { ranges[next_range++] = r; }
    void add(const run_value& v) noexcept { values[next_value++] = v; }
    void add(const auto&) noexcept {}

    std::array<run_range, N> ranges;
    std::array<run_value, M> values;
    std::size_t next_range = 0;
    std::size_t next_value = 0;
};

template <std::size_t N, std::size_t M, class Tuple>
auto start_run(const run_arguments<N, M>& given, const core_ptr& core, const std::shared_ptr<loaded_plan>& plan,
               const exec_options& how, Tuple&& args)
{
    constexpr std::size_t count = N + M;
    constexpr std::size_t size = std::tuple_size_v<std::decay_t<Tuple>>;
    static_assert(size <= count + 1, "async_run takes from(range), value(number) and to(range), then perhaps a token");
    const initiate_request<run_request<N, M>> start{core};
    if constexpr (size == count + 1) {
        using token_type = std::tuple_element_t<count, std::decay_t<Tuple>>;
        static_assert(!is_run_range<token_type> && !is_run_value<token_type>, "the token is the last argument");
        return asio::async_initiate<token_type, void(error_code)>(start, std::get<count>(args), plan, given.ranges,
                                                                  given.values, how);
    } else {
        default_token token{};
        return asio::async_initiate<default_token, void(error_code)>(start, token, plan, given.ranges, given.values,
                                                                     how);
    }
}

struct plan_run_access;

} // namespace detail

class plan_with;

/// A plan that is loaded on a device. A value type: copies refer to the same loaded plan, and keep the device alive as
/// a copy of it does. After the last copy is destroyed, the plan is unloaded once its runs have ended.
///
/// After the context of the device has died or was replaced, the device loads the plan again by itself; runs that
/// arrive meanwhile wait. States then begin with their initial content. Runs of a repeatable plan that were lost with
/// the context run again, as plan_options::rerun says.
///
/// Executor, cancellation, exceptions and thread safety: as for `device`.
class plan {
public:
    using executor_type = asio::any_io_executor;

    /// Refers to no plan; its operations complete with errc::invalid_argument.
    plan() noexcept = default;

    /// Runs the plan once: `async_run(from(request), value(2.0f), to(answer))`. The k-th `from` is the k-th input of
    /// the plan, the k-th `value` its k-th parameter, the k-th `to` its k-th output.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the outputs are in the caller's memory. On an error their content is undefined.
    /// Order: runs of a plan with states happen in the order in which they were started, other runs in any order.
    /// Lifetimes: the caller's memory must stay valid until completion. With a temporary container, a token that starts
    /// the run at once does not compile.
    /// Errors: errc::invalid_argument for a missing or superfluous argument, errc::wrong_dtype, errc::length_mismatch,
    /// errc::overlap if an output shares memory with another argument; errc::plan_quarantined; errc::buffer_suspect;
    /// those of the ops.
    template <class... Args>
    auto async_run(Args&&... args) const
    {
        return run_with({}, static_cast<Args&&>(args)...);
    }

    /// Unloads the plan from its device. Runs that have an instance end first; runs that wait for one, and later runs,
    /// complete with errc::invalid_argument.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: all memory of the plan has been released.
    /// Cancellation: completes at once; the plan is unloaded all the same.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_unload(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(detail::initiate_request<detail::unload_request>{core()},
                                                             token, detail::loaded_plans{loaded()});
    }

    /// Allows runs again after the plan was quarantined (plan_options::poison_limit), which loads it again if its
    /// loading was the cause, and with the present content of durable states that are suspect (suspect_rule::fail). A
    /// durable state whose memory cannot be used begins again with its initial content. A plan that could not be loaded
    /// into the current context is tried again. device::async_load accepts the same plan again. Otherwise it does
    /// nothing.
    ///
    /// Completion signature: void(error_code).
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_revive(Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code)>(
            detail::initiate_request<detail::revive_plan_request>{core()}, token, loaded());
    }

    /// The same plan with these options for its runs: `classify.with(within(1s)).async_run(...)`.
    plan_with with(const exec_options& options) const;

    executor_type get_executor() const noexcept { return detail::executor_of(core()); }
    const device& get_device() const noexcept { return device_; } ///< The device on which it is loaded.
    /// As given to async_load; empty for an empty `plan`.
    plan_description description() const { return handle_ ? handle_->description() : plan_description(); }
    /// Whether its runs complete with errc::plan_quarantined; see async_revive. Thread safety: any thread.
    bool quarantined() const noexcept { return handle_ && handle_->quarantined(); }
    /// Whether its runs complete with errc::buffer_suspect; see async_revive. Thread safety: any thread.
    bool suspect() const noexcept { return handle_ && handle_->suspect(); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    friend bool operator==(const plan& a, const plan& b) noexcept { return a.handle_ == b.handle_; }

private:
    friend class plan_with;
    friend class plan_set;
    friend struct detail::plan_run_access;
    template <class Plan, class Device>
    friend class detail::load_request;

    plan(device gpu, std::shared_ptr<detail::plan_handle> handle) noexcept
        : device_(std::move(gpu)), handle_(std::move(handle))
    {}

    template <class... Args>
    auto run_with(const exec_options& how, Args&&... args) const
    {
        constexpr std::size_t ranges = (std::size_t(detail::is_run_range<Args>) + ... + 0);
        constexpr std::size_t values = (std::size_t(detail::is_run_value<Args>) + ... + 0);
        const detail::run_arguments<ranges, values> given(args...);
        using started = decltype(detail::start_run(given, core(), loaded(), how,
                                                   std::forward_as_tuple(static_cast<Args&&>(args)...)));
        static_assert(detail::outlive<started, Args...>, COACCEL_TEMPORARY_RANGE);
        return detail::start_run(given, core(), loaded(), how, std::forward_as_tuple(static_cast<Args&&>(args)...));
    }

    detail::core_ptr core() const noexcept { return handle_ ? handle_->core : nullptr; }
    std::shared_ptr<detail::loaded_plan> loaded() const noexcept { return handle_ ? handle_->plan : nullptr; }

    device device_;
    std::shared_ptr<detail::plan_handle> handle_;
};

/// A plan together with options for its runs: `classify.with(options)`.
///
/// Exceptions: initiating calls throw std::bad_alloc; see `device`.
class plan_with {
public:
    /// Called by plan::with.
    plan_with(plan what, const exec_options& options) noexcept : plan_(std::move(what)), options_(options) {}

    const exec_options& options() const noexcept { return options_; } ///< The options of its runs.

    /// As plan::async_run.
    template <class... Args>
    auto async_run(Args&&... args) const
    {
        return plan_.run_with(options_, static_cast<Args&&>(args)...);
    }

private:
    plan plan_;
    exec_options options_;
};

inline plan_with plan::with(const exec_options& options) const
{
    return {*this, options};
}

namespace detail {

/// For parts of the library that run plans with any number of arguments.
struct plan_run_access {
    /// Completion signature: void(error_code). `part`: see run_call::part_of_suspect.
    template <class Handler>
    static void run(const plan& p, listed_run& arguments, const exec_options& how, bool part, Handler&& handler)
    {
        initiate_request<listed_run_request>{p.core()}(static_cast<Handler&&>(handler), p.loaded(), &arguments, how,
                                                       part);
    }
};

} // namespace detail

template <class Token>
auto device::async_load(plan_description described, plan_options how, Token&& token) const
{
    static_assert(asio::completion_token_for<Token, void(error_code, plan)>);
    return asio::async_initiate<Token, void(error_code, plan)>(
        detail::initiate_request<detail::load_request<plan, device>>{core()}, token, *this, std::move(described), how);
}

template <class Token>
    requires(!std::convertible_to<Token, plan_options>)
auto device::async_load(plan_description described, Token&& token) const
{
    return async_load(std::move(described), plan_options{}, static_cast<Token&&>(token));
}

} // namespace coaccel

// So that device.hpp, which declares the functions that load a set, defines them too.
#include <coaccel/device/plan_set.hpp>

#endif
