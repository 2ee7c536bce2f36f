#include <coaccel/core/ref.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <type_traits>

namespace test_core_ref {

namespace {

using namespace coaccel;

constexpr auto huge = std::numeric_limits<std::size_t>::max();
constexpr any_ref whole{
    .device = 3, .generation = 2, .slot = 7, .version = 5, .offset = 10, .size = 20, .type = dtype::f32};

static_assert(std::is_trivially_copyable_v<any_ref> && std::is_trivially_copyable_v<ref<float>>);
static_assert(std::is_trivially_destructible_v<ref<double>> && std::is_nothrow_default_constructible_v<ref<double>>);
static_assert(!std::is_convertible_v<ref<float>, ref<double>> && !std::is_constructible_v<ref<float>, ref<double>>);
static_assert(!std::is_convertible_v<any_ref, ref<float>>);
static_assert(sizeof(ref<half>) == sizeof(any_ref));

bool is_refused(const ref<float>& r)
{
    return r.raw().offset == any_ref::invalid_offset;
}

} // namespace

TEST_SUITE_BEGIN("ref");

TEST_CASE("a new ref names no buffer and has the right type")
{
    constexpr ref<std::int16_t> r;
    static_assert(r.size() == 0 && r.size_bytes() == 0 && r.empty());
    static_assert(r.raw().type == dtype::i16 && r.raw().device == 0);
}

TEST_CASE("a ref keeps the values it was made from")
{
    constexpr auto r = ref<float>::from_raw(whole);
    static_assert(r.size() == 20 && r.size_bytes() == 80 && !r.empty());
    CHECK(r.raw() == whole);
    CHECK(r == ref<float>::from_raw(whole));
    CHECK(r != ref<float>());
    // The op that uses the ref checks the type.
    CHECK(ref<double>::from_raw(whole).raw().type == dtype::f32);
}

TEST_CASE("subspan narrows a ref and keeps everything else")
{
    constexpr auto r = ref<float>::from_raw(whole);
    struct row {
        const char* name;
        std::size_t offset, count;
        std::uint64_t at;
    };
    constexpr row rows[] = {
        {"all", 0, 20, 10},
        {"front", 0, 3, 10},
        {"middle", 5, 7, 15},
        {"back", 19, 1, 29},
        {"nothing in front", 0, 0, 10},
        {"nothing at the end", 20, 0, 30},
    };
    for (const auto& c : rows) {
        CAPTURE(c.name);
        const auto s = r.subspan(c.offset, c.count);
        any_ref expected = whole;
        expected.offset = c.at;
        expected.size = c.count;
        CHECK(s.raw() == expected);
        CHECK_FALSE(is_refused(s));
    }
    CHECK(r.first(4) == r.subspan(0, 4));
    CHECK(r.subspan(2, 10).subspan(3, 4) == r.subspan(5, 4));
}

TEST_CASE("a subspan out of range is refused, as are all its subspans")
{
    constexpr auto r = ref<float>::from_raw(whole);
    struct row {
        const char* name;
        std::size_t offset, count;
    };
    constexpr row rows[] = {
        {"one too many", 0, 21},          {"one too far", 20, 1},       {"starts behind the end", 21, 0},
        {"offset overflows", huge, 1},    {"count overflows", 1, huge}, {"their sum overflows", huge, huge},
        {"sum wraps to inside", huge, 5},
    };
    for (const auto& c : rows) {
        CAPTURE(c.name);
        const auto s = r.subspan(c.offset, c.count);
        CHECK(is_refused(s));
        CHECK(s.size() == c.count);
        CHECK(is_refused(s.subspan(0, 0)));
        CHECK(is_refused(s.first(c.count)));
        CHECK(is_refused(s.subspan(0, 1).subspan(0, 1)));
    }
    CHECK(is_refused(r.subspan(3, 4).subspan(2, 3)));
}

TEST_CASE("an empty ref has only the empty subspan at zero")
{
    CHECK_FALSE(is_refused(ref<float>().subspan(0, 0)));
    CHECK(is_refused(ref<float>().subspan(0, 1)));
    CHECK(is_refused(ref<float>().subspan(1, 0)));
}

TEST_SUITE_END();

} // namespace test_core_ref
