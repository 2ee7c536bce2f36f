#include "blas_fixture.hpp"
#include "chosen_library.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/blas/lt_handle.hpp"
#include "cuda/driver/error.hpp"
#include "cuda_world.hpp"

#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace test_cuda_blas_lt_handle {

namespace {

using namespace coaccel;
using product = blas::matmul<float>;

/// D = A * B with A of 2 by 2, B of 2 by n.
struct lt_fixture : test::blas_fixture {
    explicit lt_fixture(const cuda_options& how = {}) : blas_fixture(how) {}

    product with(std::uint64_t n) const { return {.a = a, .b = b_matrix, .d = d, .m = 2, .n = n, .k = 2}; }

    ref<float> a = upload<float>({1, 2, 3, 4});
    ref<float> b_matrix = upload(std::vector<float>(400, 1));
    ref<float> d = upload(std::vector<float>(400, -1));
};

} // namespace

TEST_SUITE_BEGIN("lt_handle");

// Before anything in this program opens the real library, which is never closed.
TEST_CASE("without cuBLASLt its ops fail with library_missing, and other ops run")
{
    class without_cublaslt final : public test::context_world {
    public:
        detail::context_factory factory() override
        {
            return cuda::make_factory({}, 0, cuda::library_tables(&driver.api(), &blas.api()));
        }
        void poison() override {}
        test::fake_cuda driver;
        test::fake_cublas blas{driver};
    };
    const chosen_library nowhere(cuda::vendor_library::cublaslt, "/nowhere/libcublasLt.so.13");
    if (cuda::cublaslt_api::load()) {
        MESSAGE("not run: the real library is open");
        return;
    }
    without_cublaslt w;
    test::context_driver d(w);
    const auto x = d.floats(4);
    d.write(x, {1, 2, 3, 4});
    const auto y = d.floats(4);
    for (int i = 0; i < 2; ++i) {
        test::exec<product> r(product{.a = x, .b = x, .d = y, .m = 2, .n = 2, .k = 2}, exec_options{});
        const auto ec = d.outcome_of(r);
        CHECK(ec == errc::library_missing);
        CHECK(ec.message().find("libcublasLt") != std::string::npos);
        d.ended.clear();
    }
    test::exec<blas::dot<float>> dot(blas::dot<float>{x, x, 4}, exec_options{});
    CHECK_FALSE(d.outcome_of(dot));
    CHECK(d.losses == 0);
}

TEST_CASE("another thread makes the handle, the choice and the first product of a problem, and the caller later ones")
{
    cuda_options how;
    how.blas_workspace = 1 << 20;
    lt_fixture f(how);
    REQUIRE_FALSE(f.run(f.with(2)));
    CHECK(f.lt.chooser() != std::this_thread::get_id());
    CHECK(f.look(f.d)[0] == 4);
    CHECK(f.look(f.d)[1] == 6);
    REQUIRE_FALSE(f.run(f.with(2)));
    REQUIRE_FALSE(f.run(f.with(3)));
    REQUIRE_FALSE(f.run(f.with(2)));
    const auto products = f.lt.products();
    REQUIRE(products.size() == 4);
    CHECK(products[0].thread != std::this_thread::get_id());
    CHECK(products[1].thread == std::this_thread::get_id());
    CHECK(products[2].thread != std::this_thread::get_id());
    CHECK(products[3].thread == std::this_thread::get_id());
    CHECK(products[0].choice == 1);
    CHECK(products[1].choice == 1);
    CHECK(products[2].choice == 2);
    CHECK(products[3].choice == 1);
    CHECK(f.lt.calls("cublasLtCreate") == 1);
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == 2);
    for (const auto& p : products) {
        CHECK(p.workspace == products[0].workspace);
        CHECK(reinterpret_cast<std::uintptr_t>(p.workspace) % 256 == 0);
        CHECK(p.workspace_bytes == 1 << 20);
    }
    // cuBLAS is not needed.
    CHECK(f.blas.calls("create").empty());
    CHECK(f.memory().library_objects == 3);
}

TEST_CASE("every field by which an algorithm is chosen distinguishes plans")
{
    lt_fixture f;
    auto op = f.with(4);
    int plans = 0;
    const auto is_new = [&](const auto& changed) {
        CHECK_FALSE(f.run(changed));
        CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == ++plans);
        CHECK_FALSE(f.run(changed));
        CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == plans);
    };
    is_new(op);
    // The factors are no part of the problem.
    op.alpha = 2;
    op.beta = 1;
    CHECK_FALSE(f.run(op));
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == plans);
    const auto change = [&](auto edit) {
        auto changed = f.with(4);
        edit(changed);
        is_new(changed);
    };
    const auto other = f.upload(std::vector<float>(400, 1));
    change([](product& o) { o.m = 1; });
    change([](product& o) { o.n = 3; });
    change([](product& o) { o.k = 1; });
    change([](product& o) { o.trans_a = blas::transpose::yes; });
    change([](product& o) { o.trans_b = blas::transpose::yes; });
    change([](product& o) { o.ldb = 3; });
    change([](product& o) { o.ldd = 3; });
    change([](product& o) { o.activation = blas::activation::relu; });
    change([](product& o) { o.math = blas::math::tf32; });
    change([](product& o) { o.order = blas::order::row_major; });
    change([](product& o) { o.batch = 2, o.stride_d = 8; });
    change([](product& o) { o.batch = 3, o.stride_d = 8; });
    change([](product& o) { o.batch = 3, o.stride_d = 9; });
    change([&](product& o) { o.batch = 3, o.stride_d = 9, o.a = other, o.stride_a = 4; });
    change([](product& o) { o.batch = 3, o.stride_d = 9, o.stride_b = 8; });
    change([&f](product& o) { o.b = f.b_matrix.subspan(1, 8); });
    change([&f](product& o) { o.b = f.b_matrix.subspan(2, 8); });
    change([&f](product& o) { o.d = f.d.subspan(1, 8); });
    change([&](product& o) { o.c = other.subspan(1, 8); });
    change([&](product& o) { o.c = other.subspan(2, 8); });
    change([&](product& o) { o.c = other, o.ldc = 5; });
    change([&](product& o) { o.c = other, o.batch = 2, o.stride_d = 8, o.stride_c = 9; });
    change([&](product& o) { o.bias = other; });
    change([&](product& o) { o.bias = other.subspan(1, 8); });
    // A C that is like D in everything but its address needs no plan of its own.
    op = f.with(4);
    op.c = other;
    CHECK_FALSE(f.run(op));
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == plans);
}

TEST_CASE("types, scales and the greatest magnitude distinguish plans of fp8")
{
    test::blas_fixture f;
    int plans = 0;
    const auto is_new = [&](const auto& op) {
        for (int i = 0; i < 2; ++i) {
            const auto done = f.run(op);
            REQUIRE_MESSAGE(!done, done.message());
            CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == plans + 1);
        }
        ++plans;
    };
    const auto first = f.upload(std::vector<float8_e4m3>(512)), second = f.upload(std::vector<float8_e4m3>(512));
    const auto other = f.upload(std::vector<float8_e5m2>(512));
    const auto narrow = f.upload(std::vector<float8_e4m3>(256));
    const auto wide = f.upload(std::vector<bfloat16>(256)), c = f.upload(std::vector<bfloat16>(256));
    const auto scales = f.upload(std::vector<float>(64, 1));
    const auto with = [&]<class Op>(Op op, auto edit) {
        op.m = op.n = op.k = 16;
        op.trans_a = blas::transpose::yes;
        edit(op);
        is_new(op);
    };
    const auto nothing = [](auto&) {};
    const auto one = scales.subspan(0, 1), rows = scales.subspan(0, 16);
    const blas::matmul<float8_e4m3> to_wide{.a = first, .b = second, .d = wide};
    with(to_wide, nothing);
    with(blas::matmul<float8_e4m3, bfloat16, float8_e5m2>{.a = first, .b = other, .d = wide}, nothing);
    with(blas::matmul<float8_e5m2>{.a = other, .b = first, .d = wide}, nothing);
    with(to_wide, [&](auto& o) { o.scale_a = one; });
#if CUBLAS_VERSION >= 120900
    with(to_wide, [&](auto& o) { o.scale_a = rows, o.scale_b = rows; });
#endif
    const blas::matmul<float8_e4m3, float8_e4m3> to_narrow{.a = first, .b = second, .d = narrow};
    with(to_narrow, nothing);
    with(to_narrow, [&](auto& o) { o.scale_b = one; });
    with(to_narrow, [&](auto& o) { o.scale_d = one; });
    with(to_narrow, [&](auto& o) { o.amax_d = one; });
    with(to_narrow, [&](auto& o) { o.scale_d = one, o.amax_d = scales.subspan(1, 1); });
    with(to_narrow, [&](auto& o) { o.c = c.subspan(16, 240), o.n = 8; });
    with(to_narrow, [&](auto& o) { o.bias = c; });
}

TEST_CASE("the least recently used plans are destroyed")
{
    lt_fixture f;
    const auto most = cuda::lt_handle::most_plans;
    for (std::uint64_t n = 1; n <= most; ++n)
        REQUIRE_FALSE(f.run(f.with(n)));
    // A handle, and for each plan an operation and four layouts.
    CHECK(f.lt.alive() == 1 + 5 * most);
    REQUIRE_FALSE(f.run(f.with(1)));
    REQUIRE_FALSE(f.run(f.with(most + 1)));
    CHECK(f.lt.alive() == 1 + 5 * most);
    const int choices = f.lt.calls("cublasLtMatmulAlgoGetHeuristic");
    REQUIRE_FALSE(f.run(f.with(1)));
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == choices);
    REQUIRE_FALSE(f.run(f.with(2)));
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == choices + 1);
}

TEST_CASE("a plan that an op uses stays")
{
    lt_fixture f;
    REQUIRE_FALSE(f.run(f.with(1)));
    const auto used = f.with(1);
    const auto here = f.b->enter();
    bound_op o = f.bind(used);
    auto addresses = f.addresses;
    o.operands = addresses.data();
    REQUIRE_FALSE(f.b->find_code(o));
    REQUIRE(f.b->prepare(*f.lane, o).value() == readiness::ready);
    for (std::uint64_t n = 2; n <= cuda::lt_handle::most_plans + 5; ++n)
        REQUIRE_FALSE(f.run(f.with(n)));
    const int choices = f.lt.calls("cublasLtMatmulAlgoGetHeuristic");
    CHECK_FALSE(f.b->enqueue(*f.lane, o));
    CHECK_FALSE(f.finish_stream());
    CHECK_FALSE(f.b->finish(o));
    CHECK(o.state == nullptr);
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == choices);
}

TEST_CASE("operands that are less aligned than those of the preparation are refused with their field")
{
    lt_fixture f;
    const auto c = f.upload(std::vector<float>(400, 1));
    const product plain{.a = f.a, .b = f.b_matrix, .d = f.d, .bias = f.a, .m = 2, .n = 2, .k = 2};
    auto added = plain, by_rows = plain;
    added.c = c;
    by_rows.order = blas::order::row_major;
    const auto here = f.b->enter();
    const auto check = [&f](const product& op, const std::vector<const char*>& fields) {
        REQUIRE_FALSE(f.run(op));
        const auto products = f.lt.products().size();
        bound_op o = f.bind(op);
        REQUIRE_FALSE(f.b->find_code(o));
        for (std::size_t i = 0; i < fields.size(); ++i) {
            REQUIRE(f.b->prepare(*f.lane, o).value() == readiness::ready);
            void* const prepared = o.operands[i];
            o.operands[i] = static_cast<float*>(prepared) + 3;
            const auto ec = f.b->enqueue(*f.lane, o);
            CHECK(ec == errc::unsupported_op);
            CHECK(ec.message() == std::string("blas.matmul<f32 from f32>: ") + fields[i] +
                                      " starts at a multiple of 4 bytes, as part of a graph it must start at a "
                                      "multiple of 256");
            o.operands[i] = prepared;
        }
        CHECK_FALSE(f.b->finish(o));
        CHECK(f.lt.products().size() == products);
    };
    check(added, {"a", "b", "d", "c", "bias"});
    // The previous D, which takes the place of C, is not called C.
    check(plain, {"a", "b", "d"});
    check(by_rows, {"a", "b", "d"});
}

TEST_CASE("operands that are better aligned than those of the preparation are accepted")
{
    lt_fixture f;
    const product op{.a = f.a, .b = f.b_matrix.subspan(1, 100), .d = f.d.subspan(3, 100), .m = 2, .n = 2, .k = 2};
    REQUIRE_FALSE(f.run(op));
    const auto here = f.b->enter();
    bound_op o = f.bind(op);
    REQUIRE_FALSE(f.b->find_code(o));
    REQUIRE(f.b->prepare(*f.lane, o).value() == readiness::ready);
    o.operands[1] = f.buffers[f.b_matrix.raw().slot].first;
    o.operands[2] = f.buffers[f.d.raw().slot].first;
    CHECK_FALSE(f.b->enqueue(*f.lane, o));
    CHECK_FALSE(f.finish_stream());
    CHECK_FALSE(f.b->finish(o));
    CHECK(f.lt.products().size() == 2);
    CHECK(f.look(f.d)[0] == 4);
    CHECK(f.lt.calls("cublasLtMatmulAlgoGetHeuristic") == 1);
}

TEST_CASE("a failed preparation fails one op")
{
    for (const char* step :
         {"cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
          "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic",
          "cublasLtMatmul"})
        for (const int nth : {1, 2, 3, 4}) {
            CAPTURE(step);
            CAPTURE(nth);
            lt_fixture f;
            f.lt.fail(step, CUBLAS_STATUS_ARCH_MISMATCH, nth);
            const auto failed = f.run(f.with(2));
            if (f.lt.calls(step) < nth)
                continue;
            CHECK(failed == cuda::make_error(CUBLAS_STATUS_ARCH_MISMATCH));
            CHECK(f.lt.alive() <= 1);
            CHECK_FALSE(f.run(f.with(2)));
            CHECK(f.look(f.d)[0] == 4);
        }
}

TEST_CASE("a failed allocation of the workspace fails one op")
{
    lt_fixture f;
    f.gpu.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY, 1);
    f.gpu.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY, 2);
    CHECK(f.run(f.with(2)) == errc::out_of_memory);
    CHECK_FALSE(f.run(f.with(2)));
}

TEST_CASE("a product without an algorithm is refused with its sizes")
{
    for (const bool empty : {true, false}) {
        lt_fixture f;
        if (empty)
            f.lt.set_algorithms({});
        else
            f.lt.fail("cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED);
        const auto ec = f.run(f.with(3));
        CHECK(ec == errc::unsupported_op);
        CHECK(ec.message() == "blas.matmul<f32 from f32>: cuBLASLt has no algorithm for m 2, n 3, k 2, lda 2, ldb 2, "
                              "ldd 2, batch 1, a aligned to 256 bytes, b to 256, d to 256, on this GPU");
        f.lt.set_algorithms({{}});
        CHECK_FALSE(f.run(f.with(3)));
    }
}

TEST_CASE("a product without an algorithm is refused with the alignment of c and bias")
{
    lt_fixture f;
    f.lt.set_algorithms({});
    const auto c = f.upload(std::vector<float>(40, 1)), bias = f.upload(std::vector<float>(40, 1));
    auto op = f.with(3);
    op.beta = 1;
    op.bias = bias.subspan(2, 2);
    CHECK(f.run(op).message() == "blas.matmul<f32 from f32>: cuBLASLt has no algorithm for m 2, n 3, k 2, lda 2, "
                                 "ldb 2, ldd 2, batch 1, a aligned to 256 bytes, b to 256, d to 256, bias to 8, on "
                                 "this GPU");
    op.c = c.subspan(1, 39);
    op.ldc = 5;
    CHECK(f.run(op).message() == "blas.matmul<f32 from f32>: cuBLASLt has no algorithm for m 2, n 3, k 2, lda 2, "
                                 "ldb 2, ldc 5, ldd 2, batch 1, a aligned to 256 bytes, b to 256, c to 4, d to 256, "
                                 "bias to 8, on this GPU");
}

TEST_CASE("a row-major product without an algorithm is refused with the fields of the op")
{
    lt_fixture f;
    f.lt.set_algorithms({});
    const auto a = f.upload(std::vector<float>(40, 1)), b = f.upload(std::vector<float>(40, 1));
    const blas::matmul<float> op{.a = a.subspan(4, 36),
                                 .b = b.subspan(1, 39),
                                 .d = f.d,
                                 .m = 2,
                                 .n = 3,
                                 .k = 4,
                                 .lda = 6,
                                 .ldb = 5,
                                 .order = blas::order::row_major};
    CHECK(f.run(op).message() == "blas.matmul<f32 from f32>: cuBLASLt has no algorithm for m 2, n 3, k 4, lda 6, "
                                 "ldb 5, ldd 3, batch 1, a aligned to 16 bytes, b to 4, d to 256, on this GPU");
}

TEST_CASE("a scale for each row and column is refused with the version of a cuBLASLt that does not know it")
{
    test::blas_fixture f;
    f.lt.set_version(120405);
    const auto a = f.upload(std::vector<float8_e4m3>(256)), b = f.upload(std::vector<float8_e4m3>(256));
    const auto d = f.upload(std::vector<bfloat16>(256));
    const auto scales = f.upload(std::vector<float>(16, 1));
    blas::matmul<float8_e4m3> op{.a = a,
                                 .b = b,
                                 .d = d,
                                 .scale_a = scales,
                                 .scale_b = scales,
                                 .m = 16,
                                 .n = 16,
                                 .k = 16,
                                 .trans_a = blas::transpose::yes};
    const std::string refusal = ": scale_a and scale_b with a scale for each row and column need cuBLASLt 12.9.0, the "
                                "version is 12.4.5";
    const auto ec = f.run(op);
    CHECK(ec == errc::unsupported_op);
    CHECK(ec.message() == "blas.matmul<bf16 from f8_e4m3>" + refusal);
    const auto tuned = f.run(tune<blas::matmul<float8_e4m3>>{op});
    CHECK(tuned == errc::unsupported_op);
    CHECK(tuned.message() == "blas.matmul<bf16 from f8_e4m3> tuned" + refusal);
    CHECK(f.lt.calls("cublasLtMatmulDescSetAttribute") == 0);
    // One scale is known since fp8 is.
    op.scale_a = scales.subspan(0, 1);
    op.scale_b = scales.subspan(1, 1);
    CHECK_FALSE(f.run(op));
#if CUBLAS_VERSION >= 120900
    f.lt.set_version(120900);
    op.scale_a = op.scale_b = scales;
    CHECK_FALSE(f.run(op));
#endif
}

TEST_CASE("a cuBLASLt error fails its op, and a broken handle is replaced")
{
    struct row {
        cublasStatus_t status;
        int made;
    };
    constexpr row rows[] = {
        {CUBLAS_STATUS_NOT_INITIALIZED, 2}, {CUBLAS_STATUS_INTERNAL_ERROR, 2}, {CUBLAS_STATUS_EXECUTION_FAILED, 1},
        {CUBLAS_STATUS_INVALID_VALUE, 1},   {CUBLAS_STATUS_NOT_SUPPORTED, 1},
    };
    for (const auto& r : rows)
        for (const bool familiar : {false, true}) {
            CAPTURE(r.status);
            CAPTURE(familiar);
            lt_fixture f;
            if (familiar)
                REQUIRE_FALSE(f.run(f.with(2)));
            f.lt.fail("cublasLtMatmul", r.status);
            CHECK(f.run(f.with(2)) == cuda::make_error(r.status));
            CHECK_FALSE(f.run(f.with(2)));
            CHECK(f.look(f.d)[0] == 4);
            CHECK(f.lt.calls("cublasLtCreate") == r.made);
        }
}

TEST_CASE("if no handle can be made in place of a broken one, the next op tries again")
{
    lt_fixture f;
    REQUIRE_FALSE(f.run(f.with(2)));
    f.lt.fail("cublasLtMatmul", CUBLAS_STATUS_INTERNAL_ERROR);
    CHECK(f.run(f.with(2)) == cuda::make_error(CUBLAS_STATUS_INTERNAL_ERROR));
    f.lt.fail("cublasLtCreate", CUBLAS_STATUS_ALLOC_FAILED);
    CHECK(f.run(f.with(2)) == errc::out_of_memory);
    // Its plan was kept.
    CHECK_FALSE(f.run(f.with(2)));
    CHECK(f.look(f.d)[0] == 4);
}

TEST_CASE("an op on a dead context gets the context's error, and nothing is destroyed")
{
    lt_fixture f;
    REQUIRE_FALSE(f.run(f.with(2)));
    f.gpu.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
    f.lt.fail("cublasLtMatmul", CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(f.run(f.with(2)) == cuda::make_error(CUDA_ERROR_ILLEGAL_ADDRESS));
    CHECK(f.b->dead());
    f.b.reset();
    CHECK(f.lt.calls("cublasLtDestroy") == 0);
}

TEST_CASE("what was made for an op that is not asked again is destroyed")
{
    lt_fixture f;
    const auto here = f.b->enter();
    const auto op = f.with(2);
    bound_op o = f.bind(op);
    f.repeat_until_answered([&] {
        const bool ended = !f.lt.products().empty();
        if (!ended)
            CHECK_FALSE(test::try_start(*f.b, *f.lane, o).has_value());
        return ended ? std::optional(true) : std::nullopt;
    });
}

TEST_SUITE_END();

} // namespace test_cuda_blas_lt_handle
