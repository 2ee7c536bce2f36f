#include "cuda/blas/blas_handle.hpp"

#include "blas_recorder.hpp"
#include "cuda/backend.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/driver/error.hpp"
#include "support/fake_cuda.hpp"
#include "support/start_op.hpp"

#include <coaccel/ops/blas.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace test_cuda_blas_handle {

namespace {

using namespace coaccel;
using limits = std::numeric_limits<std::int64_t>;

/// A backend on the fakes, with one lane.
struct fixture {
    explicit fixture(const cuda_options& how = {})
    {
        cuda::backend::options o;
        static_cast<cuda_options&>(o) = how;
        o.libraries = cuda::library_tables(&gpu.api(), &blas.api);
        b = cuda::backend::create(o).value();
        b->listen({[](void* self) noexcept {
                       auto& n = static_cast<fixture*>(self)->notifications;
                       n.fetch_add(1);
                       n.notify_all();
                   },
                   this});
        const auto here = b->enter();
        lane.emplace(b->make_stream(priority::normal).value());
    }

    /// Repeats the call after each notification, until there is an answer.
    template <class Ask>
    auto repeat_until_answered(Ask ask)
    {
        for (;;) {
            const int before = notifications.load();
            auto answer = ask();
            if (answer)
                return *std::move(answer);
            notifications.wait(before);
        }
    }

    template <class T>
    ref<T> upload(std::vector<T> data)
    {
        const auto here = b->enter();
        void* memory = repeat_until_answered([&]() -> std::optional<void*> {
            auto made = b->allocate(*lane, data.size() * sizeof(T), memory_kind::device);
            return made.value() ? std::optional(made.value()) : std::nullopt;
        });
        finish_stream();
        std::memcpy(memory, data.data(), data.size() * sizeof(T));
        buffers.push_back({memory, data.size() * sizeof(T)});
        any_ref r{.slot = static_cast<std::uint32_t>(buffers.size() - 1), .size = data.size(), .type = dtype_v<T>};
        return ref<T>::from_raw(r);
    }

    template <class T>
    std::vector<T> look(const ref<T>& r) const
    {
        const auto& [memory, bytes] = buffers[r.raw().slot];
        std::vector<T> data(bytes / sizeof(T));
        std::memcpy(data.data(), memory, bytes);
        return data;
    }

    memory_info memory()
    {
        const auto here = b->enter();
        return b->memory();
    }

    error_code finish_stream()
    {
        cuda::backend::event end;
        if (auto ec = b->record(end, *lane))
            return ec;
        return b->synchronize(end);
    }

    /// Valid until the next call.
    template <class Op>
    bound_op bind(const Op& op)
    {
        REQUIRE_FALSE(op.check());
        bound_op o;
        o.info = &info_of<Op>();
        o.op = &op;
        addresses.resize(o.info->operands.size());
        o.operands = addresses.data();
        for (std::size_t i = 0; i < o.info->operands.size(); ++i) {
            any_ref raw;
            std::memcpy(&raw, reinterpret_cast<const char*>(&op) + o.info->operands[i].offset, sizeof(raw));
            o.operands[i] = buffers[raw.slot].first;
        }
        return o;
    }

    /// Runs the op as the engine does.
    template <class Op, class Reply = int>
    error_code run(const Op& op, Reply* reply = nullptr)
    {
        const auto here = b->enter();
        bound_op o = bind(op);
        o.reply = reply;
        const auto started = repeat_until_answered([&] { return test::try_start(*b, *lane, o); });
        if (b->dead())
            return started;
        REQUIRE_FALSE(finish_stream());
        const auto finished = b->finish(o);
        CHECK(o.state == nullptr);
        return started ? started : finished;
    }

    ~fixture()
    {
        if (!b)
            return;
        {
            const auto here = b->enter();
            for (const auto& [memory, bytes] : buffers)
                b->release(*lane, memory, bytes, memory_kind::device);
        }
        lane.reset();
        b.reset();
        CHECK(blas.alive() == 0);
    }

    test::fake_cuda gpu;
    test::blas_recorder blas{gpu};
    std::unique_ptr<cuda::backend> b;
    std::optional<cuda::backend::stream> lane;
    std::atomic<int> notifications{0};
    std::vector<std::pair<void*, std::size_t>> buffers;
    std::vector<void*> addresses;
};

using scal = blas::scal<float>;

} // namespace

TEST_SUITE_BEGIN("blas_handle");

TEST_CASE("another thread creates the handle, with the settings of the options")
{
    for (const auto mode : {blas_mode::deterministic, blas_mode::fast}) {
        cuda_options how;
        how.blas = mode;
        how.blas_workspace = 1 << 20;
        fixture f(how);
        const auto x = f.upload<float>({1, 2, 3});
        REQUIRE_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2}));
        CHECK(f.look(x) == std::vector<float>{2, 4, 6});
        REQUIRE(f.blas.calls("create").size() == 1);
        CHECK(f.blas.calls("create")[0].thread != std::this_thread::get_id());
        const auto& h = f.blas.last();
        CHECK(h.workspace != nullptr);
        CHECK(reinterpret_cast<std::uintptr_t>(h.workspace) % 256 == 0);
        CHECK(h.workspace_bytes == 1 << 20);
        CHECK(h.pointers == CUBLAS_POINTER_MODE_HOST);
        CHECK(h.atomics == (mode == blas_mode::fast ? CUBLAS_ATOMICS_ALLOWED : CUBLAS_ATOMICS_NOT_ALLOWED));
        CHECK((h.math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) != 0);
        REQUIRE_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2}));
        CHECK(f.blas.calls("create").size() == 1);
    }
}

TEST_CASE("another thread makes the first call of a kind, and the caller makes later calls")
{
    fixture f;
    const auto x = f.upload(std::vector<float>(300, 1));
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2}));
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 2, .alpha = 2}));
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 300, .alpha = 2}));
    const auto calls = f.blas.calls("scal");
    REQUIRE(calls.size() == 3);
    CHECK(calls[0].thread != std::this_thread::get_id());
    CHECK(calls[1].thread == std::this_thread::get_id());
    CHECK(calls[2].thread != std::this_thread::get_id());
    CHECK(f.look(x)[0] == 8);
    CHECK(f.look(x)[2] == 4);
}

TEST_CASE("a failed creation of a handle fails one op")
{
    for (const char* step :
         {"create", "set_stream", "set_workspace", "set_pointer_mode", "set_atomics_mode", "set_math_mode"}) {
        CAPTURE(step);
        fixture f;
        const auto x = f.upload<float>({1});
        f.blas.fail(step, CUBLAS_STATUS_ARCH_MISMATCH);
        CHECK(f.run(scal{.x = x, .n = 1, .alpha = 2}) == cuda::make_error(CUBLAS_STATUS_ARCH_MISMATCH));
        CHECK(f.blas.alive() == 0);
        CHECK_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 2}));
        CHECK(f.look(x) == std::vector<float>{2});
    }
}

TEST_CASE("a failed allocation of a workspace fails one op")
{
    fixture f;
    const auto x = f.upload<float>({1});
    f.gpu.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY, 1);
    f.gpu.fail("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY, 2);
    CHECK(f.run(scal{.x = x, .n = 1, .alpha = 2}) == errc::out_of_memory);
    CHECK_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 2}));
}

TEST_CASE("a cuBLAS error fails its op, and a broken handle is replaced")
{
    struct row {
        cublasStatus_t status;
        std::size_t made;
    };
    constexpr row rows[] = {
        {CUBLAS_STATUS_NOT_INITIALIZED, 2}, {CUBLAS_STATUS_INTERNAL_ERROR, 2}, {CUBLAS_STATUS_EXECUTION_FAILED, 1},
        {CUBLAS_STATUS_INVALID_VALUE, 1},   {CUBLAS_STATUS_NOT_SUPPORTED, 1},
    };
    for (const auto& r : rows)
        for (const bool familiar : {false, true}) {
            CAPTURE(r.status);
            CAPTURE(familiar);
            fixture f;
            const auto x = f.upload<float>({1});
            if (familiar)
                REQUIRE_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 1}));
            f.blas.fail("scal", r.status);
            CHECK(f.run(scal{.x = x, .n = 1, .alpha = 2}) == cuda::make_error(r.status));
            CHECK(f.look(x) == std::vector<float>{1});
            CHECK_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 2}));
            CHECK(f.look(x) == std::vector<float>{2});
            CHECK(f.blas.calls("create").size() == r.made);
            CHECK(f.blas.alive() == 1);
        }
}

TEST_CASE("an op on a dead context gets the context's error, and the handle is not destroyed")
{
    fixture f;
    const auto x = f.upload<float>({1});
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 1}));
    f.gpu.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
    f.blas.fail("scal", CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(f.run(scal{.x = x, .n = 1, .alpha = 2}) == cuda::make_error(CUDA_ERROR_ILLEGAL_ADDRESS));
    CHECK(f.b->dead());
    f.b.reset();
    CHECK(f.blas.calls("destroy").empty());
}

TEST_CASE("a handle made for an op that is not enqueued again is destroyed")
{
    for (const bool broken : {false, true}) {
        CAPTURE(broken);
        fixture f;
        const auto x = f.upload<float>({1});
        const scal op{.x = x, .n = 1, .alpha = 2};
        if (broken) {
            f.blas.fail("scal", CUBLAS_STATUS_INTERNAL_ERROR);
            REQUIRE(f.run(op));
        }
        const auto made = f.blas.calls("create").size();
        const auto here = f.b->enter();
        bound_op o = f.bind(op);
        f.repeat_until_answered([&] {
            const bool ended = f.blas.calls("create").size() > made;
            if (!ended)
                CHECK_FALSE(test::try_start(*f.b, *f.lane, o).has_value());
            return ended ? std::optional(true) : std::nullopt;
        });
    }
}

TEST_CASE("a reduction replies and releases its pinned memory")
{
    fixture f;
    const auto x = f.upload<float>({1, 2, 3});
    const auto y = f.upload<float>({4, 5, 6});
    const auto used = f.memory();
    for (int i = 0; i < 3; ++i) {
        float product = 0;
        REQUIRE_FALSE(f.run(blas::dot<float>{.x = x, .y = y, .n = 3, .incy = -1}, &product));
        CHECK(product == 28);
    }
    f.blas.fail("dot", CUBLAS_STATUS_EXECUTION_FAILED);
    float product = 0;
    CHECK(f.run(blas::dot<float>{.x = x, .y = y, .n = 3}, &product) ==
          cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
    CHECK_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2}));
    f.gpu.fail("cuMemcpyDtoHAsync", CUDA_ERROR_INVALID_VALUE);
    CHECK(f.run(blas::dot<float>{.x = x, .y = y, .n = 3}, &product) == cuda::make_error(CUDA_ERROR_INVALID_VALUE));
    CHECK(f.memory().pinned_used == used.pinned_used);
}

TEST_CASE("iamax counts from zero in the vector's own direction, and releases its scratch memory")
{
    fixture f;
    const auto x = f.upload<float>({5, 1, -5, 2});
    std::uint64_t at = 99;
    REQUIRE_FALSE(f.run(blas::iamax<float>{.x = x, .n = 4}, &at));
    CHECK(at == 0);
    const auto used = f.memory().used;
    REQUIRE_FALSE(f.run(blas::iamax<float>{.x = x, .n = 4, .incx = -1}, &at));
    CHECK(at == 1);
    REQUIRE_FALSE(f.run(blas::iamax<float>{.x = x, .n = 2, .incx = -3}, &at));
    CHECK(at == 1);
    f.blas.fail("copy", CUBLAS_STATUS_EXECUTION_FAILED);
    CHECK(f.run(blas::iamax<float>{.x = x, .n = 4, .incx = -1}, &at) ==
          cuda::make_error(CUBLAS_STATUS_EXECUTION_FAILED));
    CHECK(f.memory().used == used);
    f.gpu.fail("cuMemsetD8Async", CUDA_ERROR_INVALID_VALUE);
    CHECK(f.run(blas::iamax<float>{.x = x, .n = 4, .incx = -1}, &at) == cuda::make_error(CUDA_ERROR_INVALID_VALUE));
    CHECK(f.memory().used == used);
    REQUIRE_FALSE(f.run(blas::iamax<float>{.x = x, .n = 4}, &at));
    CHECK(at == 0);
}

TEST_CASE("irrelevant increments and leading dimensions are replaced by valid ones")
{
    fixture f;
    const auto x = f.upload<float>({1, 2, 3});
    const auto y = f.upload<float>({1, 2, 3});
    const auto z = f.upload<float>({1, 2, 3});
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 3, .alpha = 2, .incx = -1}));
    REQUIRE_FALSE(f.run(scal{.x = x, .n = 1, .alpha = 2, .incx = limits::min()}));
    CHECK(f.look(x) == std::vector<float>{4, 4, 6});
    REQUIRE_FALSE(f.run(blas::axpy<float>{.x = x, .y = y, .n = 1, .incx = limits::min(), .incy = limits::max()}));
    CHECK(f.blas.calls("axpy").at(0).incx == 1);
    REQUIRE_FALSE(f.run(blas::axpy<float>{.x = x, .y = y, .n = 3, .alpha = 0}));
    CHECK(f.blas.calls("axpy").size() == 1);
    const auto huge = std::numeric_limits<std::uint64_t>::max();
    using gemm = blas::gemm<float>;
    REQUIRE_FALSE(f.run(gemm{.a = x, .b = y, .c = z, .m = 3, .n = 1, .k = 1, .lda = huge, .ldb = huge, .ldc = huge}));
    const auto call = f.blas.calls("gemm").at(0);
    CHECK(call.ld[0] == 3);
    CHECK(call.ld[1] == 1);
    CHECK(call.ld[2] == 3);
}

TEST_CASE("TF32 is used only for f32 ops that request it")
{
    fixture f;
    const auto a = f.upload<float>({1}), b = f.upload<float>({1}), c = f.upload<float>({1});
    using gemm = blas::gemm<float>;
    REQUIRE_FALSE(f.run(gemm{.a = a, .b = b, .c = c, .m = 1, .n = 1, .k = 1}));
    REQUIRE_FALSE(f.run(gemm{.a = a, .b = b, .c = c, .m = 1, .n = 1, .k = 1, .math = blas::math::tf32}));
    const auto calls = f.blas.calls("gemm");
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].compute == CUBLAS_COMPUTE_32F);
    CHECK(calls[1].compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    const auto da = f.upload<double>({1}), db = f.upload<double>({1}), dc = f.upload<double>({1});
    REQUIRE_FALSE(
        f.run(blas::gemm<double>{.a = da, .b = db, .c = dc, .m = 1, .n = 1, .k = 1, .math = blas::math::tf32}));
    CHECK(f.blas.calls("gemm").at(2).compute == CUBLAS_COMPUTE_64F);
}

TEST_SUITE_END();

} // namespace test_cuda_blas_handle
