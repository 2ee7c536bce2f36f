#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <type_traits>

namespace test_rand_generator {

namespace {

using namespace coaccel;
using rand::algorithm;
using rand::generator;
using rand::generator_options;
using rand::ordering;

struct row {
    const char* name;
    generator_options options;
    std::string message;
};

const ref<float> ten = ref<float>::from_raw({1, 1, 0, 1, 0, 10, dtype::f32});
const ref<std::uint32_t> ten_words = ref<std::uint32_t>::from_raw({1, 1, 0, 1, 0, 10, dtype::u32});

} // namespace

TEST_SUITE_BEGIN("rand generator");

TEST_CASE("a generator is a plain value with its own id")
{
    static_assert(std::is_trivially_copyable_v<generator>);
    const auto a = rand::make_generator({.seed = 1});
    const auto b = rand::make_generator({.seed = 1});
    const generator copy = a;
    CHECK(a.id() != 0);
    CHECK(a.id() != b.id());
    CHECK(copy.id() == a.id());
    CHECK(copy.options().seed == 1);
}

TEST_CASE("an op refuses a generator whose options make no sense, and names the option")
{
    const row rows[] = {
        {"mt19937 with an offset", {.algorithm = algorithm::mt19937, .offset = 3}, "from.offset is 3"},
        {"unknown algorithm", {.algorithm = static_cast<algorithm>(8)}, "from.algorithm is 8"},
        {"unknown ordering", {.ordering = static_cast<ordering>(4)}, "from.ordering is 4"},
        {"dimensions of pseudo-random numbers", {.dimensions = 2}, "from.dimensions is 2"},
        {"an offset that overflows", {.offset = (std::uint64_t(1) << 62) + 1}, "from.offset is 4611686018427387905"},
        {"dynamic philox", {.ordering = ordering::dynamic}, "from.ordering is dynamic"},
        {"seeded philox", {.ordering = ordering::seeded}, "from.ordering is seeded"},
        {"a seed of Sobol numbers", {.algorithm = algorithm::sobol32, .seed = 5}, "from.seed is 5"},
        {"no dimensions", {.algorithm = algorithm::sobol64, .dimensions = 0}, "from.dimensions is 0"},
        {"too many dimensions", {.algorithm = algorithm::sobol32, .dimensions = 20001}, "from.dimensions is 20001"},
        {"ordered Sobol numbers", {.algorithm = algorithm::sobol32, .ordering = ordering::legacy}, "from.ordering"},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        const auto ec = rand::uniform<float>{.dst = ten, .from = rand::make_generator(r.options)}.check();
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message().find("rand.uniform: " + r.message) != std::string::npos);
    }
    CHECK(rand::uniform<float>{.dst = ten, .from = {}}.check() == errc::invalid_argument);
    CHECK_FALSE(rand::uniform<float>{.dst = ten, .from = rand::make_generator({.seed = 1, .offset = 7})}.check());
}

TEST_CASE("each distribution checks its own parameters")
{
    const auto g = rand::make_generator({});
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(rand::uniform<float>{.dst = {}, .from = g}.check() == errc::invalid_argument);
    CHECK(rand::normal<float>{.dst = ten, .from = g, .stddev = -1}.check() == errc::invalid_argument);
    CHECK(rand::normal<float>{.dst = ten, .from = g, .mean = nan}.check() == errc::invalid_argument);
    CHECK(rand::log_normal<float>{.dst = ten, .from = g, .stddev = nan}.check() == errc::invalid_argument);
    CHECK(rand::poisson{.dst = ten_words, .from = g, .lambda = 0}.check() == errc::invalid_argument);
    CHECK(rand::poisson{.dst = ten_words, .from = g, .lambda = nan}.check() == errc::invalid_argument);
    CHECK_FALSE(rand::normal<float>{.dst = ten, .from = g, .stddev = 0}.check());
    CHECK_FALSE(rand::poisson{.dst = ten_words, .from = g, .lambda = 400000}.check());
}

TEST_CASE("Sobol numbers fill whole dimensions, with words of their own size")
{
    const auto three = rand::make_generator({.algorithm = algorithm::sobol32, .dimensions = 3});
    CHECK(rand::uniform<float>{.dst = ten, .from = three}.check() == errc::length_mismatch);
    const auto five = rand::make_generator({.algorithm = algorithm::sobol32, .dimensions = 5});
    CHECK_FALSE(rand::uniform<float>{.dst = ten, .from = five}.check());
    CHECK_FALSE(rand::bits<std::uint32_t>{.dst = ten_words, .from = five}.check());
    const auto wide = rand::make_generator({.algorithm = algorithm::scrambled_sobol64});
    CHECK(rand::bits<std::uint32_t>{.dst = ten_words, .from = wide}.check() == errc::invalid_argument);
    CHECK_FALSE(rand::uniform<float>{.dst = ten, .from = wide}.check());
}

TEST_SUITE_END();

} // namespace test_rand_generator
