#ifndef COACCEL_SERVE_DETAIL_FAIR_REQUEST_HPP
#define COACCEL_SERVE_DETAIL_FAIR_REQUEST_HPP

#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/exec_options.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel::detail {

struct fair_tenant;

/// A turn that runs: what the fair_queue must know when it ends.
struct fair_turn {
    fair_tenant* tenant = nullptr;
    /// What was charged in advance, in nanoseconds.
    std::int64_t estimate = 0;
    /// It was given because of the minimum share of the tenant.
    bool guaranteed = false;
};

/// A request that waits for its turn. The fair_queue refers to it until it has returned or removed it.
struct fair_request {
    using time_point = exec_options::clock::time_point;

    time_point deadline = exec_options::no_deadline;
    /// Zero: the estimate of the tenant.
    std::chrono::nanoseconds estimate{0};

    // Used by the fair_queue.
    time_point arrived{};
    fair_turn turn;
    list_hook in_queue;
    list_hook in_all;
    set_hook by_deadline;
};

} // namespace coaccel::detail

#endif
