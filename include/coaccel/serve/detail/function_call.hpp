#ifndef COACCEL_SERVE_DETAIL_FUNCTION_CALL_HPP
#define COACCEL_SERVE_DETAIL_FUNCTION_CALL_HPP

#include <coaccel/core/config.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>

namespace coaccel::detail {

/// A call of a function of the user that can be cancelled. It has a strand of its own, because cancelling a coroutine
/// is not safe beside its execution, and a signal of its own, because a late cancellation must not reach the next call.
/// Owned by the handler of the call, which an execution context that is destroyed destroys before.
struct function_call {
    explicit function_call(const asio::any_io_executor& ex) : strand(asio::make_strand(ex)) {}

    const asio::strand<asio::any_io_executor> strand;
    asio::cancellation_signal signal;
};

} // namespace coaccel::detail

#endif
