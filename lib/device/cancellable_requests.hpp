#ifndef COACCEL_DEVICE_CANCELLABLE_REQUESTS_HPP
#define COACCEL_DEVICE_CANCELLABLE_REQUESTS_HPP

#include <coaccel/core/detail/request.hpp>

#include <boost/intrusive/set.hpp>

#include <cstdint>

namespace coaccel::detail {

/// The requests of a device that can be cancelled, by the ID that their cancellation slots hold. A request leaves when
/// its caller is answered, so that a late cancellation finds nothing; the slot may outlive the request. Owns no
/// request, and allocates nothing.
class cancellable_requests {
public:
    cancellable_requests() = default;
    cancellable_requests(const cancellable_requests&) = delete;
    cancellable_requests& operator=(const cancellable_requests&) = delete;
    ~cancellable_requests() { clear(); }

    /// Does nothing for a request without an ID, whose handler has no cancellation slot.
    void add(request& r) noexcept
    {
        if (r.cancel_id != 0)
            set_.insert(r);
    }

    /// Null: it was never added, or has been removed.
    request* find(std::uint64_t cancel_id) noexcept
    {
        const auto found = set_.find(cancel_id);
        return found == set_.end() ? nullptr : &*found;
    }

    /// Does nothing if it was never added, or has been removed.
    void remove(request& r) noexcept
    {
        if (r.by_id.is_linked())
            set_.erase(set_.iterator_to(r));
    }

    void clear() noexcept { set_.clear(); }

private:
    struct by_id {
        using type = std::uint64_t;
        type operator()(const request& r) const noexcept { return r.cancel_id; }
    };

    boost::intrusive::set<request, boost::intrusive::member_hook<request, set_hook, &request::by_id>,
                          boost::intrusive::key_of_value<by_id>, boost::intrusive::constant_time_size<false>>
        set_;
};

} // namespace coaccel::detail

#endif
