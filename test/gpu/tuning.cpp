#include "cuda/backend.hpp"
#include "cuda/blas/lt_plan.hpp"
#include "posix/environment.hpp"
#include "products.hpp"
#include "support/start_op.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/core/tune.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
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

/// Names a folder for the files of algorithms, as long as it exists. Devices read the variable when they are created,
/// backends when they first need it.
class cache_variable {
public:
    explicit cache_variable(const std::string& folder)
    {
        if (const char* const before = std::getenv(name))
            before_ = before;
        ::setenv(name, folder.c_str(), 1);
        (void)detail::copy_environment();
    }
    cache_variable(const cache_variable&) = delete;
    cache_variable& operator=(const cache_variable&) = delete;
    ~cache_variable()
    {
        if (before_)
            ::setenv(name, before_->c_str(), 1);
        else
            ::unsetenv(name);
        (void)detail::copy_environment();
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

/// A backend without a device, whose choices of algorithms can be seen.
class tuned_backend {
    template <class Ask>
    auto answer_of(Ask ask)
    {
        for (;;) {
            const int before = notifications_.load();
            if (auto answer = ask())
                return *std::move(answer);
            notifications_.wait(before);
        }
    }

public:
    using product = blas::matmul<bfloat16>;
    using stream = cuda::backend::stream;

    static constexpr std::uint64_t side = 1024;

    tuned_backend()
    {
        b_->listen({[](void* self) noexcept {
                        auto& n = static_cast<tuned_backend*>(self)->notifications_;
                        n.fetch_add(1);
                        n.notify_all();
                    },
                    this});
        const auto here = b_->enter();
        stream s = make_lane();
        for (void*& m : matrices_)
            m = answer_of([&]() -> std::optional<void*> {
                const auto made = b_->allocate(s, side * side * sizeof(bfloat16), memory_kind::device);
                REQUIRE_MESSAGE(made, made.error().message());
                return made.value() ? std::optional(made.value()) : std::nullopt;
            });
        finish(s);
    }
    tuned_backend(const tuned_backend&) = delete;
    tuned_backend& operator=(const tuned_backend&) = delete;

    ~tuned_backend()
    {
        const auto here = b_->enter();
        stream s = make_lane();
        for (void* const m : matrices_)
            b_->release(s, m, side * side * sizeof(bfloat16), memory_kind::device);
    }

    stream make_lane()
    {
        const auto here = b_->enter();
        return b_->make_stream(priority::normal).value();
    }

    tuning measure(stream& s)
    {
        const tune<product> op{op_};
        tuning made;
        bound_op o = bind(info_of<tune<product>>(), &op);
        o.reply = &made;
        start(s, o);
        return made;
    }

    /// The algorithm with which the product runs on a lane, and whether it comes from a measurement.
    std::pair<cublasLtMatmulAlgo_t, bool> choice_on(stream& s)
    {
        // The first one makes the plan.
        for (int i = 0; i < 2; ++i) {
            bound_op o = bind(info_of<product>(), &op_);
            start(s, o);
        }
        const auto here = b_->enter();
        bound_op o = bind(info_of<product>(), &op_);
        REQUIRE_FALSE(b_->find_code(o));
        const auto ready = b_->prepare(s, o);
        REQUIRE_MESSAGE(ready, ready.error().message());
        REQUIRE(ready.value() == readiness::ready);
        const auto& plan = *static_cast<const cuda::lt_plan*>(o.state);
        const std::pair made(plan.algorithm(), plan.is_tuned());
        CHECK_FALSE(b_->enqueue(s, o));
        finish(s);
        CHECK_FALSE(b_->finish(o));
        return made;
    }

private:
    /// The operands are A, B and D; the others are optional.
    bound_op bind(const op_info& info, const void* op)
    {
        operands_.assign(info.operands.size(), nullptr);
        std::ranges::copy(matrices_, operands_.begin());
        bound_op o;
        o.info = &info;
        o.op = op;
        o.operands = operands_.data();
        return o;
    }

    void start(stream& s, bound_op& o)
    {
        const auto here = b_->enter();
        const error_code failed = answer_of([&] { return test::try_start(*b_, s, o); });
        REQUIRE_MESSAGE(!failed, failed.message());
        finish(s);
        CHECK_FALSE(b_->finish(o));
    }

    void finish(stream& s)
    {
        cuda::backend::event end;
        REQUIRE_FALSE(b_->record(end, s));
        REQUIRE_FALSE(b_->synchronize(end));
    }

    std::atomic<int> notifications_ = 0;
    std::unique_ptr<cuda::backend> b_ = cuda::backend::create({}).value();
    std::vector<void*> matrices_ = std::vector<void*>(3);
    std::vector<void*> operands_;
    product op_{.a = {}, .b = {}, .d = {}, .m = side, .n = side, .k = side, .trans_a = transpose::yes};
};

bool same_algorithm(const cublasLtMatmulAlgo_t& one, const cublasLtMatmulAlgo_t& other)
{
    return std::memcmp(&one, &other, sizeof(one)) == 0;
}

} // namespace

TEST_SUITE_BEGIN("gpu tuning");

TEST_CASE("all lanes use the algorithm that was measured, and so does another context, which finds it in a file")
{
    const test::temporary_folder folder;
    const cache_variable cache(folder.path());
    cublasLtMatmulAlgo_t fastest;
    {
        tuned_backend b;
        auto first = b.make_lane(), second = b.make_lane(), third = b.make_lane();
        CHECK_FALSE(b.choice_on(first).second);
        CHECK_FALSE(b.choice_on(second).second);
        const auto made = b.measure(first);
        CHECK(made.candidates > 1);
        CHECK(made.best_us <= made.first_us);
        const auto [algorithm, is_tuned] = b.choice_on(first);
        CHECK(is_tuned);
        fastest = algorithm;
        // One that has used another algorithm, and one that has used none.
        for (auto* const lane : {&second, &third}) {
            const auto elsewhere = b.choice_on(*lane);
            CHECK(elsewhere.second);
            CHECK(same_algorithm(elsewhere.first, fastest));
        }
    }
    {
        tuned_backend later;
        for (int lane = 0; lane < 2; ++lane) {
            auto s = later.make_lane();
            const auto [algorithm, is_tuned] = later.choice_on(s);
            CHECK(is_tuned);
            CHECK(same_algorithm(algorithm, fastest));
        }
    }
    std::filesystem::remove_all(folder / "algorithms");
    tuned_backend without;
    auto s = without.make_lane();
    CHECK_FALSE(without.choice_on(s).second);
}

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
