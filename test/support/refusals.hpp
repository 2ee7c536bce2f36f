#ifndef COACCEL_TEST_SUPPORT_REFUSALS_HPP
#define COACCEL_TEST_SUPPORT_REFUSALS_HPP

#include <coaccel/core/op.hpp>

#include <doctest/doctest.h>

#include <string>

namespace test {

/// Elements of a buffer that does not exist, for checks; another one for each slot, so that operands overlap only on
/// purpose.
template <class T = float>
coaccel::ref<T> elements(std::uint64_t size, std::uint32_t slot, std::uint64_t offset = 0)
{
    return coaccel::ref<T>::from_raw({1, 1, slot, 1, offset, size, coaccel::dtype_v<T>});
}

/// Checks that the op is accepted, and how it is refused after each change.
template <class Op>
class refusals {
public:
    explicit refusals(const Op& good) : good_(good) { CHECK_FALSE(good.check()); }

    template <class Change>
    void operator()(coaccel::errc code, const std::string& message, Change change) const
    {
        Op bad = good_;
        change(bad);
        const auto got = bad.check();
        CHECK(got.message() == std::string(Op::name) + ": " + message);
        CHECK_MESSAGE(got == code, message);
    }

    const Op& good() const noexcept { return good_; }

private:
    Op good_;
};

} // namespace test

#endif
