#ifndef COACCEL_WORKER_PARENT_SPLIT_RUNS_HPP
#define COACCEL_WORKER_PARENT_SPLIT_RUNS_HPP

#include <coaccel/core/detail/request.hpp>

#include <boost/unordered/unordered_flat_map.hpp>

#include <functional>
#include <list>
#include <optional>

namespace coaccel::worker {

/// Runs of plans whose large arguments are copied before and after them. A worker takes one copy per request, so such a
/// request is sent in parts, one for each op. It ends once, when all its parts have ended, with the first error.
class COACCEL_DECL split_runs {
public:
    split_runs();
    ~split_runs();

    /// Whether the request has to be sent in parts: a run with other ops.
    static bool has_copies(const detail::request& r) noexcept;

    /// Success, or errc::invalid_argument for a run that follows or precedes anything other than writes before it and
    /// reads after it.
    static error_code check(const detail::request& r) noexcept;

    bool empty() const noexcept { return parts_.empty(); }

    /// Calls `submit` with each part, in order. A part may end within the call.
    void start(detail::request& r, const std::function<void(detail::request&)>& submit);

    bool is_part(const detail::request& r) const noexcept { return parts_.contains(&r); }
    /// The request that a part belongs to; any other request itself.
    detail::request& whole(detail::request& r) const noexcept;

    /// The error of an earlier part, because of which this part must not start. Success for other requests.
    error_code failure(const detail::request& r) const noexcept;

    struct result {
        detail::request* who = nullptr;
        error_code ec;
    };

    /// A part has ended and is destroyed. Returns the result of its request if it was the last part.
    /// Preconditions: is_part(part).
    std::optional<result> ended(const detail::request& part, const error_code& ec);

    /// Removes everything, and calls the function with each request.
    void take_all(const std::function<void(detail::request&)>& function);

private:
    class part;
    struct split;

    std::list<split> splits_;
    boost::unordered_flat_map<const detail::request*, std::list<split>::iterator> parts_;
};

} // namespace coaccel::worker

#endif
