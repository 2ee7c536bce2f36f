#ifndef COACCEL_PLAN_CONTENT_HASH_HPP
#define COACCEL_PLAN_CONTENT_HASH_HPP

#include <coaccel/plan/detail/plan_data.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace coaccel::detail {

/// MurmurHash3 (x64, 128 bits) of a sequence of bytes, whatever the pieces in which they are added. It does not resist
/// deliberate collisions.
class COACCEL_DECL content_hash {
public:
    void add_bytes(const void* data, std::size_t bytes) noexcept;

    template <class T>
        requires std::integral<T> || std::is_enum_v<T>
    void add(T value) noexcept
    {
        const auto wide = static_cast<std::uint64_t>(value);
        add_bytes(&wide, sizeof(wide));
    }

    void add(const content_id& id) noexcept
    {
        add(id.high);
        add(id.low);
    }

    /// With its length, so that two texts in a row differ from one.
    void add(std::string_view text) noexcept
    {
        add(text.size());
        add_bytes(text.data(), text.size());
    }

    content_id finish() const noexcept;

private:
    static constexpr std::size_t block = 16;

    void step(const unsigned char* at) noexcept;

    std::uint64_t h1_ = 0;
    std::uint64_t h2_ = 0;
    std::uint64_t total_ = 0;
    unsigned char rest_[block]{};
};

/// The hash of these bytes.
inline content_id hash_content(const void* data, std::size_t bytes) noexcept
{
    content_hash h;
    h.add_bytes(data, bytes);
    return h.finish();
}

} // namespace coaccel::detail

#endif
