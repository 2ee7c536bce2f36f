#include "cuda/plan/copy_parts.hpp"

#include <algorithm>

namespace coaccel::cuda {

std::uint64_t copy_parts::most_bytes() const noexcept
{
    std::uint64_t most = 0;
    for (const copy_part& p : used())
        most = std::max(most, p.bytes);
    return most;
}

copy_parts make_copy_parts(const argument_range& r, std::span<direct_argument> direct) noexcept
{
    copy_parts made;
    const auto add = [&](std::uint64_t offset, CUdeviceptr host, std::uint64_t bytes) {
        const CUdeviceptr device = r.instance + offset;
        made.all[made.count++] =
            r.way == copy_direction::to_device ? copy_part{device, host, bytes} : copy_part{host, device, bytes};
    };
    std::ranges::sort(direct, {}, [](const direct_argument& d) { return d.where.offset; });
    std::uint64_t staged_from = r.where.offset;
    const auto add_staged_until = [&](std::uint64_t end) {
        if (staged_from < end)
            add(staged_from, r.staged + (staged_from - r.where.offset), end - staged_from);
    };
    for (const direct_argument& d : direct) {
        add_staged_until(d.where.offset);
        add(d.where.offset, d.host, d.where.bytes);
        // The next argument begins there, and the kernel needs aligned addresses.
        staged_from = next_slot(d.where.offset + d.where.bytes);
    }
    add_staged_until(r.where.offset + r.where.bytes);
    return made;
}

} // namespace coaccel::cuda
