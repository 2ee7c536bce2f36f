#include "support/device_fixture.hpp"
#include "support/prim.hpp"
#include "support/refusals.hpp"

#include <coaccel/ops/prim.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <string>

namespace test_ops_prim_compact {

// Ops that keep some elements, on any device.
namespace {

using namespace coaccel;
using test::as_double;
using test::device_fixture;
using test::elements;
using test::poisoned;
using test::run_listed;
using test::same_bytes;

using number_types = boost::mp11::mp_append<prim::floating_types, prim::integer_types>;

constexpr std::uint64_t sizes[] = {1, 2, 31, 700, 20001};

/// Equal numbers, compared as such, or two NaN.
template <class T>
bool equal(const T& a, const T& b)
{
    if constexpr (prim::integer<T>)
        return a == b;
    else
        return as_double(a) == as_double(b) || (test::is_nan(a) && test::is_nan(b));
}

/// Runs of random lengths up to `longest`, of few different values with special ones.
template <class T>
std::vector<T> runs(std::mt19937& random, std::uint64_t n, std::uint64_t longest)
{
    std::vector<T> made;
    while (made.size() < n) {
        const std::uint64_t left = std::min(n - made.size(), 1 + random() % longest);
        T x = static_cast<T>(static_cast<float>(random() % 3));
        if constexpr (prim::floating<T>) {
            const T special[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), T(-0.0f),
                                 T(-2.5f)};
            if (random() % 3 == 0)
                x = special[random() % std::size(special)];
        }
        made.insert(made.end(), left, x);
    }
    return made;
}

/// All elements different from their neighbours, equal ones, and runs.
template <class T>
std::vector<std::vector<T>> contents(std::mt19937& random, std::uint64_t n)
{
    std::vector<T> changing(n);
    for (std::uint64_t i = 0; i < n; ++i)
        changing[i] = static_cast<T>(static_cast<float>(i % 2));
    std::vector<std::vector<T>> made{changing, std::vector<T>(n, changing[0]), runs<T>(random, n, 5),
                                     runs<T>(random, n, 9000)};
    if constexpr (prim::floating<T>)
        made.emplace_back(n, std::numeric_limits<T>::quiet_NaN());
    return made;
}

/// The content of a result: `expected` as far as there is room, then zeros, then the poison behind the result.
template <class T>
std::size_t count_wrong(const std::vector<T>& got, const std::vector<T>& expected)
{
    std::size_t wrong = 0;
    const std::size_t room = got.size() - 1;
    std::vector<T> zero(1);
    std::memset(static_cast<void*>(zero.data()), 0, sizeof(T));
    for (std::size_t i = 0; i < room; ++i)
        wrong += !same_bytes(got[i], i < expected.size() ? expected[i] : zero[0]);
    return wrong + !same_bytes(got.back(), poisoned<T>(1)[0]);
}

/// Calls `run(fixture, random, n, room)` for each device, size, and number of elements of the result.
template <class Types, class Run>
void for_each_type_and_size(Run run)
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        test::for_each_type(Types{}, [&]<class T>() {
            CAPTURE(to_string(dtype_v<T>));
            std::mt19937 random(91);
            for (const std::uint64_t n : sizes)
                for (const std::uint64_t room : {n, n + 3, n / 3 + 1}) {
                    CAPTURE(n);
                    CAPTURE(room);
                    run.template operator()<T>(f, random, n, room);
                }
        });
    }
}

} // namespace

TEST_SUITE_BEGIN("prim compactions");

TEST_CASE("select keeps the elements whose mask is not zero, in their order")
{
    for_each_type_and_size<element_types>(
        []<class T>(device_fixture& f, std::mt19937& random, std::uint64_t n, std::uint64_t room) {
            const auto x = test::random_bits<T>(random, n);
            std::vector<std::uint8_t> some(n);
            std::ranges::generate(some, [&] { return static_cast<std::uint8_t>(random() % 2 * (random() % 256)); });
            std::vector<std::uint8_t> last(n);
            last.back() = 0x80;
            for (const auto& mask : {some, last, std::vector<std::uint8_t>(n), std::vector<std::uint8_t>(n, 1)}) {
                const auto from = f.upload(x);
                const auto where = f.upload(mask);
                const auto to = f.upload(poisoned<T>(room + 1));
                const auto count = f.upload(poisoned<std::uint64_t>(2));
                const auto ec = run_listed(
                    f, prim::select<T>{
                           .x = from, .mask = where, .y = to.ref().first(room), .count = count.ref().first(1), .n = n});
                REQUIRE_MESSAGE(!ec, ec.message());
                std::vector<T> expected;
                for (std::uint64_t i = 0; i < n; ++i)
                    if (mask[i] != 0)
                        expected.push_back(x[i]);
                CHECK(f.download(count) == std::vector<std::uint64_t>{expected.size(), poisoned<std::uint64_t>(1)[0]});
                CHECK(count_wrong(f.download(to), expected) == 0);
            }
        });
}

TEST_CASE("unique keeps the first element of each run, and run_length counts its elements")
{
    for_each_type_and_size<number_types>(
        []<class T>(device_fixture& f, std::mt19937& random, std::uint64_t n, std::uint64_t room) {
            for (const auto& x : contents<T>(random, n)) {
                const auto from = f.upload(x);
                const auto to = f.upload(poisoned<T>(room + 1));
                const auto lengths = f.upload(poisoned<std::uint64_t>(room + 1));
                const auto count = f.upload(poisoned<std::uint64_t>(2));
                auto ec = run_listed(
                    f, prim::unique<T>{.x = from, .y = to.ref().first(room), .count = count.ref().first(1), .n = n});
                REQUIRE_MESSAGE(!ec, ec.message());
                auto expected = x;
                expected.erase(std::unique(expected.begin(), expected.end(), equal<T>), expected.end());
                const std::vector<std::uint64_t> counts{expected.size(), poisoned<std::uint64_t>(1)[0]};
                CHECK(f.download(count) == counts);
                CHECK(count_wrong(f.download(to), expected) == 0);

                ec = run_listed(f, prim::run_length<T>{.x = from,
                                                       .values = to.ref().first(room),
                                                       .lengths = lengths.ref().first(room),
                                                       .count = count.ref().first(1),
                                                       .n = n});
                REQUIRE_MESSAGE(!ec, ec.message());
                CHECK(f.download(count) == counts);
                CHECK(count_wrong(f.download(to), expected) == 0);
                // The runs, one after another, are the elements.
                std::vector<std::uint64_t> long_runs;
                for (std::uint64_t at = 0; const T& value : expected) {
                    const auto end = std::find_if(x.begin() + static_cast<std::ptrdiff_t>(at), x.end(),
                                                  [&](const T& other) { return !equal(value, other); });
                    long_runs.push_back(static_cast<std::uint64_t>(end - x.begin()) - at);
                    at += long_runs.back();
                }
                CHECK(std::accumulate(long_runs.begin(), long_runs.end(), std::uint64_t(0)) == n);
                CHECK(count_wrong(f.download(lengths), long_runs) == 0);
            }
        });
}

TEST_CASE("sorted elements become different ones, with one NaN and one zero")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        constexpr float nan = std::numeric_limits<float>::quiet_NaN();
        const auto x = f.upload(std::vector<float>{0, nan, 3, -0.0f, 1, -nan, 3, 1});
        const auto sorted = f.upload(std::vector<float>(8));
        const auto values = f.upload(std::vector<float>(8));
        const auto lengths = f.upload(std::vector<std::uint64_t>(8));
        const auto count = f.upload(std::vector<std::uint64_t>(1));
        op_list ops;
        ops.add(prim::sort<float>{.x = x, .y = sorted, .n = 8});
        ops.add(prim::run_length<float>{.x = sorted, .values = values, .lengths = lengths, .count = count, .n = 8});
        REQUIRE_FALSE(f.error_of(ops));
        CHECK(f.download(count)[0] == 4);
        const auto different = f.download(values);
        CHECK(std::vector<float>(different.begin(), different.begin() + 3) == std::vector<float>{0, 1, 3});
        CHECK(test::is_nan(different[3]));
        CHECK(f.download(lengths) == std::vector<std::uint64_t>{2, 2, 2, 2, 0, 0, 0, 0});
    }
}

TEST_CASE("a plan has the elements kept and their number as outputs, without those of an earlier run")
{
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        constexpr std::uint64_t n = 20000;
        plan_builder b("positive");
        const auto x = b.input<float>(n);
        const auto zero = b.constant<float>(std::vector<float>{0});
        const auto mask = b.scratch<std::uint8_t>(n);
        const auto y = b.output<float>(n);
        const auto count = b.output<std::uint64_t>(1);
        b.add(prim::compare<float>{.a = x,
                                   .b = zero,
                                   .c = mask,
                                   .what = prim::comparison::greater,
                                   .shape = prim::layout<3>::vector(n).scalar(1)});
        b.add(prim::select<float>{.x = x, .mask = mask, .y = y, .count = count, .n = n});
        const auto described = b.finish();
        REQUIRE_MESSAGE(described, described.error().message());
        const auto p = test::await(f.io, f.gpu.async_load(described.value()));
        REQUIRE_MESSAGE(p, p.error().message());
        for (const std::uint64_t each : {2, 7}) {
            std::vector<float> values(n, -1.0f);
            std::vector<float> expected;
            for (std::uint64_t i = 0; i < n; i += each)
                expected.push_back(values[i] = static_cast<float>(i + 1));
            std::vector<float> kept(n);
            std::vector<std::uint64_t> how_many(1);
            REQUIRE(test::await(f.io, p.value().async_run(from(values), to(kept), to(how_many))));
            CHECK(how_many[0] == expected.size());
            expected.resize(n);
            CHECK(kept == expected);
        }
    }
}

TEST_CASE("refusals of compactions")
{
    using select = prim::select<float>;
    using unique = prim::unique<float>;
    using runs = prim::run_length<float>;
    const auto x = elements(12, 0);
    const auto y = elements(4, 1);
    const auto mask = elements<std::uint8_t>(12, 2);
    const auto count = elements<std::uint64_t>(1, 3);
    const auto lengths = elements<std::uint64_t>(4, 4);
    const struct {
        error_code got;
        errc code;
        std::string message;
    } rows[] = {
        {select{.x = x, .mask = mask, .y = y, .count = count}.check(), errc::invalid_argument, "prim.select: n is 0"},
        {select{.x = x, .mask = mask, .y = y, .count = count, .n = 13}.check(), errc::out_of_bounds,
         "prim.select: x has 12 elements, needs 13"},
        {select{.x = x, .mask = mask.first(11), .y = y, .count = count, .n = 12}.check(), errc::out_of_bounds,
         "prim.select: mask has 11 elements, needs 12"},
        {select{.x = x, .mask = mask, .y = y.first(0), .count = count, .n = 12}.check(), errc::invalid_argument,
         "prim.select: y has 0 elements"},
        {select{.x = x, .mask = mask, .y = y, .count = count.first(0), .n = 12}.check(), errc::length_mismatch,
         "prim.select: count has 0 elements, must have 1"},
        {unique{.x = x, .y = y, .count = elements<std::uint64_t>(2, 3), .n = 12}.check(), errc::length_mismatch,
         "prim.unique: count has 2 elements, must have 1"},
        {unique{.x = x, .y = y, .count = count}.check(), errc::invalid_argument, "prim.unique: n is 0"},
        {unique{.x = x, .y = y, .count = count, .n = 20}.check(), errc::out_of_bounds,
         "prim.unique: x has 12 elements, needs 20"},
        {runs{.x = x, .values = y, .lengths = lengths.first(3), .count = count, .n = 12}.check(), errc::length_mismatch,
         "prim.run_length: lengths has 3 elements, values 4"},
        {runs{.x = x, .values = y.first(0), .lengths = lengths, .count = count, .n = 12}.check(),
         errc::invalid_argument, "prim.run_length: values has 0 elements"},
    };
    for (const auto& r : rows) {
        CHECK(r.got.message() == r.message);
        CHECK_MESSAGE(r.got == r.code, r.message);
    }
    for (const auto& options : test::devices_under_test()) {
        device_fixture f(options);
        const auto all = f.upload(std::vector<float>(12));
        const auto one = f.upload(std::vector<std::uint64_t>(1));
        CHECK(run_listed(f, unique{.x = all, .y = all, .count = one, .n = 12}) == errc::overlap);
    }
}

TEST_SUITE_END();

} // namespace test_ops_prim_compact
