#ifndef COACCEL_DEVICE_INQUIRY_HPP
#define COACCEL_DEVICE_INQUIRY_HPP

#include "context/context.hpp"

#include <coaccel/core/detail/request.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace coaccel::detail {

/// Finds the request that makes contexts die. Requests that were on a context when it died are suspects, and run alone
/// on the next one. A request under which a context dies while it is alone is convicted, if the cause of the death is a
/// fault: a context that something else has ended proves nothing. Knows no context and no queue.
class inquiry {
public:
    /// A suspect has been started, alone on the device. `plan`: the number of its plan; 0: it is no run.
    void started(request& r, std::uint64_t plan) noexcept { alone_ = {&r, plan, true}; }

    /// The request has ended without a loss, or no longer waits.
    void ended(const request& r) noexcept
    {
        if (alone_.who == &r)
            alone_ = {};
    }

    /// The context of the request is dead, and the request has ended: its caller had given it up.
    void answered(const request& r) noexcept
    {
        if (alone_.who == &r)
            alone_.who = nullptr;
    }

    /// Whether the request was started as the only one on the device.
    bool is_alone(const request& r) const noexcept { return alone_.who == &r; }

    struct verdict {
        /// The request that was alone, if it waits to run again.
        request* alone = nullptr;
        /// The number of its plan; 0: there is none.
        std::uint64_t plan = 0;
        bool convicted = false;
        /// If it is convicted: how many earlier losses it explains.
        std::size_t earlier = 0;
    };

    /// The context is dead, and the requests that were on it wait again or have ended. `isolating`: there are suspects
    /// among those that wait.
    verdict lost(loss_cause cause, bool isolating) noexcept
    {
        const auto alone = std::exchange(alone_, {});
        verdict v{.alone = alone.who, .plan = alone.plan, .convicted = alone.known && cause == loss_cause::fault};
        if (v.convicted)
            // Several suspects of one loss may be convicted; the first of them explains it.
            v.earlier = std::exchange(unexplained_, 0);
        else if (!alone.known && !open_)
            unexplained_ = cause == loss_cause::fault ? 1 : 0;
        open_ = isolating;
        return v;
    }

    /// The loss that began the inquiry had another cause.
    void explained() noexcept { unexplained_ = 0; }

    /// There are no suspects any more.
    void close() noexcept { open_ = false; }

private:
    struct lone_request {
        request* who = nullptr;
        std::uint64_t plan = 0;
        bool known = false;
    };

    lone_request alone_;
    /// There have been suspects since the last loss that began with none.
    bool open_ = false;
    /// 1: that loss was a fault, and no request has been convicted since.
    std::size_t unexplained_ = 0;
};

} // namespace coaccel::detail

#endif
