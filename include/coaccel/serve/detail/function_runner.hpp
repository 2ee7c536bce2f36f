#ifndef COACCEL_SERVE_DETAIL_FUNCTION_RUNNER_HPP
#define COACCEL_SERVE_DETAIL_FUNCTION_RUNNER_HPP

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/serve/detail/batcher_access.hpp>
#include <coaccel/serve/detail/function_call.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// A request to a batcher that calls a function.
template <class Request, class Reply>
class call_request : public batch_request {
public:
    call_request(std::uint64_t shape, Request r, const exec_options& how)
        : batch_request(shape, 1, how), request(std::move(r))
    {}

    Request request;
    std::optional<Reply> reply;

    auto take() { return std::tuple(ec, reply ? std::move(*reply) : Reply()); }

protected:
    ~call_request() = default;
};

COACCEL_DECL error_code function_threw(const std::string& name, const std::exception_ptr& e) noexcept;
COACCEL_DECL error_code wrong_number_of_replies(const std::string& name, std::size_t replies,
                                                std::size_t requests) noexcept;
COACCEL_DECL error_code function_vanished(const std::string& name) noexcept;
COACCEL_DECL void note_split(batcher_core& core) noexcept;

/// Runs batches by calling a function.
template <class Request, class Reply>
class function_runner final : public batch_runner {
public:
    using function_type = std::function<asio::awaitable<result<std::vector<Reply>>>(std::span<const Request>)>;

    function_runner(function_type f, const serve::batcher_options& options)
        : function_(std::move(f)), name_(options.name)
    {
        for (int i = 0; i < options.max_in_flight; ++i)
            places_.push_back(std::make_unique<place>());
    }

    /// Must be called before the first batch.
    void attach(const batcher_ptr& core) noexcept { core_ = core; }

    std::uint32_t places() const noexcept override { return static_cast<std::uint32_t>(places_.size()); }

    bool has_room(std::uint64_t) override
    {
        return std::ranges::any_of(places_, [](const auto& p) { return !p->busy; });
    }

    batch_run& make(std::uint64_t, std::uint32_t rows) override
    {
        place& p = **std::ranges::find_if(places_, [](const auto& x) { return !x->busy; });
        p.busy = true;
        p.splitting = false;
        p.failure = {};
        p.size = rows;
        return p;
    }

    void run(batch_run& r) override
    {
        auto& p = static_cast<place&>(r);
        p.requests.clear();
        for (batch_request* member : p.members)
            p.requests.push_back(std::move(static_cast<call_request<Request, Reply>*>(member)->request));
        p.replies.clear();
        p.replies.resize(p.requests.size());
        call(p, 0, p.requests.size());
    }

    bool goes_on(batch_run& r) override
    {
        auto& p = static_cast<place&>(r);
        if (p.splitting) {
            p.outcomes[p.first] = p.ec;
            ++p.first;
        } else {
            if (p.ec != errc::context_lost || p.members.size() < 2)
                return false;
            p.splitting = true;
            p.first = 0;
            p.outcomes.assign(p.members.size(), p.ec);
            if (auto core = core_.lock())
                note_split(*core);
        }
        while (p.first < p.members.size() && !p.members[p.first])
            ++p.first;
        if (p.first == p.members.size())
            return false;
        call(p, p.first, 1);
        return true;
    }

    void deliver(batch_run& r) noexcept override
    {
        auto& p = static_cast<place&>(r);
        for (std::size_t i = 0; i < p.members.size(); ++i)
            if (p.members[i] && !p.outcome(i))
                static_cast<call_request<Request, Reply>*>(p.members[i])->reply = std::move(p.replies[i]);
    }

    /// The call keeps its place until it ends, if it ever does; others get a new one.
    void cancel(batch_run& r) override
    {
        auto& p = static_cast<place&>(r);
        const auto mine = std::ranges::find(places_, &p, [](const auto& x) { return x.get(); });
        hung_.push_back(std::move(*mine));
        *mine = std::make_unique<place>();
        if (auto running = p.running.lock())
            asio::post(running->strand, [running] { running->signal.emit(asio::cancellation_type::terminal); });
    }

    void recycle(batch_run& r) override
    {
        auto& p = static_cast<place&>(r);
        if (std::erase_if(hung_, [&](const auto& x) { return x.get() == &p; }) > 0)
            return;
        p.busy = false;
        p.requests.clear();
        p.replies.clear();
    }

    error_code failure_of(const batch_run& r) const noexcept override { return static_cast<const place&>(r).failure; }

private:
    struct place final : batch_run {
        std::vector<Request> requests;
        std::vector<std::optional<Reply>> replies;
        std::weak_ptr<function_call> running;
        /// How the function has broken its contract.
        error_code failure;
        bool busy = false;
        /// The requests are passed one by one.
        bool splitting = false;
        /// The requests that the function has.
        std::size_t first = 0;
        std::size_t count = 0;
    };

    /// The handler of a call. If it is destroyed instead of being called, the call has ended too.
    struct called {
        called(batcher_ptr c, function_runner* r, place* p, std::shared_ptr<function_call> k) noexcept
            : core(std::move(c)), runner(r), where(p), kept(std::move(k))
        {}
        called(called&&) noexcept = default;

        ~called()
        {
            if (!core)
                return;
            where->ec = where->failure = function_vanished(runner->name_);
            ended(core, *where);
        }

        void operator()(const std::exception_ptr& e, result<std::vector<Reply>> replies)
        {
            runner->take_replies(*where, e, std::move(replies));
            ended(std::exchange(core, nullptr), *where);
        }

        batcher_ptr core;
        function_runner* runner;
        place* where;
        std::shared_ptr<function_call> kept;
    };

    void call(place& p, std::size_t first, std::size_t count)
    {
        p.first = first;
        p.count = count;
        const batcher_ptr core = core_.lock();
        auto running = std::make_shared<function_call>(executor_of(core));
        p.running = running;
        const auto strand = running->strand;
        const auto slot = running->signal.slot();
        asio::co_spawn(strand, start(function_, std::span<const Request>(p.requests).subspan(first, count)),
                       asio::bind_cancellation_slot(slot, called(core, this, &p, std::move(running))));
    }

    static asio::awaitable<result<std::vector<Reply>>> start(const function_type& f, std::span<const Request> requests)
    {
        // Not within the turn of the batcher, where co_spawn begins: the function may compute for long.
        co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
        auto replies = co_await f(requests);
        co_return replies;
    }

    void take_replies(place& p, const std::exception_ptr& e, result<std::vector<Reply>> replies)
    {
        p.ec = {};
        if (e) {
            p.ec = p.failure = function_threw(name_, e);
        } else if (!replies) {
            p.ec = replies.error();
        } else if (replies.value().size() != p.count) {
            p.ec = p.failure = wrong_number_of_replies(name_, replies.value().size(), p.count);
        } else {
            for (std::size_t i = 0; i < p.count; ++i)
                p.replies[p.first + i].emplace(std::move(replies.value()[i]));
        }
    }

    const function_type function_;
    const std::string name_;
    std::weak_ptr<batcher_core> core_;
    std::vector<std::unique_ptr<place>> places_;
    /// Calls that have taken too long.
    std::vector<std::unique_ptr<place>> hung_;
};

} // namespace coaccel::detail

#endif
