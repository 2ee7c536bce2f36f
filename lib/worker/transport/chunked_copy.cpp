#include "worker/transport/chunked_copy.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace coaccel::worker {
namespace {

constexpr std::uint64_t least_piece = 4096;
constexpr std::uint64_t smallest_piece = std::uint64_t(256) << 10;
constexpr std::uint64_t largest_piece = std::uint64_t(2) << 20;

enum class kind : std::uint8_t { write, read, collect };

template <class... Ts>
std::unordered_map<std::uint64_t, kind> make_kinds(type_list<Ts...>)
{
    std::unordered_map<std::uint64_t, kind> all;
    ((all[info_of<detail::write_op<Ts>>().id] = kind::write, all[info_of<detail::read_op<Ts>>().id] = kind::read,
      all[info_of<detail::collect_op<Ts>>().id] = kind::collect),
     ...);
    return all;
}

const kind* kind_of(std::uint64_t id) noexcept
{
    static const auto all = make_kinds(element_types{});
    const auto found = all.find(id);
    return found == all.end() ? nullptr : &found->second;
}

template <class T>
T field(const bound_op& op, std::string_view name) noexcept
{
    T value{};
    for (const op_field& f : op.info->fields)
        if (f.name == name && f.size == sizeof(T))
            std::memcpy(&value, static_cast<const char*>(op.op) + f.offset, sizeof(T));
    return value;
}

} // namespace

std::optional<transfer_view> view_transfer(const bound_op& op) noexcept
{
    if (op.info->lib != library::memory)
        return std::nullopt;
    const kind* k = kind_of(op.info->id);
    if (!k)
        return std::nullopt;
    transfer_view v;
    v.type = op.info->operands.front().type;
    switch (*k) {
    case kind::write:
        v.way = transfer_view::direction::to_device;
        v.ref = field<any_ref>(op, "dst");
        v.host = field<void*>(op, "src");
        v.count = field<std::uint64_t>(op, "count");
        break;
    case kind::read:
        v.way = transfer_view::direction::to_host;
        v.ref = field<any_ref>(op, "src");
        v.host = field<void*>(op, "dst");
        v.count = field<std::uint64_t>(op, "count");
        break;
    case kind::collect:
        v.way = transfer_view::direction::to_host;
        v.ref = field<any_ref>(op, "src");
        v.sink = field<detail::collector>(op, "sink");
        v.count = v.ref.size;
        break;
    }
    return v;
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
