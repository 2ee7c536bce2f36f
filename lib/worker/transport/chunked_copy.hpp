#ifndef COACCEL_WORKER_TRANSPORT_CHUNKED_COPY_HPP
#define COACCEL_WORKER_TRANSPORT_CHUNKED_COPY_HPP

#include <coaccel/core/detail/request.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>

#include <cstdint>
#include <optional>

namespace coaccel::worker {

/// The part of a request that transfers the caller's memory, read from the description of its op, for any element type.
struct transfer_view {
    enum class direction : std::uint8_t { to_device, to_host };

    direction way = direction::to_device;
    any_ref ref;
    /// Null: the sink receives the data.
    void* host = nullptr;
    std::uint64_t count = 0;
    /// The element type of the op; the caller sets the type of the ref, and the context checks it against this one.
    dtype type = dtype::u8;
    detail::collector sink{};

    std::uint64_t bytes() const noexcept { return count * size_of(type); }
};

/// Returns nothing if the op is not a transfer.
std::optional<transfer_view> view_transfer(const bound_op& op) noexcept;

/// The state of a copy of ordinary memory through the staging area. Decides the next step; copies and sends nothing
/// itself.
class chunked_copy {
public:
    struct piece {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };

    chunked_copy() = default;
    chunked_copy(std::uint64_t bytes, std::uint64_t piece_bytes) noexcept : bytes_(bytes), piece_bytes_(piece_bytes) {}

    /// A size that keeps several pieces in flight, and that is a multiple of every element size.
    static std::uint64_t piece_for(std::uint64_t bytes, std::uint64_t staging) noexcept;

    /// The next piece to start; nothing if none is left, too many are in flight, or one has failed.
    std::optional<piece> next() const noexcept;
    void begun(const piece& p) noexcept;
    /// The piece has been sent to the worker.
    void sent(const piece& p) noexcept { sent_ += p.bytes; }
    void ended(const error_code& ec) noexcept;
    void fail(const error_code& ec) noexcept { error_ = ec; }

    /// There is no room for the next piece: use smaller pieces from here on. Returns false if the copy has to wait,
    /// because other pieces are in flight or the piece cannot be smaller.
    [[nodiscard]] bool use_smaller_chunks() noexcept;

    /// All pieces have been sent to the worker, or the copy has failed: later requests may follow.
    bool all_sent() const noexcept { return sent_ == bytes_ || error_; }
    bool over() const noexcept { return under_way_ == 0 && (begun_ == bytes_ || error_); }
    const error_code& error() const noexcept { return error_; }

    static constexpr int most_under_way = 8;
    /// Up to this size the executor thread copies, which takes a few microseconds.
    static constexpr std::uint64_t small = std::uint64_t(64) << 10;

private:
    std::uint64_t bytes_ = 0;
    std::uint64_t piece_bytes_ = 1;
    std::uint64_t begun_ = 0;
    std::uint64_t sent_ = 0;
    int under_way_ = 0;
    error_code error_;
};

} // namespace coaccel::worker

#endif
