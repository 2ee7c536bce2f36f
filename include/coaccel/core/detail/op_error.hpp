#ifndef COACCEL_CORE_DETAIL_OP_ERROR_HPP
#define COACCEL_CORE_DETAIL_OP_ERROR_HPP

#include <coaccel/core/error.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

// The messages of refused ops. They are composed only when an op is refused, so that a successful check allocates no
// memory.
namespace coaccel::detail {

/// A piece of a message: a text or a number.
class message_part {
public:
    constexpr message_part(std::string_view text) noexcept : text_(text) {}
    constexpr message_part(const char* text) noexcept : text_(text) {}
    message_part(const std::string& text) noexcept : text_(text) {}

    template <std::integral T>
    constexpr message_part(T number) noexcept
        : magnitude_(std::cmp_less(number, 0) ? -static_cast<std::uint64_t>(number)
                                              : static_cast<std::uint64_t>(number)),
          what_(std::cmp_less(number, 0) ? kind::negative : kind::positive)
    {}

    void append_to(std::string& text) const;

private:
    enum class kind : std::uint8_t { text, positive, negative };

    std::string_view text_{};
    std::uint64_t magnitude_ = 0;
    kind what_ = kind::text;
};

/// The error `what` with the message "OP: PARTS"; the plain code if there is no memory for the message.
[[gnu::cold]] COACCEL_DECL error_code op_error(errc what, std::string_view op,
                                               std::initializer_list<message_part> parts) noexcept;

/// errc::invalid_argument: "OP: FIELD is 0".
[[gnu::cold]] COACCEL_DECL error_code is_zero(std::string_view op, std::string_view field) noexcept;

/// errc::invalid_argument: "OP: FIELD has 0 elements".
[[gnu::cold]] COACCEL_DECL error_code is_empty(std::string_view op, std::string_view field) noexcept;

/// errc::invalid_argument: "OP: FIELD is VALUE, which is not a TYPE".
[[gnu::cold]] COACCEL_DECL error_code not_enumerated(std::string_view op, std::string_view field, unsigned value,
                                                     std::string_view type) noexcept;

} // namespace coaccel::detail

#endif
