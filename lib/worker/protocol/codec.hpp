#ifndef COACCEL_WORKER_PROTOCOL_CODEC_HPP
#define COACCEL_WORKER_PROTOCOL_CODEC_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/core/ref.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace coaccel::worker {

/// Maximum length of a text in a record, which must fit into the ring with the rest of the record.
inline constexpr std::size_t longest_text = 0x3fff;

/// Writes a record, field by field.
class encoder {
public:
    void clear() noexcept { out_.clear(); }
    std::span<const std::byte> record() const noexcept { return out_; }

    template <class T>
        requires std::is_arithmetic_v<T> || std::is_enum_v<T>
    void put(T value)
    {
        put_bytes({reinterpret_cast<const std::byte*>(&value), sizeof(value)});
    }

    void put_bytes(std::span<const std::byte> bytes)
    {
        const std::size_t at = out_.size();
        out_.resize(at + bytes.size());
        if (!bytes.empty())
            std::memcpy(out_.data() + at, bytes.data(), bytes.size());
    }

    /// Writes at most the first longest_text bytes.
    void put_text(std::string_view text);
    void put_ref(const any_ref& ref);
    void put_error(const error_code& ec);

private:
    std::vector<std::byte> out_;
};

/// Reads an untrusted record: every `get` returns whether the value was present and valid.
class decoder {
public:
    explicit decoder(std::span<const std::byte> record) noexcept : left_(record) {}

    template <class T>
        requires std::is_integral_v<T>
    [[nodiscard]] bool get(T& value) noexcept
    {
        static_assert(!std::is_same_v<T, bool>, "not every byte is a bool");
        std::span<const std::byte> bytes;
        if (!get_bytes(sizeof(T), bytes))
            return false;
        std::memcpy(&value, bytes.data(), sizeof(T));
        return true;
    }

    /// Reads an enumeration with values from `first` to `last`.
    template <class Enum>
    [[nodiscard]] bool get(Enum& value, Enum first, Enum last) noexcept
    {
        std::underlying_type_t<Enum> number{};
        if (!get(number) || number < static_cast<std::underlying_type_t<Enum>>(first) ||
            number > static_cast<std::underlying_type_t<Enum>>(last))
            return false;
        value = static_cast<Enum>(number);
        return true;
    }

    [[nodiscard]] bool get_bytes(std::size_t count, std::span<const std::byte>& bytes) noexcept
    {
        if (count > left_.size())
            return false;
        bytes = left_.first(count);
        left_ = left_.subspan(count);
        return true;
    }

    [[nodiscard]] bool get_text(std::string& text);
    [[nodiscard]] bool get_ref(any_ref& ref) noexcept;
    [[nodiscard]] bool get_error(error_code& ec);

    bool at_end() const noexcept { return left_.empty(); }

private:
    std::span<const std::byte> left_;
};

} // namespace coaccel::worker

#endif
