#ifndef COACCEL_CORE_DETAIL_EXECUTOR_WORK_HPP
#define COACCEL_CORE_DETAIL_EXECUTOR_WORK_HPP

#include <coaccel/core/config.hpp>

#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/prefer.hpp>

#include <type_traits>
#include <utility>

namespace coaccel::detail {

/// An executor and outstanding work on it.
///
/// Not simply an executor_work_guard, because that treats strand<any_io_executor> as a Networking TS executor and does
/// not compile.
template <class Executor>
class executor_work {
public:
    explicit executor_work(const Executor& ex)
        : executor_(ex), tracked_(asio::prefer(ex, asio::execution::outstanding_work.tracked))
    {}

    const Executor& get_executor() const noexcept { return executor_; }

private:
    using tracked_type = std::decay_t<decltype(asio::prefer(std::declval<const Executor&>(),
                                                            asio::execution::outstanding_work.tracked))>;

    Executor executor_;
    tracked_type tracked_;
};

template <class Executor>
    requires(!asio::execution::is_executor<Executor>::value)
class executor_work<Executor> : public asio::executor_work_guard<Executor> {
public:
    using asio::executor_work_guard<Executor>::executor_work_guard;
};

} // namespace coaccel::detail

#endif
