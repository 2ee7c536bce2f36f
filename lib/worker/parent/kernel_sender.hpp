#ifndef COACCEL_WORKER_PARENT_KERNEL_SENDER_HPP
#define COACCEL_WORKER_PARENT_KERNEL_SENDER_HPP

#include "worker/parent/outgoing_records.hpp"
#include "worker/parent/sent_kernels.hpp"

#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/op_list.hpp>

#include <span>

namespace coaccel::worker {

/// Sends compiled kernels to a worker before the first request that uses them, and lets the worker forget those that
/// this process has destroyed.
class COACCEL_DECL kernel_sender {
public:
    kernel_sender(outgoing_records& out, const image_limits& limits) noexcept : out_(out), sent_(limits) {}

    /// Sends the kernels of a request that the worker does not have. Errors: errc::invalid_argument for a kernel that
    /// the worker does not accept or for which it has no room.
    error_code send(const detail::request& r);
    /// Likewise for the ops of a plan.
    error_code send(std::span<const detail::listed_op> ops);

private:
    error_code send(std::uint64_t kernel);
    void forget_destroyed();

    outgoing_records& out_;
    sent_kernels sent_;
};

} // namespace coaccel::worker

#endif
