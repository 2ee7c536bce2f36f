#include "core/escape_text.hpp"
#include "plan/file/slot_records.hpp"
#include "plan/file/tree.hpp"
#include "support/plan_files.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_plan_set_file_damage {

namespace {

using namespace coaccel;
using namespace std::string_literals;
using test::file_bytes;
using test::number;
using test::read_set_file;

/// Two plans that have two states and a constant in common.
plan_set_description small_set()
{
    plan_set_builder set("s");
    const auto a = set.state<float>(std::vector<float>{1, 2}, "a");
    const auto b = set.state<float>(2, durable{suspect_rule::keep}, "b");
    const auto w = set.constant<float>(std::vector<float>{3, 4}, "w");
    set.plan("x").add(memory::copy<float>{w, a}).add(memory::copy<float>{a, b});
    set.plan("y").add(memory::copy<float>{w, b}).add(memory::copy<float>{b, a});
    return set.finish().value();
}

void check_refused(const file_bytes& file, errc what, const std::string& message)
{
    const auto made = read_set_file(file);
    REQUIRE_FALSE(made);
    CHECK(made.error() == what);
    CHECK(made.error().message() == message);
    CHECK(is_caller_error(made.error()));
}

/// A file with one plan, which has a common slot and sets it to zeros.
struct crafted_file {
    /// "plan" or "set".
    std::string_view head = "set";
    /// With that of the set, which is s.
    std::string_view plan = "s.x";
    std::string_view kind = "state";
    bool common = true;

    file_bytes make() const
    {
        detail::tree_writer out;
        out[head].begin_record();
        out["name"].text("s");
        out["library"].text("");
        if (head == "set")
            out["plans"].number(std::uint64_t(1));
        out.end();
        out["kernels"].begin_list();
        out.end();
        if (head == "set") {
            out["plan"].begin_record();
            out["name"].text(plan);
            out.end();
        }
        write_slot(out);
        write_op(out);
        return test::file_with(out.written());
    }

    void write_slot(detail::tree_writer& out) const
    {
        out["slots"].begin_list();
        out.begin_record();
        out["name"].text("a");
        out["kind"].text(kind);
        out["type"].text("f32");
        out["count"].number(std::uint64_t(2));
        if (common)
            out["common"].number(std::uint32_t(0));
        out.end();
        out.end();
    }

    static void write_op(detail::tree_writer& out)
    {
        out["ops"].begin_list();
        out.begin_record();
        out["op"].text("memory.fill<f32>");
        out["fields"].begin_record();
        out["dst"].begin_record();
        out["mode"].text("out");
        out["type"].text("f32");
        out["slot"].number(std::uint32_t(0));
        out["offset"].number(std::uint64_t(0));
        out["size"].number(std::uint64_t(2));
        out.end();
        out.end();
        out.end();
        out.end();
    }
};

TEST_SUITE_BEGIN("damaged plan set file");

TEST_CASE("a set file that is cut off anywhere is refused")
{
    for (const auto& set : {small_set(), test::varied_set()}) {
        const auto file = test::file_of(set);
        REQUIRE(read_set_file(file));
        for (std::size_t size = 0; size < file.size(); ++size) {
            CAPTURE(size);
            const auto made = read_set_file(std::span(file).first(size), content_check::none);
            REQUIRE_FALSE(made);
            REQUIRE(made.error() == errc::file_invalid);
        }
        auto longer = file;
        longer.emplace_back();
        CHECK(read_set_file(longer).error() == errc::file_invalid);
    }
}

TEST_CASE("a set file with any changed bit is refused")
{
    auto file = test::file_of(small_set());
    for (std::size_t i = 0; i < file.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            file[i] ^= std::byte(1 << bit);
            const auto made = read_set_file(file);
            CAPTURE(i);
            REQUIRE_FALSE(made);
            const bool version = i >= 8 && i < 12;
            REQUIRE(made.error() == (version ? errc::file_version : errc::file_invalid));
            file[i] ^= std::byte(1 << bit);
        }
    CHECK(read_set_file(file));
}

TEST_CASE("a description that is cut off or changed on purpose is refused or is a valid set")
{
    const auto whole = test::file_of(small_set());
    const auto size = test::header_of(whole).description_bytes;
    for (std::size_t n = 0; n < size; ++n) {
        file_bytes file(whole.begin(), whole.begin() + long(sizeof(detail::plan_file_header) + n));
        auto h = test::header_of(file);
        h.description_bytes = n;
        std::memcpy(file.data(), &h, sizeof(h));
        test::seal(file);
        CHECK_FALSE(read_set_file(file));
    }
    auto file = whole;
    int valid = 0;
    for (std::size_t i = 0; i < size; ++i)
        for (int bit = 0; bit < 8; ++bit) {
            const auto flip = [&] { test::description_of(file)[i] ^= std::byte(1 << bit); };
            flip();
            test::seal(file);
            CAPTURE(i);
            if (const auto made = read_set_file(file, content_check::none)) {
                ++valid;
                REQUIRE(read_set_file(test::file_of(made.value())).value() == made.value());
            } else {
                REQUIRE(errc_of(made.error()) != errc{});
                REQUIRE(detail::escape_text(made.error().message()) == made.error().message());
            }
            flip();
        }
    // Such as the letters of the names of plans.
    CHECK(valid > 0);
}

struct change {
    const char* name;
    std::string what;
    std::string with;
    /// Change all occurrences, not only the first one.
    bool all;
    errc error;
    std::string message;
};

const change changes[] = {
    {"fewer plans", number("plans", std::uint64_t(2)), number("plans", std::uint64_t(1)), false, errc::file_invalid,
     "plan file test: only one plan has the common state 0"},
    {"another form", "\x03\x00set"s, "\x03\x00sed"s, false, errc::file_invalid,
     "plan file test: its description is malformed: there is no plan at byte 6 of the description"},
    {"a plan of another set", "s.x", "t.x", false, errc::file_invalid,
     "plan file test: plan 1: its name is t.x, that of the set s"},
    {"two plans of a name", "s.y", "s.x", false, errc::invalid_argument, "plan set s: two plans have the name x"},
    {"a state with another rule", "keep", "fail", false, errc::file_invalid,
     "plan file test: plan s.y: slot 2: the common state 1 is another one in an earlier plan"},
    {"a state twice", number("common", std::uint32_t(1)), number("common", std::uint32_t(0)), false, errc::file_invalid,
     "plan file test: plan s.x: slot 3: the plan has the common state 0 twice"},
    {"a state that only one plan has", number("common", std::uint32_t(1)), number("common", std::uint32_t(2)), false,
     errc::file_invalid, "plan file test: only one plan has the common state 1"},
    {"a gap between the numbers", number("common", std::uint32_t(1)), number("common", std::uint32_t(7)), true,
     errc::file_invalid, "plan file test: there is no common state 1, but 7"},
    {"the number of no state", number("common", std::uint32_t(1)), number("common", std::uint32_t(0xffffffff)), true,
     errc::file_invalid,
     "plan file test: plan s.x: slot 3: its number among the common states is 4294967295, which is none"},
    {"the content of another slot", number("offset", std::uint64_t(4096)), number("offset", std::uint64_t(0)), false,
     errc::file_invalid,
     "plan file test: plan s.x: slot 2: its content begins at byte 0 of the contents instead of 4096"},
    {"a content between two others", number("offset", std::uint64_t(4096)), number("offset", std::uint64_t(8)), true,
     errc::file_invalid,
     "plan file test: plan s.x: slot 2: its content begins at byte 8 of the contents instead of 4096"},
    {"a slot that does not exist", number("slot", std::uint32_t(0)), number("slot", std::uint32_t(3)), true,
     errc::file_invalid, "plan file test: plan s.x: op 1 (memory.copy<f32>): src names slot 3, the plan has 3"},
    {"an unknown op", "memory.copy<f32>", "memory.kopy<f32>", false, errc::unsupported_op,
     "plan file test: plan s.x: op 1 (memory.kopy<f32>): this version of the library does not know the operation"},
    {"a plan that a builder refuses", number("size", std::uint64_t(2)), number("size", std::uint64_t(3)), false,
     errc::out_of_bounds, "plan s.x: op 1 (memory.copy<f32>): src names 3 elements from 0 on, w has 2"},
};

TEST_CASE("a set file that was changed on purpose is refused, with the plan")
{
    for (const auto& c : changes) {
        INFO(std::string(c.name));
        auto file = test::file_of(small_set());
        const auto replace = c.all ? test::replace_all : test::replace;
        REQUIRE(replace(file, c.what, c.with));
        const auto made = read_set_file(file);
        REQUIRE_FALSE(made);
        CHECK(made.error() == c.error);
        if (!c.message.empty())
            CHECK(made.error().message() == c.message);
        CHECK(detail::escape_text(made.error().message()) == made.error().message());
    }
}

TEST_CASE("a set file with more plans in its head than it has is refused, whatever their number")
{
    for (const std::uint64_t count : {std::uint64_t(3), std::uint64_t(1) << 40, ~std::uint64_t(0)}) {
        auto file = test::file_of(small_set());
        REQUIRE(test::replace(file, number("plans", std::uint64_t(2)), number("plans", count)));
        const auto made = read_set_file(file);
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::file_invalid);
        CHECK(made.error().message().find("it is cut off at byte") != std::string::npos);
    }
}

TEST_CASE("a set file without plans is refused")
{
    detail::tree_writer out;
    out["set"].begin_record();
    out["name"].text("s");
    out["library"].text("");
    out["plans"].number(std::uint64_t(0));
    out.end();
    out["kernels"].begin_list();
    out.end();
    check_refused(test::file_with(out.written()), errc::invalid_argument, "plan set s: it has no plans");
}

TEST_CASE("only states can be common, and only to the plans of a set")
{
    const auto good = read_set_file(crafted_file{.common = false}.make());
    REQUIRE_MESSAGE(good, good.error().message());
    CHECK(good.value()["x"].name() == "s.x");
    check_refused(crafted_file{.kind = "scratch"}.make(), errc::file_invalid,
                  "plan file test: plan s.x: slot 1: its kind is scratch, but it is common to several plans");
    check_refused(crafted_file{.head = "plan"}.make(), errc::file_invalid,
                  "plan file test: slot 1: it is common to several plans, but there is only one");
    check_refused(crafted_file{}.make(), errc::file_invalid, "plan file test: only one plan has the common state 0");
}

TEST_CASE("a common state has the same type, size, rule and content in all plans, and perhaps another name")
{
    const detail::slot_record s{.slot = {.name = "a", .kind = slot_kind::state, .type = dtype::f32, .count = 2},
                                .has_content = true,
                                .bytes = 8};
    using change_slot = void (*)(detail::slot_record&);
    const change_slot different[] = {
        [](detail::slot_record& r) { r.slot.type = dtype::i32; },
        [](detail::slot_record& r) { r.slot.count = 3; },
        [](detail::slot_record& r) { r.slot.durable = suspect_rule::keep; },
        [](detail::slot_record& r) { r.has_content = false; },
        [](detail::slot_record& r) { r.offset = 4096; },
        [](detail::slot_record& r) { r.bytes = 4; },
        [](detail::slot_record& r) { r.id.low = 1; },
    };
    for (const auto change : different) {
        auto other = s;
        change(other);
        CHECK_FALSE(detail::same_state(s, other));
        CHECK_FALSE(detail::same_state(other, s));
    }
    CHECK(detail::same_state(s, s));
    auto file = test::file_of(small_set());
    REQUIRE(test::replace(file, "\x01\x00\x00\x00\x00\x00\x00\x00"s + "a", "\x01\x00\x00\x00\x00\x00\x00\x00"s + "A"));
    const auto made = read_set_file(file);
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(made.value() == small_set());
}

TEST_CASE("a plan of a set without a name of its own is refused")
{
    check_refused(crafted_file{.plan = "s.", .common = false}.make(), errc::invalid_argument,
                  "plan set s: plan 1 has no name");
    check_refused(crafted_file{.plan = "s", .common = false}.make(), errc::file_invalid,
                  "plan file test: plan 1: its name is s, that of the set s");
}

TEST_CASE("the error of a builder shows no control characters of a file")
{
    auto file = test::file_of(small_set());
    REQUIRE(test::replace(file, "s.x", "s.\x1b"));
    REQUIRE(test::replace(file, number("size", std::uint64_t(2)), number("size", std::uint64_t(3))));
    check_refused(file, errc::out_of_bounds,
                  "plan s.\\x1b: op 1 (memory.copy<f32>): src names 3 elements from 0 on, w has 2");
}

TEST_CASE("contents of a set that are not verified may be changed")
{
    auto file = test::file_of(small_set());
    file.back() ^= std::byte(1);
    CHECK(read_set_file(file).error() == errc::file_invalid);
    CHECK(read_set_file(file, content_check::none));
}

TEST_SUITE_END();

} // namespace

} // namespace test_plan_set_file_damage
