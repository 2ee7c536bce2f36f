#ifndef COACCEL_SERVE_DETAIL_BATCH_REQUEST_HPP
#define COACCEL_SERVE_DETAIL_BATCH_REQUEST_HPP

#include <coaccel/core/detail/async_op.hpp>
#include <coaccel/core/detail/mpsc_inbox.hpp>
#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/exec_options.hpp>

#include <chrono>
#include <cstdint>

namespace coaccel::detail {

class batch_run;

/// A message for a batcher's next turn, other than the messages that the inbox itself has. All have the same kind of
/// the base, whose kinds are those of a device.
class batch_message : public inbox_node {
public:
    enum class type : std::uint8_t {
        request,
        cancel,
        control, ///< A batch_control.
        ended,   ///< What a batch_run has started has ended.
        runner,  ///< For the batch_runner.
    };

    explicit batch_message(type t) noexcept : inbox_node(kind::request), meaning(t) {}

    const type meaning;
};

/// A request that waits for its batch, with the type of its handler erased. The batcher owns it until it is completed
/// exactly once, or destroyed because the execution context is destroyed.
class batch_request : public batch_message, public async_op_base {
public:
    using time_point = exec_options::clock::time_point;

    batch_request(std::uint64_t s, std::uint32_t r, const exec_options& how) noexcept
        : batch_message(type::request), shape(s), rows(r), options(how)
    {}

    /// Only requests of the same shape share a batch.
    const std::uint64_t shape;
    const std::uint32_t rows;
    exec_options options;
    /// Zero when the handler has no cancellation slot.
    std::uint64_t cancel_id = 0;
    /// Why it cannot be accepted.
    error_code refused;

    // Used by the batcher while it owns the request.
    list_hook in_group;
    set_hook by_deadline;
    set_hook in_group_by_deadline;
    set_hook by_id;
    time_point arrived{};
    /// Its place in the order of arrival.
    std::uint64_t sequence = 0;
    /// Where the batch_former keeps it; null: not there.
    void* group = nullptr;
    /// The batch that it belongs to; null: it waits.
    batch_run* run = nullptr;
    /// The number of rows before it in the batch.
    std::uint32_t row = 0;
    /// The number of members before it in the batch.
    std::uint32_t index = 0;
    /// How often its batch has failed because of where it was started.
    std::uint32_t moves = 0;

protected:
    ~batch_request() = default;
};

} // namespace coaccel::detail

#endif
