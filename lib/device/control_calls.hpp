#ifndef COACCEL_DEVICE_CONTROL_CALLS_HPP
#define COACCEL_DEVICE_CONTROL_CALLS_HPP

#include <coaccel/device/detail/control_requests.hpp>

#include <cstdint>

namespace coaccel::detail {

/// The calls that wait for a change of a device's state: start, shutdown, replace and revive; and the calls for
/// statistics, which wait for the end of the turn. Decides which of them end at which event, and with which error.
/// Every `complete` is called as `complete(request&, error_code)`.
class control_calls {
public:
    /// Preconditions: the request is of one of these kinds.
    void add(request& r) noexcept { list_of(r.call).push_back(r); }

    /// Removes a cancelled call. False: it cannot be cancelled, because the turn in which it arrived answers it.
    [[nodiscard]] bool remove(request& r) noexcept
    {
        if (r.call == request_kind::stats)
            return false;
        list_of(r.call).remove(r);
        return true;
    }

    /// The call with this sequence number begins a replacement of the context.
    void begin_replacement(std::uint64_t sequence) noexcept { replace_at_ = sequence; }
    /// Whether the request with this number arrived before the latest replacement began. Its refs belong to the old
    /// context.
    bool precedes_replacement(std::uint64_t sequence) const noexcept { return sequence < replace_at_; }

    /// The creation of a context begins. `last`: the sequence number of the last request that arrived before. A
    /// replacement that is requested later needs another context.
    void creating(std::uint64_t last) noexcept { created_after_ = last; }

    template <class Complete>
    void created(Complete complete)
    {
        end(starting_, {}, complete);
        end_replacements({}, created_after_, complete);
        end(reviving_, {}, complete);
    }

    /// The creation has failed, and may be tried again. Calls for a start and a revival wait for the outcome.
    template <class Complete>
    void create_failed(const error_code& why, Complete complete)
    {
        end_replacements(why, created_after_, complete);
    }

    /// No context follows.
    template <class Complete>
    void failed(const error_code& why, Complete complete)
    {
        end(replacing_, errc::device_failed, complete);
        end(reviving_, why, complete);
        end(starting_, why, complete);
    }

    /// The device begins to stop. A start may still succeed, for requests that arrived before.
    template <class Complete>
    void stopping(Complete complete)
    {
        end(replacing_, errc::device_stopped, complete);
        end(reviving_, errc::device_stopped, complete);
    }

    /// The device has stopped. The other requests of the device end between the calls of these two functions, so that a
    /// shutdown completes last.
    template <class Complete>
    void end_starts(Complete complete)
    {
        end(starting_, errc::device_stopped, complete);
    }
    template <class Complete>
    void end_shutdowns(Complete complete)
    {
        end(stopping_, {}, complete);
    }

    /// Calls `answer(stats_call&)` for each call for statistics.
    template <class Answer>
    void answer_stats(Answer answer)
    {
        while (async_op_base* p = asking_.pop_front())
            answer(static_cast<stats_call&>(*p));
    }

    void take_all(async_op_list& out) noexcept
    {
        for (async_op_list* list : {&starting_, &stopping_, &replacing_, &reviving_, &asking_})
            out.append(*list);
    }

private:
    async_op_list& list_of(request_kind what) noexcept
    {
        switch (what) {
        case request_kind::start: return starting_;
        case request_kind::shutdown: return stopping_;
        case request_kind::replace: return replacing_;
        case request_kind::revive: return reviving_;
        default: break;
        }
        BOOST_ASSERT(what == request_kind::stats);
        return asking_;
    }

    template <class Complete>
    static void end(async_op_list& list, const error_code& ec, Complete& complete)
    {
        while (async_op_base* p = list.pop_front())
            complete(static_cast<request&>(*p), ec);
    }

    /// Ends the replacements up to this sequence number.
    template <class Complete>
    void end_replacements(const error_code& ec, std::uint64_t up_to, Complete& complete)
    {
        while (!replacing_.empty() && static_cast<request&>(*replacing_.front()).sequence <= up_to)
            complete(static_cast<request&>(*replacing_.pop_front()), ec);
    }

    async_op_list starting_;
    async_op_list stopping_;
    async_op_list replacing_;
    async_op_list reviving_;
    async_op_list asking_;
    std::uint64_t replace_at_ = 0;
    std::uint64_t created_after_ = 0;
};

} // namespace coaccel::detail

#endif
