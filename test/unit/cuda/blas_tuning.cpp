#include "blas_fixture.hpp"
#include "cache_folder.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/driver/error.hpp"
#include "product_clock.hpp"

#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace test_cuda_blas_tuning {

// The choice among the algorithms of cuBLASLt by measurements.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using algorithm = test::fake_cublaslt::algorithm;
using product = blas::matmul<float>;

constexpr algorithm refused{.status = CUBLAS_STATUS_NOT_SUPPORTED};

algorithm that_takes(std::chrono::microseconds duration)
{
    return {.duration = duration};
}

struct tuning_fixture : test::blas_fixture {
    explicit tuning_fixture(std::vector<algorithm> all) { start(std::move(all)); }
    ~tuning_fixture() { end(); }

    /// Begins again with another context and other buffers, as another process would.
    void start(std::vector<algorithm> all, const cuda_options& how = {})
    {
        lt.set_algorithms(std::move(all));
        make(how, clock.api());
        a = upload<float>({1, 2, 3, 4});
        b_matrix = upload(std::vector<float>(100, 1));
        d = upload(std::vector<float>(100, 7));
    }

    /// D = A * B with A of 2 by 2, B of 2 by n.
    product with(std::uint64_t n) const { return {.a = a, .b = b_matrix, .d = d, .m = 2, .n = n, .k = 2}; }

    template <class Op>
    result<tuning> measure(const Op& op)
    {
        tuning made;
        if (auto ec = run(tune<Op>{op}, &made))
            return ec;
        return made;
    }

    /// The number of the algorithm with which the op runs.
    template <class Op>
    int algorithm_of(const Op& op)
    {
        const auto done = run(op);
        REQUIRE_MESSAGE(!done, done.message());
        return lt.products().back().algorithm;
    }

    /// As above, on another lane.
    int algorithm_of(const product& op, cuda::backend::stream other)
    {
        std::swap(*lane, other);
        const int used = algorithm_of(op);
        std::swap(*lane, other);
        return used;
    }

    cuda::backend::stream make_lane()
    {
        const auto here = b->enter();
        return b->make_stream(priority::normal).value();
    }

    test::cache_folder folder;
    test::product_clock clock{gpu, lt};
    ref<float> a, b_matrix, d;
};

const std::vector<algorithm> second_is_fastest{that_takes(300us), that_takes(100us), that_takes(200us)};

} // namespace

TEST_SUITE_BEGIN("tuning");

TEST_CASE("the algorithms are measured, and later ops use the fastest one")
{
    tuning_fixture f(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    const auto made = f.measure(f.with(2)).value();
    CHECK(f.lt.wanted() == 32);
    CHECK(made.candidates == 3);
    CHECK(made.first_us == doctest::Approx(300));
    CHECK(made.best_us == doctest::Approx(100));
    const int choices = f.lt.calls("cublasLtMatmulAlgoGetHeuristic");
    CHECK(f.algorithm_of(f.with(2)) == 1);
    // The plan is that of the measurements.
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == choices);
    CHECK(f.lt.products().back().thread == std::this_thread::get_id());
    CHECK(f.lt.calls("cublasLtMatmulAlgoCheck") == 0);
    // Another problem has an algorithm of its own.
    CHECK(f.algorithm_of(f.with(3)) == 0);
}

TEST_CASE("another thread measures, and it launches each algorithm several times")
{
    tuning_fixture f({that_takes(150us), that_takes(1ms)});
    REQUIRE(f.measure(f.with(2)));
    int first = 0, second = 0;
    for (const auto& p : f.lt.products()) {
        CHECK(p.thread != std::this_thread::get_id());
        ++(p.algorithm == 0 ? first : second);
    }
    // One product to load the kernel, one to see how long it takes, and then 2 ms of them.
    CHECK(first == 2 + 13);
    // It is not measured further, because it takes more than twice as long.
    CHECK(second == 2);
    // The heuristic is asked once, for all of them.
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == 1);
}

TEST_CASE("the time of a launch drops no algorithm, because all are launched equally often")
{
    // A single product takes 23 us with the first algorithm and 22 us with the second one.
    tuning_fixture f({that_takes(3us), that_takes(2us)});
    f.clock.set_launch_time(20us);
    const auto made = f.measure(f.with(2)).value();
    CHECK(made.candidates == 2);
    CHECK(made.first_us == doctest::Approx(3 + 20.0 / 50));
    CHECK(made.best_us == doctest::Approx(2 + 20.0 / 50));
    int first = 0, second = 0;
    for (const auto& p : f.lt.products())
        ++(p.algorithm == 0 ? first : second);
    CHECK(first == 2 + 50);
    CHECK(second == first);
    CHECK(f.algorithm_of(f.with(2)) == 1);
}

TEST_CASE("an algorithm that is slower than the first one, but not twice as slow, is measured as often")
{
    tuning_fixture f({that_takes(50us), that_takes(20us), that_takes(90us), that_takes(110us)});
    REQUIRE(f.measure(f.with(2)));
    std::vector<int> counts(4);
    for (const auto& p : f.lt.products())
        ++counts[static_cast<std::size_t>(p.algorithm)];
    CHECK(counts == std::vector<int>{2 + 40, 2 + 40, 2 + 40, 2});
    CHECK(f.algorithm_of(f.with(2)) == 1);
}

TEST_CASE("the first algorithm is kept unless another one is clearly faster")
{
    struct row {
        std::vector<algorithm> all;
        int best;
        float best_us;
    };
    const row rows[] = {{{that_takes(1000us), that_takes(980us)}, 0, 1000},
                        {{that_takes(1000us), that_takes(971us)}, 0, 1000},
                        {{that_takes(1000us), that_takes(960us)}, 1, 960},
                        // Among the faster ones, the fastest.
                        {{that_takes(1000us), that_takes(960us), that_takes(955us), that_takes(956us)}, 2, 955}};
    for (const auto& r : rows) {
        CAPTURE(r.best_us);
        tuning_fixture f(r.all);
        const auto made = f.measure(f.with(2)).value();
        CHECK(made.first_us == doctest::Approx(1000));
        CHECK(made.best_us == doctest::Approx(r.best_us));
        CHECK(f.algorithm_of(f.with(2)) == r.best);
    }
}

TEST_CASE("a product that adds to D is measured in place, and one with another C is not")
{
    tuning_fixture f(second_is_fastest);
    auto op = f.with(2);
    op.beta = 1;
    REQUIRE(f.measure(op));
    for (const auto& p : f.lt.products())
        CHECK(p.c_address == p.d_address);
    const auto before = f.lt.products().size();
    const auto c = f.upload<float>({5, 6, 7, 8});
    op.c = c;
    REQUIRE(f.measure(op));
    const auto products = f.lt.products();
    for (std::size_t i = before; i < products.size(); ++i)
        CHECK(products[i].c_address == f.buffers[c.raw().slot].first);
}

TEST_CASE("later ops of other lanes use the fastest algorithm, also if they have used another one")
{
    tuning_fixture f(second_is_fastest);
    const auto familiar = f.make_lane(), fresh = f.make_lane();
    CHECK(f.algorithm_of(f.with(2), familiar) == 0);
    CHECK(f.algorithm_of(f.with(3), familiar) == 0);
    REQUIRE(f.measure(f.with(2)));
    CHECK(f.algorithm_of(f.with(2), familiar) == 1);
    CHECK(f.algorithm_of(f.with(3), familiar) == 0);
    CHECK(f.algorithm_of(f.with(2), fresh) == 1);
    // Each lane has asked once for the algorithm.
    CHECK(f.lt.calls("cublasLtMatmulAlgoCheck") == 2);
    CHECK(f.algorithm_of(f.with(2), familiar) == 1);
    CHECK(f.algorithm_of(f.with(2), fresh) == 1);
    CHECK(f.lt.calls("cublasLtMatmulAlgoCheck") == 2);
}

TEST_CASE("the plans of other problems stay when an algorithm is tuned")
{
    tuning_fixture f(second_is_fastest);
    const auto other = f.make_lane();
    for (const std::uint64_t n : {2, 3, 4}) {
        CHECK(f.algorithm_of(f.with(n)) == 0);
        CHECK(f.algorithm_of(f.with(n), other) == 0);
    }
    REQUIRE(f.measure(f.with(2)));
    const int choices = f.lt.calls("cublasLtMatmulAlgoGetHeuristic");
    for (const std::uint64_t n : {3, 4}) {
        CHECK(f.algorithm_of(f.with(n)) == 0);
        CHECK(f.algorithm_of(f.with(n), other) == 0);
    }
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == choices);
    CHECK(f.algorithm_of(f.with(2)) == 1);
    CHECK(f.algorithm_of(f.with(2), other) == 1);
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == choices);
}

TEST_CASE("an op that has been prepared keeps its algorithm, and later ones use the fastest one")
{
    tuning_fixture f(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    const auto op = f.with(2);
    bound_op prepared = f.bind(op);
    auto addresses = f.addresses;
    prepared.operands = addresses.data();
    {
        const auto here = f.b->enter();
        REQUIRE_FALSE(f.b->find_code(prepared));
        REQUIRE(f.b->prepare(*f.lane, prepared).value() == readiness::ready);
    }
    REQUIRE(f.measure(f.with(2)));
    CHECK(f.algorithm_of(f.with(2)) == 1);
    const auto here = f.b->enter();
    CHECK_FALSE(f.b->enqueue(*f.lane, prepared));
    CHECK(f.lt.products().back().algorithm == 0);
    REQUIRE_FALSE(f.finish_stream());
    CHECK_FALSE(f.b->finish(prepared));
    CHECK(f.algorithm_of(f.with(2)) == 1);
}

TEST_CASE("an op can be tuned again")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    CHECK(f.algorithm_of(f.with(2)) == 1);
    f.lt.set_algorithms({that_takes(300us), that_takes(100us), that_takes(50us)});
    CHECK(f.measure(f.with(2)).value().best_us == doctest::Approx(50));
    CHECK(f.algorithm_of(f.with(2)) == 2);
}

TEST_CASE("operands keep their contents")
{
    tuning_fixture f(second_is_fastest);
    const auto c = f.upload<float>({5, 6, 7, 8}), bias = f.upload<float>({9, 10});
    // The previous D is added.
    auto op = f.with(2);
    op.beta = 1;
    op.bias = bias;
    REQUIRE(f.measure(op));
    op.c = c;
    op.ldd = 3;
    REQUIRE(f.measure(op));
    op.batch = 4;
    op.stride_d = 11;
    REQUIRE(f.measure(op));
    CHECK(f.look(f.a) == std::vector<float>{1, 2, 3, 4});
    CHECK(f.look(f.b_matrix) == std::vector<float>(100, 1));
    CHECK(f.look(f.d) == std::vector<float>(100, 7));
    CHECK(f.look(c) == std::vector<float>{5, 6, 7, 8});
    CHECK(f.look(bias) == std::vector<float>{9, 10});
    for (const auto& p : f.lt.products())
        CHECK(p.d_address != f.buffers[f.d.raw().slot].first);
}

TEST_CASE("the greatest magnitude keeps its value")
{
    tuning_fixture f(second_is_fastest);
    using narrow = blas::matmul<float8_e4m3, float8_e4m3>;
    const auto a = f.upload(std::vector<float8_e4m3>(256)), b = f.upload(std::vector<float8_e4m3>(256));
    const auto d = f.upload(std::vector<float8_e4m3>(256));
    const auto amax = f.upload<float>({-3});
    const narrow op{.a = a, .b = b, .d = d, .amax_d = amax, .m = 16, .n = 16, .k = 16, .trans_a = blas::transpose::yes};
    CHECK(f.measure(op).value().candidates == 3);
    const auto own = f.buffers[amax.raw().slot].first;
    for (const auto& p : f.lt.products())
        CHECK(p.how.attributes.get<void*>(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER) != own);
    CHECK(f.algorithm_of(op) == 1);
    CHECK(f.lt.products().back().how.attributes.get<void*>(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER) == own);
}

TEST_CASE("the memory of the measurements is given back")
{
    tuning_fixture f(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    const auto used = f.memory().used;
    const auto events = f.gpu.events();
    REQUIRE(f.measure(f.with(2)));
    REQUIRE(f.measure(f.with(50)));
    REQUIRE(f.measure(f.with(3)));
    CHECK(f.memory().used == used);
    CHECK(f.gpu.events() == events);
}

TEST_CASE("the memory of the measurements is that of the elements of D")
{
    tuning_fixture f(second_is_fastest);
    const auto a = f.upload(std::vector<float8_e4m3>(4096)), b = f.upload(std::vector<float8_e4m3>(4096));
    const auto used_for = [&]<class D>(const ref<D>& d) {
        const blas::matmul<float8_e4m3, D> op{
            .a = a, .b = b, .d = d, .m = 64, .n = 64, .k = 64, .trans_a = blas::transpose::yes};
        f.algorithm_of(op);
        const auto before = f.memory();
        REQUIRE(before.high_water == before.used);
        REQUIRE(f.measure(op));
        CHECK(f.memory().used == before.used);
        const auto more = f.memory().high_water - before.used;
        // Up to the new mark, so that it is the mark of the next one, too.
        (void)f.upload(std::vector<std::int8_t>(more));
        return more;
    };
    CHECK(used_for(f.upload(std::vector<float8_e4m3>(4096))) == 4096);
    CHECK(used_for(f.upload(std::vector<bfloat16>(4096))) == 2 * 4096);
    CHECK(used_for(f.upload(std::vector<float>(4096))) == 4 * 4096);
}

TEST_CASE("a refused algorithm is skipped")
{
    const algorithm impossible{.found = CUBLAS_STATUS_NOT_SUPPORTED};
    tuning_fixture f({refused,
                      impossible,
                      that_takes(300us),
                      {.status = CUBLAS_STATUS_INVALID_VALUE},
                      that_takes(200us),
                      {.status = CUBLAS_STATUS_ARCH_MISMATCH}});
    const auto made = f.measure(f.with(2)).value();
    CHECK(made.candidates == 2);
    CHECK(made.first_us == doctest::Approx(300));
    CHECK(made.best_us == doctest::Approx(200));
    CHECK(f.algorithm_of(f.with(2)) == 4);
}

TEST_CASE("algorithms that need a larger workspace are not measured")
{
    tuning_fixture f({});
    cuda_options how;
    how.blas_workspace = 4096;
    f.start(
        {that_takes(300us), {.duration = 10us, .workspace_bytes = 4097}, {.duration = 20us, .workspace_bytes = 4096}},
        how);
    CHECK(f.measure(f.with(2)).value().candidates == 2);
    CHECK(f.algorithm_of(f.with(2)) == 2);
}

TEST_CASE("without an algorithm, the op is refused with its sizes")
{
    for (const auto& all : {std::vector<algorithm>{}, std::vector<algorithm>{{.found = CUBLAS_STATUS_NOT_SUPPORTED}},
                            std::vector<algorithm>{refused, refused}}) {
        tuning_fixture f(all);
        const auto made = f.measure(f.with(3));
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::unsupported_op);
        CHECK(made.error().message() ==
              "blas.matmul<f32 from f32> tuned: cuBLASLt has no algorithm for m 2, n 3, k 2, lda 2, ldb 2, ldd 2, "
              "batch 1, a aligned to 256 bytes, b to 256, d to 256, on this GPU");
        f.lt.set_algorithms(second_is_fastest);
        CHECK(f.algorithm_of(f.with(3)) == 0);
        CHECK(f.measure(f.with(3)).value().candidates == 3);
        CHECK(f.algorithm_of(f.with(3)) == 1);
    }
}

TEST_CASE("if all algorithms are refused, the error is that of the first one")
{
    const algorithm invalid{.status = CUBLAS_STATUS_INVALID_VALUE}, foreign{.status = CUBLAS_STATUS_ARCH_MISMATCH};
    tuning_fixture f({invalid, foreign, refused});
    CHECK(f.measure(f.with(2)).error() == cuda::make_error(CUBLAS_STATUS_INVALID_VALUE));
    f.lt.set_algorithms({foreign, invalid});
    CHECK(f.measure(f.with(2)).error() == cuda::make_error(CUBLAS_STATUS_ARCH_MISMATCH));
    f.lt.set_algorithms({refused, invalid});
    CHECK(f.measure(f.with(2)).error() == errc::unsupported_op);
    f.lt.set_algorithms(second_is_fastest);
    CHECK(f.measure(f.with(2)).value().candidates == 3);
}

TEST_CASE("an error of cuBLASLt ends the measurements, and a broken handle is replaced")
{
    for (const auto status : {CUBLAS_STATUS_EXECUTION_FAILED, CUBLAS_STATUS_INTERNAL_ERROR}) {
        CAPTURE(status);
        tuning_fixture f({that_takes(300us), {.status = status}, that_takes(100us)});
        CHECK(f.measure(f.with(2)).error() == cuda::make_error(status));
        for (const auto& p : f.lt.products())
            CHECK(p.algorithm < 2);
        CHECK(f.algorithm_of(f.with(2)) == 0);
        CHECK(f.lt.calls("cublasLtCreate") == (status == CUBLAS_STATUS_INTERNAL_ERROR ? 2 : 1));
        f.lt.set_algorithms(second_is_fastest);
        REQUIRE(f.measure(f.with(2)));
        CHECK(f.algorithm_of(f.with(2)) == 1);
    }
}

TEST_CASE("a failed preparation of the measurements fails one op")
{
    for (const char* step :
         {"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
          "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"})
        for (const int nth : {1, 2}) {
            CAPTURE(step);
            CAPTURE(nth);
            tuning_fixture f(second_is_fastest);
            f.lt.fail(step, CUBLAS_STATUS_EXECUTION_FAILED, nth);
            const auto made = f.measure(f.with(2));
            if (f.lt.calls(step) < nth)
                continue;
            REQUIRE_FALSE(made);
            CHECK(made.error() == cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
            CHECK(f.lt.alive() <= 1);
            CHECK(f.measure(f.with(2)).value().candidates == 3);
            CHECK(f.algorithm_of(f.with(2)) == 1);
        }
}

TEST_CASE("an error of the driver ends the measurements, and the next ones succeed")
{
    for (const char* call : {"cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime"})
        for (const int nth : {1, 2, 3, 4}) {
            CAPTURE(call);
            CAPTURE(nth);
            tuning_fixture f(second_is_fastest);
            CHECK(f.algorithm_of(f.with(2)) == 0);
            const auto used = f.memory().used;
            const auto events = f.gpu.events();
            f.gpu.fail(call, CUDA_ERROR_INVALID_VALUE, nth);
            const auto made = f.measure(f.with(2));
            f.gpu.forgive();
            // There are two events.
            if (std::string(call) == "cuEventCreate" && nth > 2) {
                CHECK(made);
                continue;
            }
            REQUIRE_FALSE(made);
            CHECK(made.error() == cuda::make_error(CUDA_ERROR_INVALID_VALUE));
            CHECK(f.memory().used == used);
            CHECK(f.gpu.events() == events);
            // Nothing was kept.
            CHECK(f.algorithm_of(f.with(2)) == 0);
            CHECK(f.measure(f.with(2)).value().candidates == 3);
            CHECK(f.algorithm_of(f.with(2)) == 1);
        }
}

TEST_CASE("measurements wait for their memory, and fail without it")
{
    tuning_fixture f(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    // Another attempt follows on the thread pool.
    f.gpu.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY, 1);
    CHECK(f.measure(f.with(2)).value().candidates == 3);
    f.gpu.fail_from("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
    const auto made = f.measure(f.with(40));
    f.gpu.forgive();
    REQUIRE_FALSE(made);
    CHECK(made.error() == errc::out_of_memory);
    CHECK(f.measure(f.with(40)).value().candidates == 3);
}

TEST_CASE("a context that dies while it measures ends the op, and nothing is destroyed")
{
    for (const int nth : {1, 2, 5, 20}) {
        CAPTURE(nth);
        tuning_fixture f(second_is_fastest);
        CHECK(f.algorithm_of(f.with(2)) == 0);
        f.gpu.kill_at(CUDA_ERROR_ILLEGAL_ADDRESS, nth);
        const auto made = f.measure(f.with(2));
        REQUIRE_FALSE(made);
        CHECK(made.error() == cuda::make_error(CUDA_ERROR_ILLEGAL_ADDRESS));
        CHECK(f.b->dead());
        f.b.reset();
        CHECK(f.lt.calls("cublasLtDestroy") == 0);
        CHECK(f.lt.calls("cublasLtMatmulDescDestroy") == 0);
        CHECK(f.folder.files().empty());
    }
}

TEST_CASE("after an abort, no further product is measured")
{
    tuning_fixture f(second_is_fastest);
    int launched = 0;
    f.lt.before_products([&](CUstream) {
        if (++launched == 5)
            f.b->abort();
    });
    const auto made = f.measure(f.with(2));
    REQUIRE_FALSE(made);
    CHECK(made.error() == errc::context_lost);
    // Those that were launched together are not divided.
    CHECK(f.lt.products().size() == 2 + 6);
    CHECK(f.folder.files().empty());
}

namespace {

/// Waits for a state that another thread will reach.
template <class Reached>
void wait_until(Reached reached)
{
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!reached()) {
        REQUIRE(std::chrono::steady_clock::now() < end);
        std::this_thread::yield();
    }
}

/// The device does not begin with the next product before `open`.
class first_product_waits {
public:
    explicit first_product_waits(tuning_fixture& f)
    {
        f.lt.before_products([this, &f](CUstream s) {
            if (!launched_.exchange(true))
                f.gpu.block(s, [this] { return open_.load(); });
        });
    }

    bool launched() const { return launched_; }
    void open() { open_ = true; }

private:
    std::atomic<bool> launched_ = false, open_ = false;
};

} // namespace

TEST_CASE("measurements that hang are seen from when the device begins with them")
{
    using time_point = std::chrono::steady_clock::time_point;
    tuning_fixture f(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    first_product_waits blocked(f);
    const auto began = std::chrono::steady_clock::now();
    f.gpu.hold(f.lane->state().native);
    tuning made;
    const tune<product> op{f.with(2)};
    const auto here = f.b->enter();
    bound_op o = f.bind(op);
    o.reply = &made;
    CHECK_FALSE(test::try_start(*f.b, *f.lane, o).has_value());
    // Earlier work on the stream counts by itself.
    wait_until([&] { return f.b->waiting_since().has_value(); });
    CHECK(f.b->waiting_since() == time_point::max());
    f.gpu.let_go(f.lane->state().native);
    wait_until([&] { return f.b->waiting_since() != time_point::max(); });
    const auto since = f.b->waiting_since();
    REQUIRE(since.has_value());
    CHECK(*since >= began);
    CHECK(*since <= std::chrono::steady_clock::now());
    blocked.open();
    CHECK_FALSE(f.repeat_until_answered([&] { return test::try_start(*f.b, *f.lane, o); }));
    CHECK_FALSE(f.b->waiting_since().has_value());
    CHECK(made.candidates == 3);
    REQUIRE_FALSE(f.finish_stream());
    CHECK_FALSE(f.b->finish(o));
}

TEST_CASE("one lane measures at a time, and the others wait without a thread")
{
    tuning_fixture f({});
    cuda_options how;
    how.helper_threads = 2;
    f.start(second_is_fastest, how);
    // One lane measures, three wait.
    constexpr std::size_t lanes = 4;
    std::vector<cuda::backend::stream> streams;
    std::vector<tune<product>> ops;
    std::vector<std::vector<void*>> operands;
    std::vector<tuning> made(lanes);
    std::vector<bound_op> bound;
    for (std::size_t i = 0; i < lanes; ++i) {
        streams.push_back(f.make_lane());
        ops.push_back({f.with(2 + i)});
        // It has a workspace.
        CHECK(f.algorithm_of(f.with(10), streams[i]) == 0);
    }
    const auto before = f.lt.products().size();
    const auto here = f.b->enter();
    for (std::size_t i = 0; i < lanes; ++i) {
        bound.push_back(f.bind(ops[i]));
        operands.push_back(f.addresses);
        bound[i].operands = operands[i].data();
        bound[i].reply = &made[i];
    }
    first_product_waits blocked(f);
    const auto ask = [&](std::size_t i) { return test::try_start(*f.b, streams[i], bound[i]); };
    wait_until([&] {
        CHECK_FALSE(ask(0).has_value());
        return blocked.launched();
    });
    for (std::size_t i = 1; i < lanes; ++i)
        for (int times = 0; times < 3; ++times)
            CHECK_FALSE(ask(i).has_value());
    // A new product needs a thread.
    CHECK(f.algorithm_of(f.with(20)) == 0);
    CHECK(f.lt.products().size() == before + 2);
    blocked.open();
    for (std::size_t i = 0; i < lanes; ++i) {
        CHECK_FALSE(f.repeat_until_answered([&] { return ask(i); }));
        CHECK(made[i].candidates == 3);
        CHECK_FALSE(f.b->finish(bound[i]));
    }
    const auto products = f.lt.products();
    for (std::size_t i = before + 3; i < products.size(); ++i)
        CHECK(products[i].d.cols >= products[i - 1].d.cols);
    for (std::size_t i = 0; i < lanes; ++i)
        CHECK(f.algorithm_of(f.with(2 + i)) == 1);
}

TEST_CASE("after measurements that failed, another lane measures")
{
    tuning_fixture f({refused});
    auto other = f.make_lane();
    CHECK(f.measure(f.with(2)).error() == errc::unsupported_op);
    f.lt.fail("cublasLtCreate", CUBLAS_STATUS_ALLOC_FAILED);
    f.lt.set_algorithms(second_is_fastest);
    std::swap(*f.lane, other);
    CHECK(f.measure(f.with(2)).error() == errc::out_of_memory);
    CHECK(f.measure(f.with(2)).value().candidates == 3);
    f.gpu.fail_from("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(f.measure(f.with(40)).error() == errc::out_of_memory);
    f.gpu.forgive();
    std::swap(*f.lane, other);
    CHECK(f.measure(f.with(40)).value().candidates == 3);
}

TEST_CASE("what was measured for an op that is not asked again is destroyed")
{
    tuning_fixture f(second_is_fastest);
    first_product_waits blocked(f);
    const auto here = f.b->enter();
    const tune<product> op{f.with(2)};
    bound_op o = f.bind(op);
    wait_until([&] {
        const bool begun = blocked.launched();
        if (!begun)
            CHECK_FALSE(test::try_start(*f.b, *f.lane, o).has_value());
        return begun;
    });
    blocked.open();
    wait_until([&] { return !f.folder.files().empty(); });
}

TEST_CASE("a later context finds the fastest algorithm in a file")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    CHECK(f.folder.files().size() == 1);
    const auto measured = f.lt.products().size();
    f.start(second_is_fastest);
    const int choices = f.lt.calls("cublasLtMatmulAlgoGetHeuristic");
    CHECK(f.algorithm_of(f.with(2)) == 1);
    CHECK(f.lt.products().size() == measured + 1);
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == choices);
    CHECK(f.algorithm_of(f.with(3)) == 0);
}

TEST_CASE("the file of another key is not used")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    cuda_options how;
    how.blas_workspace = 1 << 20;
    f.start(second_is_fastest, how);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    // Nor one with the content for another key.
    f.start(second_is_fastest);
    REQUIRE(f.measure(f.with(3)));
    const auto files = f.folder.files();
    REQUIRE(files.size() == 2);
    std::filesystem::rename(files[0], files[0] + ".moved");
    std::filesystem::rename(files[1], files[0]);
    std::filesystem::rename(files[0] + ".moved", files[1]);
    f.start(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    CHECK(f.algorithm_of(f.with(3)) == 0);
}

TEST_CASE("a damaged file is not used")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    const auto path = f.folder.files().at(0);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    f.start(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    std::ofstream(path) << "no algorithm";
    f.start(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
    // It can be replaced.
    REQUIRE(f.measure(f.with(2)));
    f.start(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 1);
}

TEST_CASE("an algorithm that cuBLASLt refuses, or that needs more memory than there is, is not used")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    // As after a change of the library that keeps its version.
    f.start({that_takes(300us)});
    CHECK(f.algorithm_of(f.with(2)) == 0);
    CHECK(f.lt.calls("cublasLtMatmulAlgoCheck") == 1);
    f.start({that_takes(300us), {.workspace_bytes = std::size_t(1) << 40}});
    CHECK(f.algorithm_of(f.with(2)) == 0);
    CHECK(f.lt.calls("cublasLtMatmulAlgoCheck") == 2);
    // Garbage in a file of the right form.
    f.start(second_is_fastest);
    f.lt.fail("cublasLtMatmulAlgoCheck", CUBLAS_STATUS_INVALID_VALUE);
    CHECK(f.algorithm_of(f.with(2)) == 0);
}

TEST_CASE("an algorithm that is refused when it is launched is replaced by the proposed one and forgotten")
{
    for (const auto status : {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_ARCH_MISMATCH}) {
        CAPTURE(status);
        const std::vector<algorithm> second_is_refused{that_takes(300us), {.status = status}, that_takes(200us)};
        tuning_fixture f(second_is_fastest);
        REQUIRE(f.measure(f.with(2)));
        REQUIRE(f.measure(f.with(3)));
        // It comes from a file.
        f.start(second_is_refused);
        CHECK(f.algorithm_of(f.with(2)) == 0);
        CHECK(f.look(f.d)[0] == 4);
        CHECK(f.folder.files().size() == 1);
        const auto attempts = f.lt.products().size();
        CHECK(f.algorithm_of(f.with(2)) == 0);
        // Another lane does not try it either.
        CHECK(f.algorithm_of(f.with(2), f.make_lane()) == 0);
        CHECK(f.lt.products().size() == attempts + 2);
        f.start(second_is_fastest);
        CHECK(f.algorithm_of(f.with(2)) == 0);
        CHECK(f.algorithm_of(f.with(3)) == 1);
    }
}

TEST_CASE("an algorithm that was launched before and is refused is replaced by the proposed one and forgotten")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    CHECK(f.algorithm_of(f.with(2)) == 1);
    f.lt.set_algorithms({that_takes(300us), refused, that_takes(200us)});
    CHECK(f.algorithm_of(f.with(2)) == 0);
    CHECK(f.lt.products().back().thread == std::this_thread::get_id());
    CHECK(f.look(f.d)[0] == 4);
    wait_until([&] { return f.folder.files().empty(); });
    // The plan stays.
    const auto attempts = f.lt.products().size();
    CHECK(f.algorithm_of(f.with(2)) == 0);
    CHECK(f.lt.products().size() == attempts + 1);
    CHECK(f.algorithm_of(f.with(2), f.make_lane()) == 0);
    CHECK(f.lt.products().size() == attempts + 2);
}

TEST_CASE("an algorithm stays known if the proposed one is refused, too")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    const std::vector<algorithm> all_are_refused{refused, refused, refused};
    for (const bool familiar : {true, false}) {
        CAPTURE(familiar);
        if (familiar)
            CHECK(f.algorithm_of(f.with(2)) == 1);
        else
            f.start(second_is_fastest);
        f.lt.set_algorithms(all_are_refused);
        CHECK(f.run(f.with(2)) == cuda::make_error(CUBLAS_STATUS_NOT_SUPPORTED));
        f.lt.set_algorithms(second_is_fastest);
        CHECK(f.folder.files().size() == 1);
        CHECK(f.algorithm_of(f.with(2)) == 1);
    }
}

TEST_CASE("other errors of a tuned algorithm are those of the op")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    for (const bool familiar : {true, false}) {
        if (!familiar)
            f.start(second_is_fastest);
        f.lt.fail("cublasLtMatmul", CUBLAS_STATUS_EXECUTION_FAILED);
        CHECK(f.run(f.with(2)) == cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
        CHECK(f.algorithm_of(f.with(2)) == 1);
        CHECK(f.folder.files().size() == 1);
    }
}

TEST_CASE("compiled kernels are not removed to make room for algorithms")
{
    tuning_fixture f(second_is_fastest);
    const std::string kernel = f.folder.path() + "/0123456789abcdef0123456789abcdef.kernel";
    std::ofstream(kernel) << "a kernel";
    // A file without content, of more than the limit for kernels.
    std::filesystem::resize_file(kernel, std::uintmax_t(2) << 30);
    REQUIRE(f.measure(f.with(2)));
    CHECK(f.folder.files().size() == 1);
    CHECK(std::filesystem::exists(kernel));
}

TEST_CASE("the folder of algorithms has a limit of its own")
{
    tuning_fixture f(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    const auto first = f.folder.files().at(0);
    std::filesystem::resize_file(first, std::uintmax_t(8) << 20);
    REQUIRE(f.measure(f.with(3)));
    CHECK_FALSE(std::filesystem::exists(first));
    CHECK(f.folder.files().size() == 1);
}

TEST_CASE("without a folder, the algorithm is known to its context only")
{
    tuning_fixture f({});
    f.folder.lose();
    f.start(second_is_fastest);
    REQUIRE(f.measure(f.with(2)));
    CHECK(f.algorithm_of(f.with(2)) == 1);
    f.start(second_is_fastest);
    CHECK(f.algorithm_of(f.with(2)) == 0);
}

TEST_CASE("a product in row-major order and one of each type are tuned")
{
    tuning_fixture f(second_is_fastest);
    auto rows = f.with(3);
    rows.order = blas::order::row_major;
    CHECK(f.measure(rows).value().candidates == 3);
    CHECK(f.algorithm_of(rows) == 1);
    CHECK(f.algorithm_of(f.with(3)) == 0);
    const auto a = f.upload(std::vector<std::int8_t>(16)), b = f.upload(std::vector<std::int8_t>(16));
    const auto d = f.upload(std::vector<std::int32_t>(16));
    const blas::matmul<std::int8_t> integers{
        .a = a, .b = b, .d = d, .m = 4, .n = 4, .k = 4, .trans_a = blas::transpose::yes};
    CHECK(f.measure(integers).value().candidates == 3);
    CHECK(f.algorithm_of(integers) == 1);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_tuning
