#ifndef COACCEL_CORE_RESULT_HPP
#define COACCEL_CORE_RESULT_HPP

#include <coaccel/core/error.hpp>

#include <boost/outcome/basic_result.hpp>
#include <boost/outcome/policy/base.hpp>
#include <boost/outcome/try.hpp>
#include <boost/system/system_error.hpp>

namespace coaccel {

namespace outcome = BOOST_OUTCOME_V2_NAMESPACE;

namespace detail {

// g++ 12 does not see that the error half of Outcome's union is read only when it is set.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// value() on an error throws boost::system::system_error, which is what Asio throws too.
struct throw_system_error : outcome::policy::base {
    template <class Impl>
    static constexpr void wide_value_check(Impl&& self)
    {
        if (!base::_has_value(static_cast<Impl&&>(self)))
            throw boost::system::system_error(base::_error(static_cast<Impl&&>(self)));
    }

    template <class Impl>
    static constexpr void wide_error_check(Impl&& self)
    {
        if (!base::_has_error(static_cast<Impl&&>(self)))
            throw boost::system::system_error(make_error_code(errc::no_value));
    }
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

} // namespace detail

/// A value or an error_code.
///
/// Default-constructible (it then holds errc::no_value), because co_spawn and the awaitable operators require this of
/// the return type of a coroutine.
///
/// Exceptions: value() throws boost::system::system_error if there is an error; error() throws it if there is none.
/// Construction, copies and moves throw what those of T throw.
template <class T>
class [[nodiscard]] result : public outcome::basic_result<T, error_code, detail::throw_system_error> {
    using base = outcome::basic_result<T, error_code, detail::throw_system_error>;

public:
    using base::base;
    result() : base(make_error_code(errc::no_value)) {}
    result(errc e) : base(make_error_code(e)) {} ///< Holds the error `e`.
};

/// `co_return success();` from a coroutine that returns result<void>.
using outcome::success;

} // namespace coaccel

#endif
