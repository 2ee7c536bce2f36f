#ifndef COACCEL_DEVICE_DETAIL_TEMPORARY_RANGE_HPP
#define COACCEL_DEVICE_DETAIL_TEMPORARY_RANGE_HPP

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#define COACCEL_TEMPORARY_RANGE                                                                                        \
    "this token starts the copy at once, and the range is a temporary: its elements would be gone before they are "    \
    "copied. Keep the range in a variable until completion, or pass a std::span over memory that lives that long."

namespace coaccel {

/// Whether an operation that an initiating function returned as a `Started` begins only when it is awaited, so that
/// temporaries of the awaiting expression outlive it. True for the results of asio::deferred and asio::use_awaitable,
/// also within adaptors; specialise it for your own lazy tokens.
template <class Started>
inline constexpr bool starts_when_awaited = boost::asio::is_deferred<Started>::value;

template <class T, class Executor>
inline constexpr bool starts_when_awaited<boost::asio::awaitable<T, Executor>> = true;

} // namespace coaccel

#endif
