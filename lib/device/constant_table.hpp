#ifndef COACCEL_DEVICE_CONSTANT_TABLE_HPP
#define COACCEL_DEVICE_CONSTANT_TABLE_HPP

#include "device/constant_groups.hpp"

#include <algorithm>
#include <vector>

namespace coaccel::detail {

/// The constants of the loaded plans in the current context. Equal groups of constants share a buffer.
class constant_table {
public:
    /// The buffer with this content, which gets one more user; a ref without a device if there is none.
    any_ref use(const constant_group& c) noexcept
    {
        const auto found = find(c);
        if (found == all_.end())
            return {};
        ++found->users;
        return found->ref;
    }

    /// A buffer with this content and one user.
    void add(const constant_group& c, const any_ref& ref) { all_.push_back({c, ref, 1}); }

    /// A user leaves. Returns the buffer if it was the last one, otherwise a ref without a device.
    any_ref leave(const any_ref& buffer) noexcept
    {
        const auto found = std::ranges::find(all_, buffer, &entry::ref);
        if (found == all_.end() || --found->users > 0)
            return {};
        all_.erase(found);
        return buffer;
    }

    /// The context is gone.
    void clear() noexcept { all_.clear(); }
    std::size_t size() const noexcept { return all_.size(); }

private:
    struct entry {
        constant_group content;
        any_ref ref;
        std::size_t users;
    };

    std::vector<entry>::iterator find(const constant_group& c) noexcept
    {
        return std::ranges::find(all_, c, &entry::content);
    }

    std::vector<entry> all_;
};

} // namespace coaccel::detail

#endif
