#include <coaccel/core/detail/op_error.hpp>

#include <exception>
#include <string>

namespace coaccel::detail {

// Exported, because the component `serve` uses it.
COACCEL_DECL void message_part::append_to(std::string& text) const
{
    if (what_ == kind::text) {
        text += text_;
        return;
    }
    if (what_ == kind::negative)
        text += '-';
    text += std::to_string(magnitude_);
}

error_code op_error(errc what, std::string_view op, std::initializer_list<message_part> parts) noexcept
try {
    std::string text(op);
    text += ": ";
    for (const message_part& p : parts)
        p.append_to(text);
    return make_error_with_message(what, std::move(text));
} catch (const std::exception&) {
    return what;
}

error_code is_zero(std::string_view op, std::string_view field) noexcept
{
    return op_error(errc::invalid_argument, op, {field, " is 0"});
}

error_code is_empty(std::string_view op, std::string_view field) noexcept
{
    return op_error(errc::invalid_argument, op, {field, " has 0 elements"});
}

error_code not_enumerated(std::string_view op, std::string_view field, unsigned value, std::string_view type) noexcept
{
    return op_error(errc::invalid_argument, op, {field, " is ", value, ", which is not a ", type});
}

} // namespace coaccel::detail
