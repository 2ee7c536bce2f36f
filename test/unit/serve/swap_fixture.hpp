#ifndef COACCEL_TEST_UNIT_SERVE_SWAP_FIXTURE_HPP
#define COACCEL_TEST_UNIT_SERVE_SWAP_FIXTURE_HPP

#include "support/co_run.hpp"
#include "support/devices.hpp"

#include <coaccel/serve/hot_swap.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace test {

/// A version that the test can look at, and whose shutdown ends at once or never.
class fake_version {
public:
    struct state {
        int drains = 0;
        int abandons = 0;
        bool hangs = false;
        std::vector<std::function<void()>> waiting;
    };

    explicit fake_version(std::shared_ptr<state> s) : state_(std::move(s)) {}

    template <class Handler>
    void async_shutdown(coaccel::shutdown mode, Handler&& handler) const
    {
        ++(mode == coaccel::shutdown::drain ? state_->drains : state_->abandons);
        auto kept = std::make_shared<std::decay_t<Handler>>(std::forward<Handler>(handler));
        if (state_->hangs)
            state_->waiting.push_back([kept] { (*kept)(coaccel::error_code()); });
        else
            (*kept)(coaccel::error_code());
    }

private:
    std::shared_ptr<state> state_;
};

using fake_state = std::shared_ptr<fake_version::state>;

/// A call of async_load.
struct load_call {
    bool ended() const noexcept { return completions > 0; }

    int completions = 0;
    coaccel::error_code ec;
    std::uint64_t version = 0;
    asio::cancellation_signal signal;
};

/// What a load or warm-up function waits for.
class door {
public:
    void open()
    {
        open_ = true;
        for (auto& timer : std::exchange(waiting_, {}))
            timer->cancel();
    }
    int inside() const noexcept { return inside_; }
    bool was_cancelled() const noexcept { return cancelled_; }

    asio::awaitable<void> pass()
    {
        ++inside_;
        const auto cancelled = co_await asio::this_coro::cancellation_state;
        while (!open_) {
            auto timer = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor,
                                                              asio::steady_timer::time_point::max());
            waiting_.push_back(timer);
            (void)co_await timer->async_wait(asio::as_tuple(asio::use_awaitable));
            if (cancelled.cancelled() != asio::cancellation_type::none) {
                cancelled_ = true;
                break;
            }
        }
        --inside_;
    }

private:
    bool open_ = false;
    bool cancelled_ = false;
    int inside_ = 0;
    std::vector<std::shared_ptr<asio::steady_timer>> waiting_;
};

struct swap_fixture {
    using swap_type = coaccel::serve::hot_swap<fake_version>;
    using source_type = coaccel::serve::version_source<fake_version>;

    explicit swap_fixture(coaccel::serve::hot_swap_options o = {})
    {
        o.on_event = [this](const coaccel::serve::swap_event& e) { events.push_back(e); };
        if (o.name == "hot_swap")
            o.name = "model";
        swap = swap_type::create(io.get_executor(), o).value();
    }

    ~swap_fixture()
    {
        swap = {};
        run_out(io);
    }

    fake_state add_state()
    {
        states.push_back(std::make_shared<fake_version::state>());
        return states.back();
    }

    /// Loads at once.
    source_type source(const std::string& name)
    {
        auto s = add_state();
        source_type made;
        made.name = name;
        made.load = [s]() -> asio::awaitable<coaccel::result<fake_version>> { co_return fake_version(s); };
        return made;
    }

    /// Loads when the door opens.
    source_type slow_source(const std::string& name, door& d)
    {
        auto s = add_state();
        source_type made;
        made.name = name;
        made.load = [s, &d]() -> asio::awaitable<coaccel::result<fake_version>> {
            co_await d.pass();
            co_return fake_version(s);
        };
        return made;
    }

    /// Warms up when the door opens.
    source_type slow_warm_up(const std::string& name, door& d)
    {
        auto made = source(name);
        made.warm_up = [&d](const fake_version&) -> asio::awaitable<coaccel::result<void>> {
            co_await d.pass();
            co_return coaccel::outcome::success();
        };
        return made;
    }

    std::shared_ptr<load_call> start(source_type s)
    {
        auto c = std::make_shared<load_call>();
        swap.async_load(std::move(s),
                        asio::bind_cancellation_slot(c->signal.slot(), [c](coaccel::error_code ec, std::uint64_t n) {
                            ++c->completions;
                            c->ec = ec;
                            c->version = n;
                        }));
        return c;
    }

    coaccel::error_code outcome(const std::shared_ptr<load_call>& c)
    {
        run_until(io, [&] { return c->ended(); });
        CHECK(c->completions == 1);
        return c->ec;
    }

    /// Loads a version, which must succeed.
    std::uint64_t load(const std::string& name)
    {
        const auto c = start(source(name));
        REQUIRE_FALSE(outcome(c));
        return c->version;
    }

    /// Runs everything that can run now.
    void settle()
    {
        io.restart();
        while (io.poll() > 0) {
        }
    }

    coaccel::serve::version_stats version(std::uint64_t n) const
    {
        for (const auto& v : swap.stats().versions)
            if (v.version == n)
                return v;
        return {};
    }

    bool exists(std::uint64_t n) const { return version(n).version == n; }

    void requests(int count, coaccel::error_code ec)
    {
        for (int i = 0; i < count; ++i)
            swap.pick().value().ended(ec);
    }

    int count(coaccel::serve::swap_change what) const
    {
        int n = 0;
        for (const auto& e : events)
            n += e.what == what;
        return n;
    }

    asio::io_context io{1};
    std::vector<coaccel::serve::swap_event> events;
    std::vector<fake_state> states;
    swap_type swap;
};

} // namespace test

#endif
