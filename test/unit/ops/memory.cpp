#include "support/dense.hpp"
#include "support/device_fixture.hpp"

#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string_view>

namespace test_ops_memory {

namespace {

using namespace coaccel;
using test::device_fixture;

/// Elements of any type with random bits: memory ops move bits and do not interpret values.
template <class T>
std::vector<T> random_elements(std::size_t count, test::engine& random)
{
    std::vector<T> data(count);
    for (auto& e : data) {
        unsigned char bytes[sizeof(T)];
        for (auto& b : bytes)
            b = static_cast<unsigned char>(random());
        std::memcpy(&e, bytes, sizeof(T));
    }
    return data;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void check_fill(device_fixture& f, test::engine& random)
{
    CAPTURE(to_string(dtype_v<T>));
    for (const std::size_t count : {1, 2, 13, 257}) {
        CAPTURE(count);
        auto expected = random_elements<T>(count + 4, random);
        const auto value = random_elements<T>(1, random)[0];
        const auto b = f.upload(expected);
        REQUIRE(f.exec(memory::fill<T>{.dst = b.subspan(2, count), .value = value}));
        for (std::size_t i = 0; i < count; ++i)
            std::memcpy(&expected[2 + i], &value, sizeof(T));
        CHECK(same(f.download(b), expected));
    }
}

template <class T>
void check_copy(device_fixture& f, test::engine& random)
{
    CAPTURE(to_string(dtype_v<T>));
    for (const std::size_t count : {1, 3, 64, 129}) {
        CAPTURE(count);
        const auto source = random_elements<T>(count + 5, random);
        auto expected = random_elements<T>(count + 3, random);
        const auto src = f.upload(source);
        const auto dst = f.upload(expected);
        REQUIRE(f.exec(memory::copy<T>{.src = src.subspan(4, count), .dst = dst.subspan(1, count)}));
        std::memcpy(expected.data() + 1, source.data() + 4, count * sizeof(T));
        CHECK(same(f.download(dst), expected));
        CHECK(same(f.download(src), source));
    }
}

template <class... Ts>
void check_all(device_fixture& f, test::engine& random, type_list<Ts...>)
{
    (check_fill<Ts>(f, random), ...);
    (check_copy<Ts>(f, random), ...);
}

} // namespace

TEST_SUITE_BEGIN("memory ops");

TEST_CASE("fill and copy move every bit of every element type, and nothing beside")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    test::engine random(seed);
    for (const auto mode : test::host_modes) {
        device_fixture f(mode);
        check_all(f, random, element_types{});
    }
}

TEST_CASE("fill without a value writes zeros")
{
    for (const auto mode : test::host_modes) {
        device_fixture f(mode);
        const auto b = f.upload(std::vector<std::int32_t>{1, 2, 3});
        REQUIRE(f.exec(memory::fill<std::int32_t>{.dst = b}));
        CHECK(f.download(b) == std::vector<std::int32_t>{0, 0, 0});
    }
}

TEST_CASE("copy works within one buffer where the ranges do not overlap")
{
    for (const auto mode : test::host_modes) {
        device_fixture f(mode);
        const auto b = f.upload(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
        using op = memory::copy<std::int32_t>;
        REQUIRE(f.exec(op{.src = b.subspan(3, 3), .dst = b.subspan(0, 3)}));
        CHECK(f.download(b) == std::vector<std::int32_t>{4, 5, 6, 4, 5, 6});
        CHECK(f.error_of(op{.src = b.subspan(1, 3), .dst = b.subspan(0, 3)}) == errc::overlap);
        CHECK(f.error_of(op{.src = b, .dst = b}) == errc::overlap);
        CHECK(f.download(b) == std::vector<std::int32_t>{4, 5, 6, 4, 5, 6});
    }
}

TEST_CASE("an invalid op fails with its error and leaves the device as it was")
{
    for (const auto mode : test::host_modes) {
        device_fixture f(mode);
        const auto b = f.upload(std::vector<float>{1, 2, 3, 4});
        const auto other = f.upload(std::vector<float>{5, 6});
        using fill = memory::fill<float>;
        using copy = memory::copy<float>;
        CHECK(f.error_of(fill{.dst = b.subspan(1, 0)}) == errc::invalid_argument);
        CHECK(f.error_of(fill{}) == errc::invalid_argument);
        CHECK(f.error_of(fill{.dst = b.subspan(1, 4)}) == errc::out_of_bounds);
        CHECK(f.error_of(fill{.dst = b.subspan(5, 1)}) == errc::out_of_bounds);
        CHECK(f.error_of(copy{.src = other, .dst = b}) == errc::length_mismatch);
        CHECK(f.error_of(copy{.src = buffer<float>(), .dst = b}) == errc::invalid_argument);
        auto raw = b.ref().raw();
        raw.type = dtype::i32;
        CHECK(f.error_of(memory::fill<std::int32_t>{.dst = ref<std::int32_t>::from_raw(raw)}) == errc::wrong_dtype);
        CHECK(f.error_of(fill{.dst = ref<float>::from_raw(raw)}) == errc::wrong_dtype);
        CHECK(f.download(b) == std::vector<float>{1, 2, 3, 4});
    }
}

TEST_SUITE_END();

} // namespace test_ops_memory
