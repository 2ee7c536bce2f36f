#ifndef COACCEL_DEVICE_CANCELLABLE_REQUESTS_HPP
#define COACCEL_DEVICE_CANCELLABLE_REQUESTS_HPP

#include <coaccel/core/detail/request.hpp>

#include <boost/intrusive/set.hpp>

#include <cstdint>

namespace coaccel::detail {

/// The requests of a device, or of a batcher, that can be cancelled, by the ID that their cancellation slots hold. A
/// request leaves when its caller is answered, so that a late cancellation finds nothing; the slot may outlive the
/// request. Owns no request, and allocates nothing.
template <class Request>
class requests_by_id {
public:
    requests_by_id() = default;
    requests_by_id(const requests_by_id&) = delete;
    requests_by_id& operator=(const requests_by_id&) = delete;
    ~requests_by_id() { clear(); }

    /// Does nothing for a request without an ID, whose handler has no cancellation slot.
    void add(Request& r) noexcept
    {
        if (r.cancel_id != 0)
            set_.insert(r);
    }

    /// Null: it was never added, or has been removed.
    Request* find(std::uint64_t cancel_id) noexcept
    {
        const auto found = set_.find(cancel_id);
        return found == set_.end() ? nullptr : &*found;
    }

    /// Does nothing if it was never added, or has been removed.
    void remove(Request& r) noexcept
    {
        if (r.by_id.is_linked())
            set_.erase(set_.iterator_to(r));
    }

    void clear() noexcept { set_.clear(); }

private:
    struct by_id {
        using type = std::uint64_t;
        type operator()(const Request& r) const noexcept { return r.cancel_id; }
    };

    boost::intrusive::set<Request, boost::intrusive::member_hook<Request, set_hook, &Request::by_id>,
                          boost::intrusive::key_of_value<by_id>, boost::intrusive::constant_time_size<false>>
        set_;
};

using cancellable_requests = requests_by_id<request>;

} // namespace coaccel::detail

#endif
