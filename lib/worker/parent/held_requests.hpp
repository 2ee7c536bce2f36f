#ifndef COACCEL_WORKER_PARENT_HELD_REQUESTS_HPP
#define COACCEL_WORKER_PARENT_HELD_REQUESTS_HPP

#include <coaccel/core/detail/request.hpp>

#include <deque>
#include <functional>

namespace coaccel::worker {

/// The requests and releases that wait for earlier copies. A copy is sent to the worker in pieces; a request that uses
/// the same buffer is sent after the last piece, and so is everything that must follow that request: other uses of its
/// buffers, their release, and ops with the same state. Independent requests are not delayed.
class COACCEL_DECL held_requests {
public:
    /// `unsent`: whether a copy to or from the buffer in this slot has pieces that were not sent.
    explicit held_requests(std::function<bool(std::uint32_t slot)> unsent) : unsent_(std::move(unsent)) {}

    bool empty() const noexcept { return held_.empty(); }
    void add(detail::request& r) { held_.push_back({&r, {}}); }
    void add(const any_ref& released) { held_.push_back({nullptr, released}); }

    /// Refs to other devices name no buffers of the worker.
    bool must_wait(const detail::request& r, std::uint32_t device) const;
    bool must_wait(const any_ref& released, std::uint32_t device) const { return blocked(released.slot, device); }

    /// Calls `start` or `release` for each entry that need not wait any more, in the order in which they were added.
    /// `start` may begin a copy, for which later entries then wait.
    void let_go(std::uint32_t device, const std::function<void(detail::request&)>& start,
                const std::function<void(const any_ref&)>& release);

    /// Removes everything, and calls the function with each request.
    void take_all(const std::function<void(detail::request&)>& function);

private:
    /// A request, or the release of a buffer.
    struct entry {
        detail::request* who = nullptr;
        any_ref released;
    };

    bool blocked(std::uint32_t slot, std::uint32_t device) const;
    bool has_state(std::uint64_t state) const noexcept;

    std::function<bool(std::uint32_t)> unsent_;
    std::deque<entry> held_;
};

} // namespace coaccel::worker

#endif
