#include "chosen_library.hpp"
#include "cuda/prim/prim_kernels.hpp"
#include "prim_fixture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>

namespace test_cuda_prim {

// Elementwise ops over the fake driver.
namespace {

struct elementwise_fixture : prim_fixture {
    explicit elementwise_fixture(bool with_compiler = true) : prim_fixture(with_compiler)
    {
        add("unary<coaccel_prim::real_exp,coaccel_prim::f32>", code::unary<code::real_exp, float>);
        add("unary<coaccel_prim::real_neg,coaccel_prim::f16>", code::unary<code::real_neg, code::f16>);
        add("binary<coaccel_prim::integer2_mul,coaccel_prim::i16>", code::binary<code::integer2_mul, code::i16>);
        add("compare<coaccel_prim::compare_less,coaccel_prim::f64>", code::compare<code::compare_less, double>);
        add("ternary<coaccel_prim::ternary_multiply_add,coaccel_prim::u32>",
            code::ternary<code::ternary_multiply_add, code::u32>);
        add("where<coaccel_prim::bf16>", code::where<code::bf16>);
        add("clamp<coaccel_prim::i8>", code::clamp<code::i8>);
        add("cast<coaccel_prim::f32,coaccel_prim::f8_e4m3>", code::cast<float, code::f8_e4m3>);
        add("sequence<coaccel_prim::u64>", code::sequence<code::u64>);
    }
};

} // namespace

TEST_SUITE_BEGIN("cuda prim");

TEST_CASE_FIXTURE(elementwise_fixture, "another thread compiles the kernel, once, and the op is one launch")
{
    constexpr std::size_t n = 1000;
    std::vector<float> x(n);
    std::iota(x.begin(), x.end(), -500.0f);
    std::ranges::for_each(x, [](float& v) { v /= 100; });
    float* from = upload(x);
    float* to = upload(test::poisoned<float>(n));
    const prim::unary<float> op{
        .x = elements<float>(n, 0), .y = elements<float>(n, 1), .what = prim::real_function::exp};
    for (int i = 0; i < 3; ++i)
        REQUIRE_FALSE(run(op, {from, to}));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i)
        wrong += to[i] != std::exp(x[i]);
    CHECK(wrong == 0);
    const auto compiled = nvrtc.compilations();
    REQUIRE(compiled.size() == 1);
    CHECK(compiled[0].thread != std::this_thread::get_id());
    CHECK(compiled[0].name == "coaccel_prim::unary<coaccel_prim::real_exp,coaccel_prim::f32>");
    CHECK(compiled[0].options.at(0) == "--gpu-architecture=sm_90");
    CHECK(fake.calls("cuLaunchKernel") == 3);
    CHECK(fake.calls("cuModuleLoadData") == 1);
    CHECK(made->memory().library_objects == 1);
}

TEST_CASE_FIXTURE(elementwise_fixture, "each op passes its operands and fields to its kernel")
{
    using prim::layout;
    auto* h = upload(std::vector<half>{half(1.5f), half(-2.0f)});
    auto* h2 = upload(test::poisoned<half>(2));
    REQUIRE_FALSE(run(prim::unary<half>{.x = elements<half>(2, 0), .y = elements<half>(2, 1)}, {h, h2}));
    CHECK(float(h2[0]) == -1.5f);
    CHECK(float(h2[1]) == 2.0f);

    auto* a = upload(std::vector<std::int16_t>{1, 2, 3, 300, 400, 500});
    auto* b = upload(std::vector<std::int16_t>{10, 1000});
    auto* c = upload(test::poisoned<std::int16_t>(6));
    REQUIRE_FALSE(run(prim::binary<std::int16_t>{.a = elements<std::int16_t>(6, 0),
                                                 .b = elements<std::int16_t>(2, 1),
                                                 .c = elements<std::int16_t>(6, 2),
                                                 .what = prim::integer_binary::mul,
                                                 .shape = layout<3>::matrix(2, 3).column(1)},
                      {a, b, c}));
    CHECK(std::vector<std::int16_t>(c, c + 6) ==
          std::vector<std::int16_t>{10, 20, 30, static_cast<std::int16_t>(300000 - 4 * 65536 - 65536),
                                    static_cast<std::int16_t>(400000 - 6 * 65536),
                                    static_cast<std::int16_t>(500000 - 8 * 65536)});

    auto* d = upload(std::vector<double>{1, 5, 3});
    auto* e = upload(std::vector<double>{2, 4, 3});
    auto* mask = upload(test::poisoned<std::uint8_t>(3));
    REQUIRE_FALSE(run(prim::compare<double>{.a = elements<double>(3, 0),
                                            .b = elements<double>(3, 1),
                                            .c = elements<std::uint8_t>(3, 2),
                                            .what = prim::comparison::less},
                      {d, e, mask}));
    CHECK(std::vector<int>(mask, mask + 3) == std::vector<int>{1, 0, 0});

    auto* u = upload(std::vector<std::uint32_t>{2, 3});
    auto* v = upload(std::vector<std::uint32_t>{5, 7});
    auto* w = upload(std::vector<std::uint32_t>{1, 0xffffffff});
    auto* r = upload(test::poisoned<std::uint32_t>(2));
    REQUIRE_FALSE(run(prim::ternary<std::uint32_t>{.a = elements<std::uint32_t>(2, 0),
                                                   .b = elements<std::uint32_t>(2, 1),
                                                   .c = elements<std::uint32_t>(2, 2),
                                                   .d = elements<std::uint32_t>(2, 3)},
                      {u, v, w, r}));
    CHECK(r[0] == 11);
    CHECK(r[1] == 20);

    auto* p = upload(std::vector<bfloat16>{bfloat16(1.0f), bfloat16(2.0f), bfloat16(3.0f)});
    auto* q = upload(std::vector<bfloat16>{bfloat16(-1.0f)});
    auto* s = upload(test::poisoned<bfloat16>(3));
    REQUIRE_FALSE(run(prim::where<bfloat16>{.mask = elements<std::uint8_t>(3, 0),
                                            .a = elements<bfloat16>(3, 1),
                                            .b = elements<bfloat16>(1, 2),
                                            .c = elements<bfloat16>(3, 3),
                                            .shape = layout<4>::vector(3).scalar(2)},
                      {mask, p, q, s}));
    CHECK(float(s[0]) == 1.0f);
    CHECK(float(s[1]) == -1.0f);
    CHECK(float(s[2]) == -1.0f);

    auto* x = upload(std::vector<std::int8_t>{-100, 3, 100});
    auto* y = upload(test::poisoned<std::int8_t>(3));
    REQUIRE_FALSE(run(
        prim::clamp<std::int8_t>{
            .x = elements<std::int8_t>(3, 0), .y = elements<std::int8_t>(3, 1), .low = -5, .high = 7},
        {x, y}));
    CHECK(std::vector<int>(y, y + 3) == std::vector<int>{-5, 3, 7});

    auto* f = upload(std::vector<float>{1.0f, 1000.0f, 0.013f});
    auto* g = upload(test::poisoned<float8_e4m3>(3));
    REQUIRE_FALSE(
        run(prim::cast<float, float8_e4m3>{.x = elements<float>(3, 0), .y = elements<float8_e4m3>(3, 1)}, {f, g}));
    for (int i = 0; i < 3; ++i)
        CHECK(g[i].bits() == float8_e4m3(f[i]).bits());

    auto* z = upload(test::poisoned<std::uint64_t>(5));
    REQUIRE_FALSE(
        run(prim::sequence<std::uint64_t>{.dst = elements<std::uint64_t>(5, 0), .start = 7, .step = ~std::uint64_t(0)},
            {z}));
    CHECK(std::vector<std::uint64_t>(z, z + 5) == std::vector<std::uint64_t>{7, 6, 5, 4, 3});
    CHECK(made->memory().library_objects == 8);
}

TEST_CASE_FIXTURE(elementwise_fixture, "a graph of the op runs any number of times")
{
    float* x = upload(std::vector<float>{0});
    float* y = upload(std::vector<float>{0});
    const prim::unary<float> op{
        .x = elements<float>(1, 0), .y = elements<float>(1, 1), .what = prim::real_function::exp};
    void* addresses[] = {x, y};
    bound_op bound{.info = &info_of<prim::unary<float>>(), .op = &op, .operands = addresses};
    REQUIRE_FALSE(prepare(bound));
    const auto& api = fake.api();
    const CUstream s = lane->state().native;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    REQUIRE(api.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
    REQUIRE_FALSE(made->enqueue(*lane, bound));
    REQUIRE(api.cuStreamEndCapture(s, &graph) == CUDA_SUCCESS);
    REQUIRE(api.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    for (const float v : {1.0f, 2.0f}) {
        *x = v;
        REQUIRE(api.cuGraphLaunch(exec, s) == CUDA_SUCCESS);
        synchronize();
        CHECK(*y == std::exp(v));
    }
    CHECK(api.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    CHECK_FALSE(made->finish(bound));
}

TEST_CASE_FIXTURE(elementwise_fixture,
                  "a kernel that does not compile is an error of the op, and the next one tries again")
{
    float* x = upload(std::vector<float>{0});
    const prim::unary<float> op{
        .x = elements<float>(1, 0), .y = elements<float>(1, 0), .what = prim::real_function::exp};
    nvrtc.failures = 1;
    const auto ec = run(op, {x, x});
    CHECK(ec == errc::compile_failed);
    CHECK(ec.message().find("log") != std::string::npos);
    CHECK_FALSE(run(op, {x, x}));
    CHECK(*x == 1);
    CHECK(nvrtc.compilations().size() == 2);
    // A kernel that the module does not contain.
    fake.fail("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
    double* d = upload(std::vector<double>{0});
    CHECK(bool(run(prim::sequence<double>{.dst = elements<double>(1, 0)}, {d})));
}

TEST_CASE_FIXTURE(elementwise_fixture, "the least recently used kernels are given up")
{
    auto& kernels = made->resources().get<cuda::prim_kernels>(*made);
    const auto name = [](const void*) { return std::string("coaccel_prim::sequence<coaccel_prim::u64>"); };
    const auto acquire = [&](std::uint64_t what) {
        for (;;) {
            const int rung = told.count();
            const auto got = kernels.acquire({.op = 1, .what = what}, name, nullptr);
            REQUIRE(got);
            if (got.value()) {
                while (got.value()->where.load() == cuda::loaded_kernel::stage::loading)
                    std::this_thread::yield();
                made->modules().release(*got.value());
                return;
            }
            told.wait_for(rung + 1);
        }
    };
    constexpr std::uint64_t many = cuda::prim_kernels::most_kernels + 20;
    for (std::uint64_t i = 0; i < many; ++i) {
        acquire(i);
        acquire(0);
    }
    CHECK(kernels.count() == cuda::prim_kernels::most_kernels);
    CHECK(made->memory().library_objects == kernels.count());
    // Number 0 was always used; the first ones after it are gone, and with them their modules.
    const auto before = fake.calls("cuModuleLoadData");
    acquire(0);
    CHECK(fake.calls("cuModuleLoadData") == before);
    acquire(1);
    CHECK(fake.calls("cuModuleLoadData") == before + 1);
    CHECK(fake.calls("cuModuleUnload") > 0);
}

// Run in its own process: a loaded compiler is never unloaded.
TEST_CASE("without a compiler the ops of prim are refused, with the name of the library" * doctest::skip())
{
    const chosen_library nowhere(cuda::vendor_library::nvrtc, "/nowhere/libnvrtc.so.13");
    elementwise_fixture f(false);
    float* x = f.upload(std::vector<float>{0});
    const auto ec = f.run(prim::sequence<float>{.dst = prim_fixture::elements<float>(1, 0)}, {x});
    CHECK(ec == errc::library_missing);
    CHECK(ec.message().find("libnvrtc") != std::string::npos);
}

TEST_SUITE_END();

} // namespace test_cuda_prim
