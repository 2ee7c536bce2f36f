#include "device/request_name.hpp"

#include <algorithm>

namespace coaccel::detail {

std::span<const bound_op> counted_ops(const request& r) noexcept
{
    const bool allocates = r.ops.size() > 1 && r.ops.front().info->role == op_role::allocate;
    return allocates ? r.ops.subspan(1) : r.ops;
}

std::uint64_t name_key(const request& r) noexcept
{
    if (r.title)
        return r.title->key;
    const auto ops = counted_ops(r);
    std::uint64_t key = ops.front().info->id;
    for (const bound_op& o : ops.subspan(1))
        key = (key * 0x100000001b3ull) ^ o.info->id; // the order matters
    return key;
}

std::string name_text(const request& r)
{
    constexpr std::size_t most = 4;
    if (r.title)
        return r.title->text;
    const auto ops = counted_ops(r);
    if (ops.size() == 1)
        return ops.front().info->name;
    std::string text = "seq(";
    for (std::size_t i = 0; i < std::min(ops.size(), most); ++i)
        text.append(i == 0 ? "" : ", ").append(ops[i].info->name);
    if (ops.size() > most)
        text.append(" and ").append(std::to_string(ops.size() - most)).append(" more");
    return text + ")";
}

} // namespace coaccel::detail
