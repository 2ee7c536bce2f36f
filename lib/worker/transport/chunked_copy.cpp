#include "worker/transport/chunked_copy.hpp"

#include <algorithm>
#include <bit>

namespace coaccel::worker {
namespace {

constexpr std::uint64_t least_piece = 4096;
constexpr std::uint64_t smallest_piece = std::uint64_t(256) << 10;
constexpr std::uint64_t largest_piece = std::uint64_t(2) << 20;

template <class T>
transfer_view view(const detail::write_op<T>& op) noexcept
{
    return {.way = transfer_view::direction::to_device,
            .ref = op.dst.raw,
            .host = const_cast<T*>(op.src),
            .count = op.count,
            .type = dtype_v<T>};
}

template <class T>
transfer_view view(const detail::read_op<T>& op) noexcept
{
    return {.way = transfer_view::direction::to_host,
            .ref = op.src.raw,
            .host = op.dst,
            .count = op.count,
            .type = dtype_v<T>};
}

template <class T>
transfer_view view(const detail::collect_op<T>& op) noexcept
{
    return {.way = transfer_view::direction::to_host,
            .ref = op.src.raw,
            .count = op.src.size(),
            .type = dtype_v<T>,
            .sink = op.sink};
}

/// The transfer is a `Transfer<T>`, with T the element type of its only operand.
template <template <element> class Transfer, class... Ts>
transfer_view view_as(const bound_op& op, type_list<Ts...>) noexcept
{
    transfer_view v;
    const dtype type = op.info->operands.front().type;
    (void)((dtype_v<Ts> == type && (v = view(op.as<Transfer<Ts>>()), true)) || ...);
    return v;
}

} // namespace

std::optional<transfer_view> view_transfer(const bound_op& op) noexcept
{
    switch (op.info->role) {
    case op_role::write: return view_as<detail::write_op>(op, element_types{});
    case op_role::read: return view_as<detail::read_op>(op, element_types{});
    case op_role::download: return view_as<detail::collect_op>(op, element_types{});
    default: return std::nullopt;
    }
}

std::uint64_t chunked_copy::piece_for(std::uint64_t bytes, std::uint64_t staging) noexcept
{
    const std::uint64_t most =
        std::clamp(std::bit_floor(staging / (2 * most_under_way)), smallest_piece / 8, largest_piece);
    return std::clamp(std::bit_ceil(bytes / most_under_way), std::min(smallest_piece, most), most);
}

std::optional<chunked_copy::piece> chunked_copy::next() const noexcept
{
    if (error_ || under_way_ == most_under_way || begun_ == bytes_)
        return std::nullopt;
    return piece{begun_, std::min(piece_bytes_, bytes_ - begun_)};
}

bool chunked_copy::use_smaller_chunks() noexcept
{
    if (under_way_ > 0 || piece_bytes_ <= least_piece)
        return false;
    piece_bytes_ /= 2;
    return true;
}

void chunked_copy::begun(const piece& p) noexcept
{
    begun_ += p.bytes;
    ++under_way_;
}

void chunked_copy::ended(const error_code& ec) noexcept
{
    --under_way_;
    if (ec && !error_)
        error_ = ec;
}

} // namespace coaccel::worker
