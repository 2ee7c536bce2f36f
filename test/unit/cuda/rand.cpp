#include "cuda/backend.hpp"
#include "cuda/driver/error.hpp"
#include "cuda/rand/curand_error.hpp"
#include "cuda/rand/curand_setup.hpp"
#include "memory_support.hpp"
#include "rand/sequence.hpp"
#include "support/fake_curand.hpp"
#include "support/start_op.hpp"

#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace test_cuda_rand {

namespace {

using namespace coaccel;
using cuda::backend;
using rand::algorithm;

/// A backend on the fakes, with two lanes.
struct rand_fixture {
    rand_fixture() : made(create()), here(made->enter())
    {
        made->listen(told.call());
        for (int i = 0; i < 2; ++i)
            lanes.push_back(made->make_stream(priority::normal).value());
    }

    ~rand_fixture()
    {
        for (void* p : memory)
            made->release(lanes[0], p, room, memory_kind::device);
    }

    std::unique_ptr<backend> create()
    {
        backend::options o;
        o.helper_threads = 2;
        o.libraries = cuda::library_tables(&fake.api(), &curand.api());
        return std::move(backend::create(o)).value();
    }

    template <class T>
    T* allocate()
    {
        for (;;) {
            const int rung = told.count();
            if (void* p = made->allocate(lanes[0], room, memory_kind::device).value()) {
                memory.push_back(p);
                finish(0);
                return static_cast<T*>(p);
            }
            told.wait_for(rung + 1);
        }
    }

    void finish(std::size_t lane)
    {
        backend::event end;
        CHECK_FALSE(made->record(end, lanes[lane]));
        CHECK_FALSE(made->synchronize(end));
    }

    /// Runs an op whose destination is at `to`.
    template <class Op, class T>
    error_code run(Op op, T* to, std::size_t count, std::size_t lane = 0)
    {
        any_ref raw{.device = 1, .size = count, .type = dtype_v<T>};
        op.dst = ref<T>::from_raw(raw);
        REQUIRE_FALSE(op.check());
        void* address = to;
        bound_op bound{.info = &info_of<Op>(), .op = &op, .reply = &drawn, .operands = &address};
        for (;;) {
            const int rung = told.count();
            if (const auto started = test::try_start(*made, lanes[lane], bound)) {
                if (!made->dead())
                    finish(lane);
                const auto late = made->finish(bound);
                CHECK(bound.state == nullptr);
                return *started ? *started : late;
            }
            told.wait_for(rung + 1);
        }
    }

    static constexpr std::size_t room = 4096;

    test::fake_cuda fake;
    test::fake_curand curand{fake};
    test::told told;
    std::unique_ptr<backend> made;
    cuda::context_handle::scope here;
    std::vector<backend::stream> lanes;
    std::vector<void*> memory;
    rand::drawn drawn;
};

} // namespace

TEST_SUITE_BEGIN("cuda rand");

TEST_CASE_FIXTURE(rand_fixture, "another thread creates the generator, with its options")
{
    auto* x = allocate<float>();
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = rand::make_generator({.seed = 5, .offset = 3})}, x, 8));
    CHECK(drawn.position == 3);
    CHECK(drawn.started);
    REQUIRE(curand.calls("curandCreateGenerator").size() == 1);
    CHECK(curand.calls("curandCreateGenerator")[0].thread != std::this_thread::get_id());
    CHECK(curand.calls("curandCreateGenerator")[0].value == CURAND_RNG_PSEUDO_PHILOX4_32_10);
    CHECK(curand.calls("curandSetPseudoRandomGeneratorSeed").at(0).value == 5);
    CHECK(curand.calls("curandSetGeneratorOffset").at(0).value == 3);
    CHECK(curand.calls("curandSetGeneratorOrdering").at(0).value == CURAND_ORDERING_PSEUDO_LEGACY);
    CHECK(curand.calls("curandGenerateSeeds").size() == 1);
    CHECK(curand.calls("curandSetQuasiRandomGeneratorDimensions").empty());

    const auto sobol = rand::make_generator({.algorithm = algorithm::scrambled_sobol64, .dimensions = 4});
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = sobol}, x, 8));
    CHECK(curand.calls("curandCreateGenerator").at(1).value == CURAND_RNG_QUASI_SCRAMBLED_SOBOL64);
    CHECK(curand.calls("curandSetQuasiRandomGeneratorDimensions").at(0).value == 4);
    CHECK(curand.calls("curandSetPseudoRandomGeneratorSeed").size() == 1);
    CHECK(curand.calls("curandSetGeneratorOrdering").at(1).value == CURAND_ORDERING_QUASI_DEFAULT);
}

TEST_CASE_FIXTURE(rand_fixture, "the first launch of an op runs on another thread, the next ones on this one")
{
    auto* x = allocate<float>();
    const auto g = rand::make_generator({});
    for (int i = 0; i < 3; ++i)
        CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
    CHECK_FALSE(run(rand::normal<float>{.dst = {}, .from = g}, x, 4));
    // The kernels of another generator are others.
    CHECK_FALSE(
        run(rand::uniform<float>{.dst = {}, .from = rand::make_generator({.algorithm = algorithm::xorwow})}, x, 4));
    const auto calls = curand.calls("curandGenerateUniform");
    REQUIRE(calls.size() == 4);
    CHECK(calls[0].thread != std::this_thread::get_id());
    CHECK(calls[1].thread == std::this_thread::get_id());
    CHECK(calls[2].thread == std::this_thread::get_id());
    CHECK(calls[3].thread != std::this_thread::get_id());
    CHECK(curand.calls("curandGenerateNormal").at(0).thread != std::this_thread::get_id());
}

TEST_CASE_FIXTURE(rand_fixture, "philox is moved only after numbers of 64 bits")
{
    auto* x = allocate<float>();
    auto* y = allocate<double>();
    const auto g = rand::make_generator({.seed = 9});
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 5));
    CHECK_FALSE(run(rand::normal<float>{.dst = {}, .from = g}, x, 5));
    CHECK(drawn.position == 5);
    CHECK(curand.calls("curandSetGeneratorOffset").empty());
    CHECK_FALSE(run(rand::uniform<double>{.dst = {}, .from = g}, y, 5));
    CHECK(drawn.position == 10);
    CHECK(curand.calls("curandSetGeneratorOffset").empty());
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 5));
    CHECK(drawn.position == rand::after_wide_words(10, 5));
    REQUIRE(curand.calls("curandSetGeneratorOffset").size() == 1);
    CHECK(curand.calls("curandSetGeneratorOffset")[0].value == drawn.position);
    CHECK(x[0] == static_cast<float>(rand::philox_words(9, drawn.position / 4)[0]) * 0x1p-32f);
}

TEST_CASE_FIXTURE(rand_fixture, "words of 64 bits are pairs, except those of 64-bit Sobol numbers")
{
    auto* x = allocate<std::uint64_t>();
    CHECK_FALSE(run(rand::bits<std::uint64_t>{.dst = {}, .from = rand::make_generator({.seed = 1})}, x, 3));
    CHECK(curand.calls("curandGenerate").at(0).value == 6);
    const auto w = rand::philox_words(1, 0);
    CHECK(x[0] == (w[0] | std::uint64_t(w[1]) << 32));
    CHECK_FALSE(run(
        rand::bits<std::uint64_t>{.dst = {}, .from = rand::make_generator({.algorithm = algorithm::sobol64})}, x, 3));
    CHECK(curand.calls("curandGenerateLongLong").at(0).value == 3);
}

TEST_CASE_FIXTURE(rand_fixture, "normal numbers that come in aligned pairs may be odd in number and misaligned")
{
    auto* memory = allocate<double>();
    const auto before = made->memory().used;
    for (const std::size_t misaligned : {0, 1})
        for (const std::size_t n : {1, 2, 3, 7}) {
            auto* x = memory + 2 + misaligned;
            std::fill_n(memory, 12, -1.0);
            const auto g = rand::make_generator({.algorithm = algorithm::mrg32k3a});
            CHECK_FALSE(run(rand::normal<double>{.dst = {}, .from = g}, x, n));
            CHECK(x[-1] == -1);
            for (std::size_t i = 0; i < n; ++i)
                CHECK(x[i] == static_cast<double>(i) * 0x1p-20);
            CHECK(x[n] == -1);
            CHECK_FALSE(run(rand::normal<double>{.dst = {}, .from = g}, x, 2));
            CHECK(x[0] == static_cast<double>(n + n % 2) * 0x1p-20);
        }
    CHECK(made->memory().used == before);
}

TEST_CASE_FIXTURE(rand_fixture, "an op on another lane continues the sequence on its stream")
{
    auto* x = allocate<float>();
    const auto g = rand::make_generator({.algorithm = algorithm::xorwow});
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4, 1));
    CHECK(x[0] == 4 * 0x1p-20f);
    const auto used = curand.calls("curandGenerateUniform");
    CHECK(used.at(0).stream != used.at(1).stream);
    // A stream that cannot be set is not taken for set.
    curand.fail("curandSetStream", CURAND_STATUS_LAUNCH_FAILURE);
    CHECK(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4) == cuda::make_error(CURAND_STATUS_LAUNCH_FAILURE));
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
    CHECK(curand.calls("curandGenerateUniform").back().stream == used.at(0).stream);
}

TEST_CASE_FIXTURE(rand_fixture, "after a failed draw philox is moved to the position that the reply names")
{
    auto* x = allocate<float>();
    const auto g = rand::make_generator({.seed = 3});
    for (int i = 0; i < 2; ++i) {
        curand.fail("curandGenerateUniform", CURAND_STATUS_OUT_OF_RANGE);
        CHECK(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4) == cuda::make_error(CURAND_STATUS_OUT_OF_RANGE));
        CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
        CHECK(x[0] == static_cast<float>(rand::philox_words(3, drawn.position / 4)[drawn.position % 4]) * 0x1p-32f);
    }
}

TEST_CASE_FIXTURE(rand_fixture, "a generator that cannot be created fails its op, and the next op tries again")
{
    auto* x = allocate<float>();
    const auto g = rand::make_generator({.seed = 4, .offset = 2});
    for (const char* step : {"curandCreateGenerator", "curandSetStream", "curandSetPseudoRandomGeneratorSeed",
                             "curandSetGeneratorOffset", "curandSetGeneratorOrdering", "curandGenerateSeeds"}) {
        CAPTURE(step);
        curand.fail(step, CURAND_STATUS_ARCH_MISMATCH);
        CHECK(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4) == cuda::make_error(CURAND_STATUS_ARCH_MISMATCH));
        CHECK(curand.generators() == 0);
    }
    curand.fail("curandCreateGenerator", CURAND_STATUS_ALLOCATION_FAILED);
    CHECK(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4) == errc::out_of_memory);
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
    CHECK(drawn.started);
    CHECK(drawn.position == 2);
}

TEST_CASE_FIXTURE(rand_fixture, "a broken generator is created again, and the reply says so")
{
    auto* x = allocate<float>();
    const auto g = rand::make_generator({.algorithm = algorithm::xorwow});
    for (const int before : {0, 2}) {
        for (int i = 0; i < before; ++i)
            CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
        curand.fail("curandGenerateUniform", CURAND_STATUS_NOT_INITIALIZED);
        CHECK(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4) == cuda::make_error(CURAND_STATUS_NOT_INITIALIZED));
        CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
        CHECK(drawn.started);
        CHECK(drawn.position == 0);
    }
    // Not broken: the next op continues.
    curand.fail("curandGenerateUniform", CURAND_STATUS_OUT_OF_RANGE);
    CHECK(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4) == cuda::make_error(CURAND_STATUS_OUT_OF_RANGE));
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
    CHECK_FALSE(drawn.started);
    CHECK(curand.generators() == 1);
}

TEST_CASE_FIXTURE(rand_fixture, "generators that were not used for long are destroyed")
{
    auto* x = allocate<float>();
    const auto first = rand::make_generator({.algorithm = algorithm::xorwow});
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = first}, x, 4));
    for (std::size_t i = 0; i < rand::most_generators + 3; ++i)
        CHECK_FALSE(
            run(rand::normal<float>{.dst = {}, .from = rand::make_generator({.algorithm = algorithm::xorwow})}, x, 3));
    CHECK(curand.generators() <= rand::most_generators + 1);
    CHECK(curand.calls("curandDestroyGenerator").size() >= 3);
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = first}, x, 4));
    CHECK(drawn.started);
}

TEST_CASE_FIXTURE(rand_fixture, "after the context has died cuRAND gets no more calls")
{
    auto* x = allocate<float>();
    const auto g = rand::make_generator({});
    CHECK_FALSE(run(rand::uniform<float>{.dst = {}, .from = g}, x, 4));
    fake.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
    const auto ec = run(rand::uniform<float>{.dst = {}, .from = g}, x, 4);
    CHECK(ec == fault::context_lost);
    CHECK(made->dead());
    const int before = fake.calls_after_death();
    CHECK(run(rand::uniform<float>{.dst = {}, .from = rand::make_generator({})}, x, 4) == fault::context_lost);
    CHECK(fake.calls_after_death() == before);
    memory.clear();
}

TEST_CASE("cuRAND is refused if it is too old, and named")
{
    cuda::curand_api api;
    api.path = "/fake/libcurand.so.10";
    const auto find = [](const char* symbol) -> result<void*> {
        if (std::string_view(symbol) != "curandGetProperty")
            return make_error_with_message(errc::library_too_old, symbol);
        return reinterpret_cast<void*>(+[](libraryPropertyType what, int* value) {
            *value = what == MAJOR_VERSION ? 10 : what == MINOR_VERSION ? 2 : 9;
            return CURAND_STATUS_SUCCESS;
        });
    };
    const auto ec = cuda::fill(api, find);
    CHECK(ec == errc::library_too_old);
    CHECK(ec.message().find("/fake/libcurand.so.10: version 10.2.9") != std::string::npos);
}

TEST_SUITE_END();

} // namespace test_cuda_rand
