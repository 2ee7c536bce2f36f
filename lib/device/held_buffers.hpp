#ifndef COACCEL_DEVICE_HELD_BUFFERS_HPP
#define COACCEL_DEVICE_HELD_BUFFERS_HPP

#include <coaccel/core/ref.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace coaccel::detail {

/// Whether two refs name the same buffer.
inline bool same_memory(const any_ref& a, const any_ref& b) noexcept
{
    return a.device == b.device && a.generation == b.generation && a.slot == b.slot && a.version == b.version;
}

/// The buffers that graphs use. Their owners may release them at any time; the memory, and refs to it, stay valid until
/// the last of these graphs is gone.
class held_buffers {
public:
    /// One graph holds the buffers that these refs name, each named once.
    void add(std::span<const any_ref> buffers)
    {
        for (const any_ref& r : buffers)
            ++uses_[key_of(r)].holders;
    }

    /// The graph is gone. Returns those of its buffers that are to be released from here on. Buffers that are not held,
    /// such as those of a lost context, are ignored.
    std::vector<any_ref> remove(std::span<const any_ref> buffers)
    {
        std::vector<any_ref> unused;
        for (const any_ref& r : buffers) {
            const auto found = uses_.find(key_of(r));
            if (found == uses_.end() || --found->second.holders > 0)
                continue;
            if (found->second.released)
                unused.push_back(r);
            uses_.erase(found);
        }
        return unused;
    }

    /// Returns whether a graph holds the buffer, whose release must then wait for `remove`.
    [[nodiscard]] bool delay_release(const any_ref& buffer) noexcept
    {
        const auto found = uses_.find(key_of(buffer));
        if (found == uses_.end())
            return false;
        found->second.released = true;
        return true;
    }

    /// The context is gone, and with it all buffers.
    void clear() noexcept { uses_.clear(); }

    std::size_t size() const noexcept { return uses_.size(); }

private:
    using key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

    static key key_of(const any_ref& r) noexcept { return {r.device, r.generation, r.slot, r.version}; }

    struct use {
        std::size_t holders = 0;
        bool released = false;
    };

    std::map<key, use> uses_;
};

} // namespace coaccel::detail

#endif
