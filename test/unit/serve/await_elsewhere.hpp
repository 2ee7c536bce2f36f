#ifndef COACCEL_TEST_UNIT_SERVE_AWAIT_ELSEWHERE_HPP
#define COACCEL_TEST_UNIT_SERVE_AWAIT_ELSEWHERE_HPP

#include <boost/asio/use_future.hpp>

#include <utility>

namespace test {

/// Waits for an operation of an empty object, whose handler runs on the system executor.
template <class Operation>
auto await_elsewhere(Operation operation)
{
    return std::move(operation)(boost::asio::use_future).get();
}

} // namespace test

#endif
