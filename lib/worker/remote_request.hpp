#ifndef COACCEL_WORKER_REMOTE_REQUEST_HPP
#define COACCEL_WORKER_REMOTE_REQUEST_HPP

#include "context/context.hpp"
#include "worker/image_shelf.hpp"
#include "worker/wire.hpp"

#include <coaccel/detail/transfer_ops.hpp>

#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace coaccel::worker {

/// A request of the parent's, as the worker has it. Used again and again.
class COACCEL_DECL remote_request final : public detail::request {
public:
    /// Takes in what was decoded. Nothing of it stays in the record.
    ///
    /// Errors: errc::unsupported_op for an op this build or backend does not know, errc::worker_corrupted for one that
    /// makes no sense.
    error_code load(const submit_frame& frame, const detail::context& context, const image_shelf& images,
                    std::span<std::byte> staging);

    void prepare(std::size_t i) noexcept override;
    void post() override {}
    void destroy() noexcept override {}

    /// The replies of all ops, one behind the other; of a request that failed only what it allocated.
    void put_replies(encoder& out, bool succeeded) const;

    std::uint64_t id() const noexcept { return id_; }
    /// What op i allocated.
    const any_ref& made(std::size_t i) const noexcept { return cells_[i].made.ref; }

private:
    // Large enough for every alignment an op can have.
    struct alignas(16) unit {
        std::byte bytes[16];
    };

    struct cell {
        op_kind what = op_kind::plain;
        std::vector<unit> op;
        std::vector<unit> reply;
        detail::allocation made;
        /// Of a launch, whose description is its own.
        op_info own;
        std::shared_ptr<const void> kept;
    };

    error_code load_op(const op_frame& frame, std::size_t i, const detail::context& context, const image_shelf& images,
                       std::span<std::byte> staging);
    error_code load_launch(const op_frame& frame, cell& c, const image_shelf& images);
    bool check_refs(cell& c, const op_info& info, std::size_t i) const noexcept;

    std::uint64_t id_ = 0;
    std::deque<cell> cells_;
    std::vector<bound_op> bound_;
};

} // namespace coaccel::worker

#endif
