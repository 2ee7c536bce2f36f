#include "context/buffers/buffer_table.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <set>
#include <vector>

namespace test_context_buffer_table {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

constexpr auto huge = std::numeric_limits<std::uint64_t>::max();

struct fixture {
    buffer_table table{{.device = 7, .generation = 3}};
    char memory[4][64];

    error_code error_of(const any_ref& ref, dtype type = dtype::f32)
    {
        auto found = table.find(ref, type);
        return found ? error_code() : found.error();
    }
};

any_ref with(any_ref r, auto member, auto value)
{
    r.*member = value;
    return r;
}

} // namespace

TEST_SUITE_BEGIN("buffer_table");

TEST_CASE_FIXTURE(fixture, "an inserted buffer is found by its ref")
{
    const auto ref = table.insert(memory[0], 16, dtype::f32);
    CHECK(ref.device == 7);
    CHECK(ref.generation == 3);
    CHECK(ref.offset == 0);
    CHECK(ref.size == 16);
    CHECK(ref.type == dtype::f32);
    CHECK(ref.version != 0);
    CHECK(table.live() == 1);
    auto found = table.find(ref, dtype::f32);
    REQUIRE(found);
    CHECK(found.value()->memory == memory[0]);
    CHECK(found.value()->size == 16);
}

TEST_CASE_FIXTURE(fixture, "each kind of wrong ref has its error")
{
    const auto ref = table.insert(memory[0], 16, dtype::f32);
    struct row {
        const char* name;
        any_ref r;
        error_code wanted;
    };
    const std::vector<row> rows = {
        {"right", ref, {}},
        {"the last element", with(with(ref, &any_ref::offset, 15u), &any_ref::size, 1u), {}},
        {"nothing at the end", with(with(ref, &any_ref::offset, 16u), &any_ref::size, 0u), {}},
        {"of no device", with(ref, &any_ref::device, 0u), errc::invalid_argument},
        {"new", any_ref{.type = dtype::f32}, errc::invalid_argument},
        {"of another device", with(ref, &any_ref::device, 8u), errc::wrong_device},
        {"of an older generation", with(ref, &any_ref::generation, 2u), errc::stale_ref},
        {"of a later generation", with(ref, &any_ref::generation, 4u), errc::stale_ref},
        {"of no slot", with(ref, &any_ref::slot, 1u), errc::out_of_bounds},
        {"of an absurd slot", with(ref, &any_ref::slot, ~0u), errc::out_of_bounds},
        {"of an older version", with(ref, &any_ref::version, ref.version - 1), errc::released_ref},
        {"of a later version", with(ref, &any_ref::version, ref.version + 1), errc::released_ref},
        {"of another type", with(ref, &any_ref::type, dtype::i32), errc::wrong_dtype},
        {"of no type", with(ref, &any_ref::type, dtype{}), errc::wrong_dtype},
        {"too long", with(ref, &any_ref::size, 17u), errc::out_of_bounds},
        {"absurdly long", with(ref, &any_ref::size, huge), errc::out_of_bounds},
        {"too far", with(ref, &any_ref::offset, 1u), errc::out_of_bounds},
        {"absurdly far", with(ref, &any_ref::offset, huge), errc::out_of_bounds},
        {"wrapping", with(with(ref, &any_ref::offset, huge), &any_ref::size, 2u), errc::out_of_bounds},
        {"refused by subspan", coaccel::ref<float>::from_raw(ref).subspan(17, 0).raw(), errc::out_of_bounds},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        CHECK(error_of(r.r) == r.wanted);
    }
    CHECK(error_of(ref, dtype::i32) == errc::wrong_dtype);
    CHECK(error_of(with(ref, &any_ref::type, dtype::i32), dtype::i32) == errc::wrong_dtype);
}

TEST_CASE_FIXTURE(fixture, "retiring a buffer returns its bytes and its log, once")
{
    const auto ref = table.insert(memory[0], 5, dtype::c128);
    table.log(ref.slot).note(coaccel::access::write, {2, 9});
    const auto retired = table.retire(ref);
    REQUIRE(retired);
    CHECK(retired->memory == memory[0]);
    CHECK(retired->bytes == 80);
    frontier f;
    retired->log.collect(coaccel::access::read, f);
    REQUIRE(f.size() == 1);
    CHECK(f.front() == point{2, 9});
    CHECK(table.live() == 0);
    CHECK_FALSE(table.retire(ref));
    CHECK(table.live() == 0);
    CHECK(error_of(ref, dtype::c128) == errc::released_ref);
}

TEST_CASE_FIXTURE(fixture, "refs that do not name a live buffer retire nothing")
{
    const auto ref = table.insert(memory[0], 4, dtype::f32);
    for (const auto& wrong : {any_ref{}, with(ref, &any_ref::device, 1u), with(ref, &any_ref::generation, 1u),
                              with(ref, &any_ref::slot, 5u), with(ref, &any_ref::version, ref.version + 1)})
        CHECK_FALSE(table.retire(wrong));
    CHECK(table.live() == 1);
    // A ref to a part is sufficient to retire the whole buffer: it names the slot.
    const auto retired = table.retire(with(ref, &any_ref::size, 1u));
    REQUIRE(retired);
    CHECK(retired->bytes == 16);
}

TEST_CASE_FIXTURE(fixture, "a slot is reused with another version and an empty log")
{
    const auto old = table.insert(memory[0], 4, dtype::f32);
    table.log(old.slot).note(coaccel::access::write, {1, 1});
    REQUIRE(table.retire(old));
    const auto young = table.insert(memory[1], 8, dtype::f64);
    CHECK(young.slot == old.slot);
    CHECK(young.version != old.version);
    CHECK(error_of(old) == errc::released_ref);
    CHECK(error_of(young, dtype::f64) == error_code());
    CHECK_FALSE(table.retire(old));
    CHECK(table.live() == 1);
    frontier f;
    table.log(young.slot).collect(coaccel::access::write, f);
    CHECK(f.empty());
}

TEST_CASE_FIXTURE(fixture, "no ref ever names two buffers, however many are inserted and retired")
{
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    std::vector<any_ref> live;
    std::vector<any_ref> dead;
    unsigned state = 12345;
    for (int i = 0; i < 5000; ++i) {
        state = state * 1664525 + 1013904223;
        if (live.empty() || state >> 31) {
            live.push_back(table.insert(memory[0], 1, dtype::u8));
            CHECK(seen.emplace(live.back().slot, live.back().version).second);
        } else {
            const auto at = (state >> 8) % live.size();
            REQUIRE(table.retire(live[at]));
            dead.push_back(live[at]);
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
        }
        CHECK(table.live() == live.size());
    }
    for (const auto& r : live)
        CHECK(error_of(r, dtype::u8) == error_code());
    for (const auto& r : dead)
        CHECK(error_of(r, dtype::u8) == errc::released_ref);
}

TEST_CASE("refs overlap when they name a common element")
{
    auto ref = [](std::uint32_t slot, std::uint32_t version, std::uint64_t offset, std::uint64_t size) {
        return any_ref{1, 1, slot, version, offset, size, dtype::f32};
    };
    for (std::uint64_t a = 0; a < 5; ++a)
        for (std::uint64_t n = 0; n < 4; ++n)
            for (std::uint64_t b = 0; b < 5; ++b)
                for (std::uint64_t m = 0; m < 4; ++m) {
                    bool common = false;
                    for (auto i = a; i < a + n; ++i)
                        common |= i >= b && i < b + m;
                    CAPTURE(a);
                    CAPTURE(n);
                    CAPTURE(b);
                    CAPTURE(m);
                    CHECK(overlap(ref(0, 1, a, n), ref(0, 1, b, m)) == common);
                }
    CHECK_FALSE(overlap(ref(0, 1, 0, 4), ref(1, 1, 0, 4)));
    CHECK_FALSE(overlap(ref(0, 1, 0, 4), ref(0, 2, 0, 4)));
}

TEST_SUITE_END();

} // namespace test_context_buffer_table
