#include <coaccel/ops/jit/compile.hpp>

#include <doctest/doctest.h>

#include <type_traits>

namespace test_jit_compile_options {

using namespace coaccel;

TEST_SUITE_BEGIN("jit::compile_options");

// g++ 12 destroys temporaries of aggregate types twice inside a co_await expression.
static_assert(!std::is_aggregate_v<jit::compile_options>);

TEST_CASE("every setter is visible in its getter, also in a copy")
{
    const auto set = jit::compile_options("f")
                         .option("-a")
                         .option("-b")
                         .include_folder("x")
                         .add_header("h", "text")
                         .architecture(90)
                         .cache(jit::disk_caching::off)
                         .cache_folder("c")
                         .cache_limit(5)
                         .host([](const jit::launch_shape&, float) {});
    auto copy = set;
    const auto moved = std::move(copy);
    for (const auto* o : {&set, &moved}) {
        CHECK(o->name() == "f");
        CHECK(o->options() == std::vector<std::string>{"-a", "-b"});
        CHECK(o->include_folders() == std::vector<std::string>{"x"});
        CHECK(o->headers() == std::vector<jit::header>{{"h", "text"}});
        CHECK(o->architecture() == 90);
        CHECK(o->cache() == jit::disk_caching::off);
        CHECK(o->cache_folder() == "c");
        CHECK(o->cache_limit() == 5);
        CHECK(bool(o->host()));
    }
    const jit::compile_options none;
    CHECK(none.name().empty());
    CHECK(none.cache() == jit::disk_caching::on);
    CHECK_FALSE(bool(none.host()));
}

TEST_SUITE_END();

} // namespace test_jit_compile_options
