#ifndef COACCEL_SERVE_DETAIL_VERSION_MAKER_OF_HPP
#define COACCEL_SERVE_DETAIL_VERSION_MAKER_OF_HPP

#include <coaccel/serve/detail/function_call.hpp>
#include <coaccel/serve/detail/hot_swap_access.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace coaccel::detail {

/// A version that must be shut down, rather than only destroyed.
template <class T>
concept has_async_shutdown =
    requires(const T& what, version_closed done) { what.async_shutdown(shutdown::drain, std::move(done)); };

/// A version whose async_shutdown cannot be called, because it is not const.
template <class T>
concept has_mutable_async_shutdown = !has_async_shutdown<T> && requires(T& what, version_closed done) {
    what.async_shutdown(shutdown::drain, std::move(done));
};

/// Whether a handle such as a batcher refers to nothing.
template <class T>
bool is_empty_version(const T& what)
{
    if constexpr (std::is_class_v<T> && std::constructible_from<bool, const T&> && !std::convertible_to<const T&, bool>)
        return !static_cast<bool>(what);
    else
        return false;
}

template <class T>
class version_of final : public served_version {
    static_assert(!has_mutable_async_shutdown<T>,
                  "async_shutdown(shutdown, token) of a version must be const: requests share the version");

public:
    explicit version_of(T&& w) : what(std::move(w)) {}

    void close(shutdown mode, version_closed done) const override
    {
        if constexpr (has_async_shutdown<T>)
            what.async_shutdown(mode, std::move(done));
        else
            static_cast<void>(mode);
    }

    const T what;
};

/// Calls the functions of a version_source.
template <class T>
class version_maker_of final : public version_maker, public std::enable_shared_from_this<version_maker_of<T>> {
public:
    using load_function = std::function<asio::awaitable<result<T>>()>;
    using warm_up_function = std::function<asio::awaitable<result<void>>(const T&)>;
    using version_ptr = std::shared_ptr<const version_of<T>>;

    version_maker_of(load_function load, warm_up_function warm_up)
        : load_(std::move(load)), warm_up_(std::move(warm_up))
    {}

    void load(const hot_swap_ptr& core, std::uint64_t version) override
    {
        spawn(core, call_load(this->shared_from_this()), load_ended(core, version));
    }

    bool warm_up(const hot_swap_ptr& core, std::uint64_t version,
                 const std::shared_ptr<const served_version>& what) override
    {
        if (!warm_up_)
            return false;
        spawn(core, call_warm_up(this->shared_from_this(), std::static_pointer_cast<const version_of<T>>(what)),
              warm_up_ended(core, version));
        return true;
    }

    void cancel() noexcept override
    {
        // Without memory the function runs to its end, which changes nothing.
        try {
            if (auto running = running_.lock())
                asio::post(running->strand, [running] { running->signal.emit(asio::cancellation_type::terminal); });
        } catch (...) {
        }
    }

private:
    /// The handler of a call. If it is destroyed instead of being called, the call has ended too.
    struct call_ended {
        call_ended(hot_swap_ptr c, std::uint64_t v) noexcept : core(std::move(c)), version(v) {}
        call_ended(call_ended&&) noexcept = default;

        hot_swap_ptr core;
        std::uint64_t version;
        std::shared_ptr<function_call> kept;
    };

    struct load_ended : call_ended {
        using call_ended::call_ended;
        load_ended(load_ended&&) noexcept = default;

        ~load_ended()
        {
            if (this->core)
                version_loaded(this->core, this->version, version_function_failed(nullptr), nullptr);
        }

        void operator()(const std::exception_ptr& e, result<T> loaded)
        {
            error_code ec;
            if (e)
                ec = version_function_failed(e);
            else if (!loaded)
                ec = version_error(loaded.error());
            else if (is_empty_version(loaded.value()))
                ec = version_is_empty();
            std::shared_ptr<const served_version> what;
            if (!ec)
                what = std::make_shared<const version_of<T>>(std::move(loaded).value());
            version_loaded(std::exchange(this->core, nullptr), this->version, ec, std::move(what));
        }
    };

    struct warm_up_ended : call_ended {
        using call_ended::call_ended;
        warm_up_ended(warm_up_ended&&) noexcept = default;

        ~warm_up_ended()
        {
            if (this->core)
                version_warmed_up(this->core, this->version, version_function_failed(nullptr));
        }

        void operator()(const std::exception_ptr& e, const result<void>& done)
        {
            const error_code ec = e ? version_function_failed(e) : done ? error_code() : version_error(done.error());
            version_warmed_up(std::exchange(this->core, nullptr), this->version, ec);
        }
    };

    template <class Coroutine, class Ended>
    void spawn(const hot_swap_ptr& core, Coroutine coroutine, Ended ended)
    {
        auto running = std::make_shared<function_call>(executor_of(core));
        running_ = running;
        const auto strand = running->strand;
        const auto slot = running->signal.slot();
        ended.kept = std::move(running);
        asio::co_spawn(strand, std::move(coroutine), asio::bind_cancellation_slot(slot, std::move(ended)));
    }

    // The coroutines own what they use: a function that ignores its cancellation may outlive everything else.

    static asio::awaitable<result<T>> call_load(std::shared_ptr<version_maker_of> self)
    {
        // Not within the turn, where co_spawn begins: the function may compute for long.
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
        auto loaded = co_await self->load_();
        co_return loaded;
    }

    static asio::awaitable<result<void>> call_warm_up(std::shared_ptr<version_maker_of> self, version_ptr version)
    {
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
        auto done = co_await self->warm_up_(version->what);
        co_return done;
    }

    const load_function load_;
    const warm_up_function warm_up_;
    std::weak_ptr<function_call> running_;
};

} // namespace coaccel::detail

#endif
