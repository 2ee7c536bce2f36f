#ifndef COACCEL_DEVICE_KEPT_ERROR_HPP
#define COACCEL_DEVICE_KEPT_ERROR_HPP

#include <coaccel/core/error.hpp>

#include <new>
#include <string>

namespace coaccel::detail {

/// An error that is reported again and again. The message of an error_code is not kept for long, so each report makes
/// another code with the message.
class kept_error {
public:
    kept_error() noexcept = default;
    kept_error(const error_code& ec) noexcept : code_(ec)
    {
        try {
            if (errc_of(ec) != errc{})
                text_ = ec.message();
        } catch (const std::bad_alloc&) {
            // Without its message.
        }
    }

    explicit operator bool() const noexcept { return code_.failed(); }

    error_code get() const noexcept
    try {
        return text_.empty() ? code_ : make_error_with_message(errc_of(code_), text_);
    } catch (const std::bad_alloc&) {
        return code_;
    }

private:
    error_code code_;
    /// Empty for the code of another category, which has its message.
    std::string text_;
};

} // namespace coaccel::detail

#endif
