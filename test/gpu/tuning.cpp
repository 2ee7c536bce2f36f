#include "products.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

// The measurement of the algorithms of cuBLASLt.
namespace {

using namespace coaccel;
using blas::transpose;
using test::await;
using test::gpu_fixture;
using test::random_numbers;
using test::run_listed;

/// Names a folder for the files of algorithms, as long as it exists. Devices read the variable when they are created.
class cache_variable {
public:
    explicit cache_variable(const std::string& folder)
    {
        if (const char* const before = std::getenv(name))
            before_ = before;
        ::setenv(name, folder.c_str(), 1);
    }
    cache_variable(const cache_variable&) = delete;
    cache_variable& operator=(const cache_variable&) = delete;
    ~cache_variable()
    {
        if (before_)
            ::setenv(name, before_->c_str(), 1);
        else
            ::unsetenv(name);
    }

private:
    static constexpr const char* name = "COACCEL_CACHE_DIR";
    std::optional<std::string> before_;
};

/// The shortest time of many products in succession.
template <class Op>
std::chrono::duration<double> time_of(gpu_fixture& f, const Op& op)
{
    using clock = std::chrono::steady_clock;
    auto best = clock::duration::max();
    for (int round = 0; round < 30; ++round) {
        op_list many;
        for (int i = 0; i < 50; ++i)
            many.add(op);
        const auto began = clock::now();
        REQUIRE(await(f.io, f.gpu.async_exec(std::move(many))));
        best = std::min(best, clock::now() - began);
    }
    return best;
}

} // namespace

TEST_SUITE_BEGIN("gpu tuning");

TEST_CASE("a tuned product is not slower, has the same result, and its operands are as before")
{
    constexpr std::size_t m = 384, n = 1000, k = 4096;
    const test::temporary_folder folder;
    const cache_variable cache(folder.path());
    const auto a = random_numbers<bfloat16>(m * k, 1), b = random_numbers<bfloat16>(k * n, 2);
    const auto previous = random_numbers<bfloat16>(m * n, 3, 4), bias = random_numbers<bfloat16>(m, 4, 4);
    blas::matmul<bfloat16> op{.a = {},
                              .b = {},
                              .d = {},
                              .m = m,
                              .n = n,
                              .k = k,
                              .beta = 0.5F,
                              .trans_a = transpose::yes,
                              .activation = blas::activation::relu};
    std::vector<bfloat16> expected;
    {
        gpu_fixture f;
        const auto da = f.upload(a), db = f.upload(b), dd = f.upload(previous), dbias = f.upload(bias);
        op.a = da;
        op.b = db;
        op.d = dd;
        op.bias = dbias;
        run_listed(f, op);
        expected = f.download(dd);
        const auto before = time_of(f, op);

        REQUIRE(await(f.io, f.gpu.async_write(dd, previous)));
        const auto tuned = await(f.io, f.gpu.async_tune(op));
        REQUIRE_MESSAGE(tuned, tuned.error().message());
        CHECK(tuned.value().candidates > 1);
        CHECK(tuned.value().best_us > 0);
        CHECK(tuned.value().best_us <= tuned.value().first_us);
        CHECK(f.download(da) == a);
        CHECK(f.download(db) == b);
        CHECK(f.download(dbias) == bias);
        CHECK(f.download(dd) == previous);

        run_listed(f, op);
        CHECK(test::greatest_distance(f.download(dd), expected) < test::product_bound<bfloat16>(k));
        CHECK(time_of(f, op) <= 1.2 * before);
    }
    CHECK_FALSE(std::filesystem::is_empty(folder.path()));
    // Another device gets the algorithm from the file.
    gpu_fixture f;
    const auto da = f.upload(a), db = f.upload(b), dd = f.upload(previous), dbias = f.upload(bias);
    op.a = da;
    op.b = db;
    op.d = dd;
    op.bias = dbias;
    run_listed(f, op);
    CHECK(test::greatest_distance(f.download(dd), expected) < test::product_bound<bfloat16>(k));
}

TEST_CASE("the measurements write neither a result of fp8 nor its greatest magnitude")
{
    constexpr std::size_t side = 512;
    gpu_fixture f;
    const auto a = f.upload(random_numbers<float8_e4m3>(side * side, 1));
    const auto b = f.upload(random_numbers<float8_e4m3>(side * side, 2));
    const auto previous = random_numbers<float8_e4m3>(side * side, 3);
    const auto d = f.upload(previous);
    const auto scale = f.upload(std::vector<float>{0.5F}), amax = f.upload(std::vector<float>{-1});
    const blas::matmul<float8_e4m3, float8_e4m3> op{.a = a,
                                                    .b = b,
                                                    .d = d,
                                                    .scale_a = scale,
                                                    .scale_d = scale,
                                                    .amax_d = amax,
                                                    .m = side,
                                                    .n = side,
                                                    .k = side,
                                                    .trans_a = transpose::yes};
    const auto tuned = await(f.io, f.gpu.async_tune(op));
    if (!tuned && test::lacks_fp8(tuned.error())) {
        MESSAGE("not run: " << tuned.error().message());
        return;
    }
    REQUIRE_MESSAGE(tuned, tuned.error().message());
    CHECK(tuned.value().candidates > 0);
    CHECK(f.download(d) == previous);
    CHECK(f.download(amax) == std::vector<float>{-1});
    CHECK(f.download(scale) == std::vector<float>{0.5F});
    run_listed(f, op);
    CHECK(f.download(amax)[0] > 0);
}

TEST_SUITE_END();
