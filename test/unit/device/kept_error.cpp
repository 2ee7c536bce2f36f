#include "device/kept_error.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_device_kept_error {

namespace {

using namespace coaccel;
using detail::kept_error;

/// Makes so many messages that none of the earlier ones is kept.
void displace_messages()
{
    for (int i = 0; i < 1000; ++i)
        for (const errc e : {errc::out_of_memory, errc::context_lost})
            (void)make_error_with_message(e, "message " + std::to_string(i));
}

} // namespace

TEST_SUITE_BEGIN("kept_error");

TEST_CASE("it has its message, however many other messages there have been")
{
    for (const errc e : {errc::out_of_memory, errc::backend_error}) {
        const error_code first = make_error_with_message(e, "plan p: no memory for 8 bytes");
        const kept_error kept(first);
        CHECK(kept);
        for (int i = 0; i < 3; ++i) {
            displace_messages();
            CHECK(kept.get() == e);
            CHECK(kept.get().message() == "plan p: no memory for 8 bytes");
        }
        CHECK(first.message() != "plan p: no memory for 8 bytes");
    }
}

TEST_CASE("success and the codes of others are kept as they are")
{
    CHECK_FALSE(kept_error());
    CHECK_FALSE(kept_error().get());
    CHECK_FALSE(kept_error(error_code()));
    const auto other = make_error_code(boost::system::errc::io_error);
    CHECK(kept_error(other).get() == other);
    CHECK(kept_error(other).get().message() == other.message());
    CHECK(kept_error(errc::context_lost).get() == errc::context_lost);
    CHECK(kept_error(errc::context_lost).get().message() == make_error_code(errc::context_lost).message());
}

TEST_SUITE_END();

} // namespace test_device_kept_error
