#ifndef COACCEL_WORKER_HOST_TRANSFER_HPP
#define COACCEL_WORKER_HOST_TRANSFER_HPP

#include <coaccel/detail/request.hpp>
#include <coaccel/detail/transfer_ops.hpp>

#include <cstdint>
#include <optional>

namespace coaccel::worker {

/// The part of a request that moves memory of the caller's, read from the description of its op, whatever the type of
/// the elements.
struct transfer_view {
    enum class direction : std::uint8_t { to_device, to_host };

    direction way = direction::to_device;
    any_ref ref;
    /// Null: the sink takes it.
    void* host = nullptr;
    std::uint64_t count = 0;
    /// Of the op's elements; that of the ref is the caller's word, which the context checks against it.
    dtype type = dtype::u8;
    detail::collector sink{};

    std::uint64_t bytes() const noexcept { return count * size_of(type); }
};

/// Nothing when the op is no transfer.
std::optional<transfer_view> view_transfer(const bound_op& op) noexcept;

/// How far a copy of ordinary memory through the staging area is. It decides; it copies and sends nothing.
class host_transfer {
public:
    struct piece {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };

    host_transfer() = default;
    host_transfer(std::uint64_t bytes, std::uint64_t piece_bytes) noexcept : bytes_(bytes), piece_bytes_(piece_bytes) {}

    /// A size that keeps several pieces on their way at once, of whole elements of every type.
    static std::uint64_t piece_for(std::uint64_t bytes, std::uint64_t staging) noexcept;

    /// The next piece to begin with; nothing when there is none left, too many are under way, or one has failed.
    std::optional<piece> next() const noexcept;
    void begun(const piece& p) noexcept;
    /// The worker has been told of a piece.
    void sent(const piece& p) noexcept { sent_ += p.bytes; }
    void ended(const error_code& ec) noexcept;
    void fail(const error_code& ec) noexcept { error_ = ec; }

    /// There is no room for the next piece: smaller ones from here on. False when there is reason to wait, because
    /// others are under way or it cannot be less.
    [[nodiscard]] bool make_do_with_less() noexcept;

    /// Everything the worker has to know, it knows: what comes later may follow.
    bool all_sent() const noexcept { return sent_ == bytes_ || error_; }
    bool over() const noexcept { return under_way_ == 0 && (begun_ == bytes_ || error_); }
    const error_code& error() const noexcept { return error_; }

    static constexpr int most_under_way = 8;
    /// Up to here the executor copies, which takes a few microseconds.
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
