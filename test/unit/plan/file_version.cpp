#include "jit/image.hpp"
#include "support/plan_files.hpp"

#include <coaccel/ops/jit.hpp>

#include <doctest/doctest.h>

#include <string>

// A file that an earlier version of the library has written, which writes each constant, equal or not.
namespace test_plan_file_version {

namespace {

using namespace coaccel;

const std::string path = COACCEL_TEST_PLAN_FILES "/version1.plan";

/// The plan in the file.
plan_description saved_plan()
{
    jit::compile_options options("scale");
    options.option("-O").include_folder("/i").add_header("h", "t").architecture(90);
    const auto k = jit::make_kernel(options, {.symbol = "_Z5scalePKfPff", .code = "code", .log = {}, .source = "s"});
    plan_builder b("saved");
    const auto x = b.input<float>(4, "x");
    const auto w = b.constant<float>(std::vector<float>{1, 2, 3, 4}, "w");
    const auto v = b.constant<float>(std::vector<float>{1, 2, 3, 4}, "v");
    const auto t = b.scratch<float>(2, "t");
    const auto s = b.state<float>(2, durable{suspect_rule::reset}, "s");
    const auto u = b.state<float>(std::vector<float>{5, 6}, "u");
    const auto y = b.output<float>(2, "y");
    const auto r = b.output<float>(3, "r");
    const auto alpha = b.parameter<float>("alpha");
    const auto g = rand::make_generator({.seed = 7});
    using gemv = blas::gemv<float>;
    b.add(gemv{.a = w, .x = x.first(2), .y = t, .m = 2, .n = 2, .trans = blas::transpose::yes},
          bind(&gemv::alpha, alpha));
    b.add(pure(plugin::call("f", in(t), inout(s), 7, 2.5, true)));
    b.add(blas::axpy<float>{.x = v.first(2), .y = u, .n = 2});
    b.add(jit::launch(k.value(), {.grid = {2, 1, 1}, .block = {3, 1, 1}}, in(u), out(y), alpha));
    b.add(rand::uniform<float>{.dst = r.first(2), .from = g});
    b.add(store_reply(blas::dot<float>{.x = t, .y = t, .n = 2}, r.subspan(2, 1)));
    return b.finish().value();
}

TEST_SUITE_BEGIN("plan file");

TEST_CASE("a file of an earlier version of the library is read")
{
    for (const auto check : {content_check::hash, content_check::none}) {
        const auto made = plan_description::load(path, check);
        REQUIRE_MESSAGE(made, made.error().message());
        CHECK(to_string(made.value().id()) == "e72fa03ae8513ecf7b005aca0b3debda");
        CHECK(made.value() == saved_plan());
        CHECK(made.value().name() == "saved");
        CHECK(made.value().to_text() == saved_plan().to_text());
    }
}

TEST_CASE("a file of an earlier version is a set of one plan")
{
    const auto made = plan_set_description::load(path);
    REQUIRE_MESSAGE(made, made.error().message());
    REQUIRE(made.value().size() == 1);
    CHECK(made.value()["saved"] == saved_plan());
}

TEST_SUITE_END();

} // namespace

} // namespace test_plan_file_version
