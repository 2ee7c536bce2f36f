#include "plan/file/tree.hpp"
#include "support/plan_files.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace test_plan_shapes {

namespace {

using namespace coaccel;

/// Copies an input to an output of the same number of elements.
result<plan_description> copying(plan_shape from, plan_shape to)
{
    plan_builder b("copy");
    const auto x = b.input<float>(std::move(from), "x");
    const auto y = b.output<float>(std::move(to), "y");
    b.add(memory::copy<float>{.src = x, .dst = y});
    return b.finish();
}

void check_refused(const result<plan_description>& r, errc why, const std::string& message)
{
    REQUIRE_FALSE(r);
    CHECK(r.error() == why);
    CHECK(r.error().message() == message);
}

/// A file whose only slot has these values after its count of 6.
template <class Write>
result<plan_description> read_slot(const char* kind, Write write)
{
    detail::tree_writer out;
    out["plan"].begin_record();
    out["name"].text("p");
    out["library"].text("");
    out.end();
    out["kernels"].begin_list();
    out.end();
    out["slots"].begin_list();
    out.begin_record();
    out["name"].text("x");
    out["kind"].text(kind);
    out["type"].text("f32");
    out["count"].number(std::uint64_t(6));
    write(out);
    out.end();
    out.end();
    out["ops"].begin_list();
    out.end();
    return test::read_file(test::file_with(out.written()));
}

void write_shape(detail::tree_writer& out, std::initializer_list<std::uint64_t> dims)
{
    out["shape"].begin_list();
    for (const std::uint64_t d : dims)
        out.number(d);
    out.end();
}

} // namespace

TEST_SUITE_BEGIN("plan_shape");

TEST_CASE("a shape counts its elements, and too many are the largest number")
{
    constexpr std::uint64_t big = std::uint64_t(1) << 33;
    CHECK(plan_shape{}.count() == 0);
    CHECK(plan_shape{{7}}.count() == 7);
    CHECK(plan_shape{{2, 3, 5}}.count() == 30);
    CHECK(plan_shape{{2, 0, 5}}.count() == 0);
    CHECK(plan_shape{{big, big}}.count() == ~std::uint64_t(0));
    CHECK(plan_shape{{big, big, 0}}.count() == 0);
    CHECK(batch_of(4, {{2, 3}}) == plan_shape{{4, 2, 3}, true});
    CHECK(batch_of(4, {}) == plan_shape{{4}, true});
}

TEST_CASE("the text of a shape marks the rows of a batch")
{
    CHECK(to_string(plan_shape{}).empty());
    CHECK(to_string(plan_shape{{28, 28}}) == "28 x 28");
    CHECK(to_string(batch_of(8, {{28, 28}})) == "[8] x 28 x 28");
}

TEST_CASE("a plan has the shapes that it was given, and computes the same without them")
{
    const auto shaped = copying(batch_of(2, {{3}}), plan_shape{{2, 3}}).value();
    CHECK(shaped.inputs()[0] == plan_argument{"x", dtype::f32, 6, batch_of(2, {{3}})});
    CHECK(shaped.outputs()[0] == plan_argument{"y", dtype::f32, 6, plan_shape{{2, 3}}});
    CHECK(shaped.rows() == 2);
    const auto flat = copying(plan_shape{{6}}, plan_shape{{6}}).value();
    CHECK(flat.rows() == 0);
    CHECK(flat.id() == shaped.id());
    CHECK(plan_description().rows() == 0);
    CHECK(shaped.to_text().find("x: input of 6 f32, shape [2] x 3, at byte 0\n") != std::string::npos);
}

TEST_CASE("shapes without elements, with too many, or with different rows are refused")
{
    check_refused(copying({}, {{6}}), errc::invalid_argument, "plan copy: x: the shape has no dimensions");
    check_refused(copying({{}, true}, {{6}}), errc::invalid_argument, "plan copy: x: the shape has no dimensions");
    check_refused(copying({{2, 0}}, {{6}}), errc::invalid_argument, "plan copy: x: count is 0");
    check_refused(copying({{~std::uint64_t(0), 2}}, {{6}}), errc::size_overflow,
                  "plan copy: x: count is 18446744073709551615, too many elements of 4 bytes");
    check_refused(copying(batch_of(2, {{3}}), batch_of(3, {{2}})), errc::invalid_argument,
                  "plan copy: y: the shape has 3 rows, that of x has 2");
}

TEST_CASE("a file keeps the shapes")
{
    const auto shaped = copying(batch_of(2, {{3}}), plan_shape{{2, 3}}).value();
    const auto made = test::read_file(test::file_of(shaped)).value();
    CHECK(made.inputs() == shaped.inputs());
    CHECK(made.outputs() == shaped.outputs());
    CHECK(made.rows() == 2);
    CHECK(made.to_text() == shaped.to_text());
}

TEST_CASE("a shape in a file that does not fit its slot is refused")
{
    check_refused(read_slot("input", [](auto& out) { write_shape(out, {2, 2}); }), errc::file_invalid,
                  "plan file test: slot 1: its shape has 4 elements, the slot 6");
    check_refused(read_slot("input", [](auto& out) { write_shape(out, {}); }), errc::file_invalid,
                  "plan file test: slot 1: its shape has 0 elements, the slot 6");
    check_refused(read_slot("scratch", [](auto& out) { write_shape(out, {6}); }), errc::file_invalid,
                  "plan file test: slot 1: its kind is scratch, but it has a shape");
    check_refused(read_slot("input", [](auto& out) { out["batched"].boolean(true); }), errc::file_invalid,
                  "plan file test: slot 1: batched is unknown or repeated");
    check_refused(read_slot("input",
                            [](auto& out) {
                                out["shape"].begin_list();
                                out.text("6");
                                out.end();
                            }),
                  errc::file_invalid, "plan file test: slot 1: shape has a text instead of a number");
    check_refused(read_slot("input",
                            [](auto& out) {
                                out["shape"].begin_list();
                                out.number(std::uint32_t(6));
                                out.end();
                            }),
                  errc::file_invalid, "plan file test: slot 1: shape is a number of type u32 instead of u64");
}

TEST_SUITE_END();

} // namespace test_plan_shapes
