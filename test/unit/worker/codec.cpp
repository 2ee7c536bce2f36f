#include "worker/protocol/codec.hpp"

#include <boost/system/generic_category.hpp>
#include <boost/system/system_category.hpp>
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace test_worker_codec {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

enum class colour : std::uint8_t { red = 3, green, blue };
enum class height : int { low = -2, even = 0, high = 5 };

using bytes = std::vector<std::byte>;

bytes record_of(const encoder& out)
{
    return {out.record().begin(), out.record().end()};
}

/// In an allocation of exactly its size, so that the address sanitizer detects access beyond it.
bytes first(const bytes& record, std::size_t n)
{
    return {record.begin(), record.begin() + static_cast<std::ptrdiff_t>(n)};
}

template <class T>
void check_integer()
{
    for (const T value : {std::numeric_limits<T>::min(), T(0), T(1), T(42), std::numeric_limits<T>::max()}) {
        encoder out;
        out.put(value);
        const auto record = record_of(out);
        REQUIRE(record.size() == sizeof(T));
        T got = 7;
        decoder in(record);
        CHECK(in.get(got));
        CHECK(got == value);
        CHECK(in.at_end());
        CHECK_FALSE(in.get(got));
        for (std::size_t n = 0; n < record.size(); ++n) {
            const auto part = first(record, n);
            decoder cut(part);
            got = 7;
            CHECK_FALSE(cut.get(got));
            CHECK(got == 7);
        }
    }
}

bytes encoded(const error_code& ec)
{
    encoder out;
    out.put_error(ec);
    return record_of(out);
}

error_code decoded(const bytes& record)
{
    decoder in(record);
    error_code ec = errc::no_value;
    REQUIRE(in.get_error(ec));
    CHECK(in.at_end());
    return ec;
}

bool refused(const bytes& record)
{
    decoder in(record);
    error_code ec;
    return !in.get_error(ec) || !in.at_end();
}

void check_every_truncation(const bytes& record)
{
    for (std::size_t n = 0; n < record.size(); ++n) {
        CAPTURE(n);
        CHECK(refused(first(record, n)));
    }
    auto longer = record;
    longer.push_back(std::byte{0});
    CHECK(refused(longer));
}

/// An encoded error with arbitrary numbers.
bytes raw_error(std::uint8_t origin, std::int32_t value, std::string_view text)
{
    encoder out;
    out.put(origin);
    out.put(value);
    out.put_text(text);
    return record_of(out);
}

constexpr int last_errc = static_cast<int>(errc::function_version);

} // namespace

TEST_SUITE_BEGIN("codec");

TEST_CASE("integers of every size survive a round trip, and truncated ones are refused")
{
    check_integer<std::int8_t>();
    check_integer<std::uint8_t>();
    check_integer<std::int16_t>();
    check_integer<std::uint16_t>();
    check_integer<std::int32_t>();
    check_integer<std::uint32_t>();
    check_integer<std::int64_t>();
    check_integer<std::uint64_t>();
}

TEST_CASE("an enumerator is accepted within its bounds and refused outside of them")
{
    for (int n = 0; n <= 255; ++n) {
        encoder out;
        out.put(static_cast<std::uint8_t>(n));
        decoder in(out.record());
        colour c{};
        CHECK(in.get(c, colour::red, colour::blue) == (n >= 3 && n <= 5));
        CHECK(static_cast<int>(c) == (n >= 3 && n <= 5 ? n : 0));
    }
    for (const int n : {-3, -2, 0, 5, 6, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
        encoder out;
        out.put(n);
        decoder in(out.record());
        height h{};
        CHECK(in.get(h, height::low, height::high) == (n >= -2 && n <= 5));
    }
}

TEST_CASE("decoded bytes are a view of the record and never exceed it")
{
    const bytes record(5, std::byte{9});
    decoder in(record);
    std::span<const std::byte> got;
    CHECK_FALSE(in.get_bytes(6, got));
    CHECK_FALSE(in.get_bytes(std::numeric_limits<std::size_t>::max(), got));
    CHECK(in.get_bytes(0, got));
    CHECK(got.empty());
    CHECK(in.get_bytes(3, got));
    CHECK(got.data() == record.data());
    CHECK(got.size() == 3);
    CHECK_FALSE(in.get_bytes(3, got));
    CHECK(in.get_bytes(2, got));
    CHECK(got.data() == record.data() + 3);
    CHECK(in.at_end());
}

TEST_CASE("texts survive a round trip, and too long ones are truncated")
{
    for (const std::size_t length : {0u, 1u, 255u, 256u, 65535u, 65536u, 200000u}) {
        CAPTURE(length);
        std::string text(length, 'x');
        if (length > 2)
            text[1] = '\0';
        encoder out;
        out.put_text(text);
        out.put(std::uint8_t{77});
        decoder in(out.record());
        std::string got = "old";
        std::uint8_t after = 0;
        REQUIRE(in.get_text(got));
        CHECK(got == text.substr(0, got.size()));
        CHECK((got.size() == length || (got.size() < length && got.size() >= 4096)));
        CHECK(in.get(after));
        CHECK(after == 77);
    }
    encoder out;
    out.put_text("hello");
    const auto record = record_of(out);
    for (std::size_t n = 0; n < record.size(); ++n) {
        const auto part = first(record, n);
        decoder in(part);
        std::string got;
        CHECK_FALSE(in.get_text(got));
    }
}

TEST_CASE("refs of every element type survive a round trip, and other types are refused")
{
    for (int type = 0; type <= 255; ++type) {
        CAPTURE(type);
        const any_ref ref{.device = 0x01020304,
                          .generation = 5,
                          .slot = 0xfffffffe,
                          .version = 7,
                          .offset = any_ref::invalid_offset,
                          .size = std::uint64_t(1) << 60,
                          .type = static_cast<dtype>(type)};
        encoder out;
        out.put_ref(ref);
        const auto record = record_of(out);
        decoder in(record);
        any_ref got;
        const bool good = type >= static_cast<int>(dtype::f16) && type <= static_cast<int>(dtype::c128);
        REQUIRE(in.get_ref(got) == good);
        if (!good)
            continue;
        CHECK(got == ref);
        CHECK(in.at_end());
        for (std::size_t n = 0; n < record.size(); ++n) {
            const auto part = first(record, n);
            decoder cut(part);
            CHECK_FALSE(cut.get_ref(got));
        }
    }
}

TEST_CASE("a success code survives a round trip")
{
    const auto record = encoded({});
    CHECK_FALSE(decoded(record));
    check_every_truncation(record);
}

TEST_CASE("every error of the library survives a round trip")
{
    for (int n = 1; n <= last_errc; ++n) {
        CAPTURE(n);
        const error_code ec = static_cast<errc>(n);
        const auto record = encoded(ec);
        const auto got = decoded(record);
        CHECK(got.category() == coaccel_category());
        CHECK(got.value() == n);
        check_every_truncation(record);
    }
}

TEST_CASE("an error with a message keeps its code and its message")
{
    for (int n = 1; n <= last_errc; ++n) {
        const auto record = encoded(make_error_with_message(static_cast<errc>(n), "the file 'x' is missing"));
        const auto got = decoded(record);
        CHECK(got == static_cast<errc>(n));
        CHECK(got.message() == "the file 'x' is missing");
        check_every_truncation(record);
    }
}

TEST_CASE("a system error keeps its number, and an error of an unknown category its message")
{
    const error_code system(ENOSPC, boost::system::system_category());
    CHECK(decoded(encoded(system)) == system);
    check_every_truncation(encoded(system));

    const error_code other(ENOENT, boost::system::generic_category());
    const auto got = decoded(encoded(other));
    CHECK(got == errc::backend_error);
    CHECK(got.message() == other.message());
    check_every_truncation(encoded(other));
}

TEST_CASE("messages keep their line breaks, and other control characters are escaped")
{
    encoder out;
    out.put_error(make_error_with_message(errc::compile_failed, "line 1\n\x1b[2Jline 2\n"));
    error_code ec;
    decoder in(out.record());
    REQUIRE(in.get_error(ec));
    CHECK(ec == errc::compile_failed);
    CHECK(ec.message() == "line 1\n\\x1b[2Jline 2\n");
}

TEST_CASE("malformed errors are refused")
{
    struct wrong {
        const char* what;
        bytes record;
    };
    encoder none_with_value;
    none_with_value.put(std::uint8_t{0});
    none_with_value.put(std::int32_t{0});
    encoder plain;
    const auto plain_errc = [&](std::int32_t value) {
        plain.clear();
        plain.put(std::uint8_t{1});
        plain.put(value);
        return record_of(plain);
    };
    const std::vector<wrong> all = {
        {"nothing", {}},
        {"no error, with a number", record_of(none_with_value)},
        {"an errc of zero", plain_errc(0)},
        {"an errc below the first", plain_errc(-1)},
        {"an errc behind the last", plain_errc(last_errc + 1)},
        {"the largest errc", plain_errc(std::numeric_limits<std::int32_t>::max())},
        {"a noted errc of zero", raw_error(2, 0, "text")},
        {"a noted errc behind the last", raw_error(2, last_errc + 1, "text")},
        {"a noted errc below the first", raw_error(2, -7, "text")},
        {"a category that nobody has", raw_error(3, 1, "coaccel.nobody")},
        {"a category without a name", raw_error(3, 1, "")},
        {"a number of zero of another category", raw_error(5, 0, "text")},
        {"an origin behind the last", raw_error(6, 1, "text")},
        {"the largest origin", raw_error(255, 1, "text")},
    };
    for (const auto& w : all) {
        CAPTURE(w.what);
        CHECK(refused(w.record));
    }
}

TEST_CASE("a cleared encoder starts an empty record")
{
    encoder out;
    out.put(std::uint64_t{1});
    out.clear();
    CHECK(out.record().empty());
    out.put(std::uint8_t{2});
    CHECK(out.record().size() == 1);
}

TEST_SUITE_END();

} // namespace test_worker_codec
