#include "telemetry/device_query.hpp"

#include <new>

namespace coaccel::detail {

/// The handler of the request. An executor that is destroyed destroys it without a call.
class device_query::answer {
public:
    explicit answer(std::shared_ptr<device_query> query) noexcept : query_(std::move(query)) {}
    answer(answer&&) noexcept = default;
    answer& operator=(answer&&) = delete;

    ~answer()
    {
        if (query_)
            query_->end(nullptr);
    }

    void operator()(error_code ec, device_stats stats)
    {
        std::shared_ptr<const device_stats> got;
        try {
            if (!ec)
                got = std::make_shared<const device_stats>(std::move(stats));
        } catch (const std::bad_alloc&) {
            // Without an answer now, there would be none to any later request.
        }
        const auto query = std::move(query_);
        query->end(std::move(got));
    }

private:
    std::shared_ptr<device_query> query_;
};

void device_query::ask(const std::shared_ptr<stats_listener>& who, std::size_t index)
{
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(waiters_, [](const waiter& w) { return w.who.expired(); });
        waiters_.push_back({who, index});
        if (asking_)
            return;
        asking_ = true;
    }
    // If this throws, the handler is destroyed, which ends the request.
    gpu_.async_stats(answer(shared_from_this()));
}

void device_query::end(std::shared_ptr<const device_stats> stats) noexcept
{
    std::vector<waiter> waiters;
    {
        const std::lock_guard lock(mutex_);
        asking_ = false;
        waiters.swap(waiters_);
    }
    for (const waiter& w : waiters)
        if (const auto who = w.who.lock())
            who->answered(w.index, stats);
}

} // namespace coaccel::detail
