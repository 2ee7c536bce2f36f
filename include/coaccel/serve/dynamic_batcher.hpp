#ifndef COACCEL_SERVE_DYNAMIC_BATCHER_HPP
#define COACCEL_SERVE_DYNAMIC_BATCHER_HPP

#include <coaccel/serve/batcher_calls.hpp>
#include <coaccel/serve/detail/row_request.hpp>

#include <boost/asio/async_result.hpp>

#include <concepts>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace coaccel::serve {

class dynamic_batcher_with;

/// Collects requests of many callers into batches, and runs each batch as one run of a plan.
///
///     BOOST_OUTCOME_CO_TRY(auto model, batch_model::create({{1, one}, {64, many}}));
///     const std::vector devices{gpu};
///     const std::vector models{model};
///     BOOST_OUTCOME_CO_TRY(auto classify, co_await dynamic_batcher::async_create(ex, devices, models, options));
///     auto done = co_await classify.async_run(from(request), to(answer));          // in many coroutines
///
/// The inputs are copied into memory that the device reads directly when a batch starts, the outputs back when it has
/// ended.
///
/// With several devices each batch runs on the one that has the fewest. A device that is being repaired gets no
/// batches while another works; one that has failed gets none until it is revived, and the requests that it had run on
/// another one (not with completion_order::arrival, whose order could not be kept). Requests that were on a context
/// when it died run again, as plan_options::rerun says. If a batch itself ends the context, its requests run one by
/// one: the one that ends the context again gets errc::context_lost, the others their answers. Such batches count for
/// plan_options::poison_limit; see async_revive.
///
/// A value type: copies refer to the same batcher. After the last copy is destroyed, it finishes the requests that it
/// has accepted, and stops.
///
/// Executor: handlers run on their associated executor, or else on the batcher's.
/// Cancellation of async_run: total, partial and terminal while the request waits for its batch, partial and terminal
/// afterwards. It completes at once, and the batch goes on without it; while a copy on another thread uses the caller's
/// memory (batches of 256 KiB or more), it completes when the copy has ended. So do requests whose deadline passes.
/// Exceptions: an initiating call throws std::bad_alloc; nothing has been started then. There is no recovery if the
/// batcher itself runs out of memory while it works: std::bad_alloc leaves the run() of its executor.
/// Lifetimes: a batcher may outlive its execution context.
/// Thread safety: const functions may be called from any thread, even on the same copy.
class dynamic_batcher : public batcher_calls {
public:
    /// Refers to no batcher; its operations complete with errc::invalid_argument.
    dynamic_batcher() noexcept = default;

    /// Creates a batcher, and loads the largest plan of each model on each device. Smaller plans are loaded when a
    /// batch could use them.
    ///
    /// Several models are for requests of several shapes: a request belongs to the model that its arguments fit with
    /// the fewest rows.
    ///
    /// Completion signature: void(error_code, dynamic_batcher).
    /// Completes when: batches can run on every device.
    /// Cancellation: completes at once; what has been loaded is released.
    /// Errors: errc::invalid_argument without a device or a model, and for an empty one; errc::invalid_option; those
    /// of device::async_load and device::async_alloc_pinned.
    template <class Executor, asio::completion_token_for<void(error_code, dynamic_batcher)> Token = default_token>
    static auto async_create(const Executor& ex, std::vector<device> devices, std::vector<batch_model> models,
                             const batcher_options& options, Token&& token = {})
    {
        return asio::async_initiate<Token, void(error_code, dynamic_batcher)>(
            detail::initiate_create_batcher<dynamic_batcher>{ex}, token, std::move(devices), std::move(models),
            options);
    }

    /// Runs one request as a part of a batch: `async_run(from(x), to(y))`. The k-th `from` is the k-th input of the
    /// model, the k-th `to` its k-th output. A request may have several rows.
    ///
    /// Completion signature: void(error_code).
    /// Completes when: the outputs are in the caller's memory. On an error their content is undefined.
    /// Lifetimes: the caller's memory must stay valid until completion.
    /// Errors: errc::invalid_argument for a missing or superfluous argument, errc::wrong_dtype, errc::length_mismatch
    /// for an argument that is no multiple of a row or has too many rows; errc::queue_full; errc::deadline_exceeded,
    /// at once if the deadline cannot be met; errc::actor_stopped; errc::device_failed if no device can be used;
    /// those of the plan.
    template <class... Args>
    auto async_run(Args&&... args) const
    {
        return run_with({}, static_cast<Args&&>(args)...);
    }

    /// As async_run, for arguments whose number is known only at run time: the inputs of the model, then its outputs,
    /// made by `from` and `to` or by hand.
    ///
    /// Completion signature: void(error_code).
    /// Lifetimes: `arguments` and the memory that it refers to must stay valid until completion.
    /// Errors: those of async_run.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_run_all(std::span<const run_range> arguments, Token&& token = {}) const
    {
        return run_all_with({}, arguments, static_cast<Token&&>(token));
    }

    /// The same batcher with these options for its requests: deadline, priority and when_full.
    dynamic_batcher_with with(const exec_options& options) const;

    friend bool operator==(const dynamic_batcher& a, const dynamic_batcher& b) noexcept
    {
        return a.handle() == b.handle();
    }

private:
    friend class dynamic_batcher_with;
    template <class Batcher>
    friend class detail::create_batcher_request;

    explicit dynamic_batcher(std::shared_ptr<detail::batcher_handle> handle) noexcept : batcher_calls(std::move(handle))
    {}

    template <class Token>
    auto run_all_with(const exec_options& how, std::span<const run_range> arguments, Token&& token) const
    {
        detail::initiate_batched<detail::row_request_view> start{core()};
        const detail::batcher_core* const its_core = start.core.get();
        return asio::async_initiate<Token, void(error_code)>(std::move(start), token, its_core, arguments, how);
    }

    template <class... Args>
    auto run_with(const exec_options& how, Args&&... args) const
    {
        constexpr std::size_t ranges = (std::size_t(detail::is_run_range<Args>) + ... + 0);
        static_assert((!detail::is_run_value<Args> && ...), "a batched plan has no parameters");
        static_assert(sizeof...(Args) <= ranges + 1, "async_run takes from(range) and to(range), then perhaps a token");
        const detail::run_arguments<ranges, 0> given(args...);
        detail::initiate_batched<detail::row_request_of<ranges>> start{core()};
        // The operation has the batcher in `start`; each further owner would cost two atomic operations.
        const detail::batcher_core* const its_core = start.core.get();
        if constexpr (sizeof...(Args) == ranges + 1) {
            auto all = std::forward_as_tuple(static_cast<Args&&>(args)...);
            using token_type = std::tuple_element_t<ranges, decltype(all)>;
            static_assert(!detail::is_run_range<token_type>, "the token is the last argument");
            using started = decltype(asio::async_initiate<token_type, void(error_code)>(
                std::move(start), std::get<ranges>(all), its_core, given.ranges, how));
            static_assert(detail::outlive<started, Args...>, COACCEL_TEMPORARY_RANGE);
            return asio::async_initiate<token_type, void(error_code)>(std::move(start), std::get<ranges>(all), its_core,
                                                                      given.ranges, how);
        } else {
            default_token token{};
            return asio::async_initiate<default_token, void(error_code)>(std::move(start), token, its_core,
                                                                         given.ranges, how);
        }
    }
};

/// A batcher together with options for its requests: `classify.with(within(5ms))`.
class dynamic_batcher_with {
public:
    /// Called by dynamic_batcher::with.
    dynamic_batcher_with(dynamic_batcher what, const exec_options& options) noexcept
        : batcher_(std::move(what)), options_(options)
    {}

    /// As dynamic_batcher::async_run.
    template <class... Args>
    auto async_run(Args&&... args) const
    {
        return batcher_.run_with(options_, static_cast<Args&&>(args)...);
    }

    /// As dynamic_batcher::async_run_all.
    template <asio::completion_token_for<void(error_code)> Token = default_token>
    auto async_run_all(std::span<const run_range> arguments, Token&& token = {}) const
    {
        return batcher_.run_all_with(options_, arguments, static_cast<Token&&>(token));
    }

private:
    dynamic_batcher batcher_;
    exec_options options_;
};

inline dynamic_batcher_with dynamic_batcher::with(const exec_options& options) const
{
    return {*this, options};
}

} // namespace coaccel::serve

#endif
