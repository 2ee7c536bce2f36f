#include "cuda/backend.hpp"
#include "cuda/driver/error.hpp"
#include "memory_support.hpp"
#include "support/fake_cublas.hpp"
#include "support/start_op.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace test_cuda_memory_ops {

namespace {

using namespace coaccel;
using cuda::backend;

/// A backend on the fake driver, with one stream.
struct ops_fixture {
    explicit ops_fixture(const cuda_options& how = {})
        : made(create(how)), here(made->enter()), stream(made->make_stream(priority::normal).value())
    {
        made->listen(told.call());
    }

    std::unique_ptr<backend> create(const cuda_options& how)
    {
        backend::options o;
        static_cast<cuda_options&>(o) = how;
        o.libraries = cuda::library_tables(&fake.api(), &blas.api());
        return std::move(backend::create(o)).value();
    }

    void* allocate(std::size_t bytes, memory_kind kind = memory_kind::device)
    {
        for (;;) {
            const int rung = told.count();
            if (void* p = made->allocate(stream, bytes, kind).value())
                return p;
            told.wait_for(rung + 1);
        }
    }

    template <class Op>
    error_code run(const Op& op, std::array<void*, detail::count_operands<Op>()> operands, void* reply = nullptr)
    {
        bound_op bound{.info = &info_of<Op>(), .op = &op, .reply = reply, .operands = operands.data()};
        error_code ec;
        for (;;) {
            const int rung = told.count();
            if (const auto started = test::try_start(*made, stream, bound)) {
                ec = *started;
                break;
            }
            told.wait_for(rung + 1);
        }
        backend::event end;
        CHECK(made->record(end, stream) == error_code());
        CHECK(made->synchronize(end) == error_code());
        const error_code late = made->finish(bound);
        CHECK(bound.state == nullptr);
        return ec ? ec : late;
    }

    /// The fake's device memory is ordinary memory of this process.
    template <class T>
    std::vector<T> content(const void* p, std::size_t count)
    {
        std::vector<T> data(count);
        std::memcpy(data.data(), p, count * sizeof(T));
        return data;
    }

    test::fake_cuda fake;
    test::fake_cublas blas{fake};
    test::told told;
    std::unique_ptr<backend> made;
    cuda::context_handle::scope here;
    backend::stream stream;
};

/// A backend uses only the size of an operand.
template <element T>
ref<T> of_size(std::size_t count)
{
    return ref<T>::from_raw({.size = count, .type = dtype_v<T>});
}

template <element T>
std::vector<T> random_elements(std::size_t count)
{
    static std::mt19937_64 random(std::random_device{}());
    std::vector<T> data(count);
    auto* bytes = reinterpret_cast<unsigned char*>(data.data());
    for (std::size_t i = 0; i < count * sizeof(T); ++i)
        bytes[i] = static_cast<unsigned char>(random());
    return data;
}

template <element T>
bool same(const std::vector<T>& a, const std::vector<T>& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <element T>
void check_fill(ops_fixture& f)
{
    CAPTURE(std::string(to_string(dtype_v<T>)));
    for (const std::size_t count : {1, 2, 1023, 1024, 1025, 5000}) {
        CAPTURE(count);
        auto* p = static_cast<T*>(f.allocate((count + 2) * sizeof(T)));
        const auto value = random_elements<T>(1);
        auto expected = random_elements<T>(count + 2);
        const auto size = (count + 2) * sizeof(T);
        detail::write_op<T> write{.dst = of_size<T>(count + 2), .src = expected.data(), .count = count + 2};
        CHECK(f.run(write, {p}) == error_code());
        for (const bool zero : {false, true}) {
            const T filler = zero ? T{} : value[0];
            CHECK(f.run(memory::fill<T>{.dst = of_size<T>(count), .value = filler}, {p + 1}) == error_code());
            for (std::size_t i = 1; i <= count; ++i)
                std::memcpy(static_cast<void*>(&expected[i]), &filler, sizeof(T));
            CHECK(same(f.content<T>(p, count + 2), expected));
        }
        f.made->release(f.stream, p, size, memory_kind::device);
    }
}

template <element T>
void check_transfers(ops_fixture& f)
{
    CAPTURE(std::string(to_string(dtype_v<T>)));
    for (const std::size_t count : {std::size_t(5), std::size_t(100000)}) {
        CAPTURE(count);
        const std::size_t size = count * sizeof(T);
        void* a = f.allocate(size);
        void* b = f.allocate(size);
        const auto data = random_elements<T>(count);
        const auto whole = of_size<T>(count);
        CHECK(f.run(detail::write_op<T>{.dst = whole, .src = data.data(), .count = count}, {a}) == error_code());
        CHECK(f.run(memory::copy<T>{.src = whole, .dst = whole}, {a, b}) == error_code());
        std::vector<T> back(count);
        CHECK(f.run(detail::read_op<T>{.src = whole, .dst = back.data(), .count = count}, {b}) == error_code());
        CHECK(same(back, data));
        std::vector<T> collected;
        const detail::collector sink{&collected,
                                     [](void* self, const void* d, std::size_t n) noexcept {
                                         const auto* first = static_cast<const T*>(d);
                                         static_cast<std::vector<T>*>(self)->assign(first, first + n / sizeof(T));
                                     },
                                     [](void* self, std::size_t n) noexcept -> void* {
                                         auto* v = static_cast<std::vector<T>*>(self);
                                         v->resize(n / sizeof(T));
                                         return v->data();
                                     }};
        CHECK(f.run(detail::collect_op<T>{.src = whole, .sink = sink}, {b}) == error_code());
        CHECK(same(collected, data));
        f.made->release(f.stream, a, size, memory_kind::device);
        f.made->release(f.stream, b, size, memory_kind::device);
    }
}

template <class... Ts>
void check_all(ops_fixture& f, type_list<Ts...>)
{
    (check_fill<Ts>(f), ...);
    (check_transfers<Ts>(f), ...);
}

} // namespace

TEST_SUITE_BEGIN("cuda memory ops");

TEST_CASE_FIXTURE(ops_fixture, "fills and transfers move every bit of every element type, and nothing else")
{
    check_all(*this, element_types{});
}

TEST_CASE_FIXTURE(ops_fixture, "a driver error at any call of a fill or copy fails the op")
{
    using c128 = std::complex<double>;
    void* p = allocate(4000 * sizeof(c128));
    const auto refused = cuda::make_error(CUDA_ERROR_NOT_PERMITTED);
    for (const char* function : {"cuMemsetD2D32Async", "cuMemcpyDtoDAsync"}) {
        CAPTURE(std::string(function));
        for (const int nth : {1, 2}) {
            fake.fail(function, CUDA_ERROR_NOT_PERMITTED, nth);
            CHECK(run(memory::fill<c128>{.dst = of_size<c128>(4000), .value = {1, 2}}, {p}) == refused);
        }
    }
    fake.fail("cuMemsetD32Async", CUDA_ERROR_NOT_PERMITTED);
    CHECK(run(memory::fill<c128>{.dst = of_size<c128>(4000)}, {p}) == refused);
    fake.fail("cuMemsetD8Async", CUDA_ERROR_NOT_PERMITTED);
    CHECK(run(memory::fill<std::int8_t>{.dst = of_size<std::int8_t>(10)}, {p}) == refused);
    fake.fail("cuMemsetD16Async", CUDA_ERROR_NOT_PERMITTED);
    CHECK(run(memory::fill<coaccel::half>{.dst = of_size<coaccel::half>(10)}, {p}) == refused);
    fake.fail("cuMemcpyDtoDAsync", CUDA_ERROR_NOT_PERMITTED);
    CHECK(run(memory::copy<c128>{.src = of_size<c128>(10), .dst = of_size<c128>(10)},
              {p, static_cast<c128*>(p) + 10}) == refused);
}

TEST_CASE_FIXTURE(ops_fixture,
                  "prefetch and advice reach the driver, which refuses them for memory that is not managed")
{
    using memory::advice;
    using memory::place;
    void* managed = allocate(4096, memory_kind::managed);
    void* plain = allocate(4096);
    const auto target = of_size<float>(1024);
    const auto refused = cuda::make_error(CUDA_ERROR_INVALID_VALUE);
    for (const auto to : {place::device, place::host}) {
        CHECK(run(memory::prefetch<float>{.target = target, .to = to}, {managed}) == error_code());
        CHECK(run(memory::prefetch<float>{.target = target, .to = to}, {plain}) == refused);
    }
    CHECK(fake.calls("cuMemPrefetchAsync") == 4);
    for (int a = 0; a <= int(advice::accessed_by_host); ++a) {
        CHECK(run(memory::advise<float>{.target = target, .what = advice(a)}, {managed}) == error_code());
        CHECK(run(memory::advise<float>{.target = target, .what = advice(a)}, {plain}) == refused);
    }
    CHECK(fake.calls("cuMemAdvise") == 14);
}

TEST_CASE("a prefetch or an advice with an invalid argument is a caller error")
{
    const auto target = of_size<float>(1);
    CHECK(memory::prefetch<float>{.target = target}.check() == error_code());
    CHECK(memory::prefetch<float>{}.check() == errc::invalid_argument);
    CHECK(memory::prefetch<float>{.target = target, .to = memory::place(2)}.check() == errc::invalid_argument);
    CHECK(memory::advise<float>{.target = target}.check() == error_code());
    CHECK(memory::advise<float>{}.check() == errc::invalid_argument);
    CHECK(memory::advise<float>{.target = target, .what = memory::advice(7)}.check() == errc::invalid_argument);
}

TEST_CASE_FIXTURE(ops_fixture, "trim releases memory cached by the pools")
{
    constexpr std::size_t size = std::size_t(32) << 20;
    made->release(stream, allocate(size), size, memory_kind::device);
    std::vector<float> data(100000);
    void* p = allocate(data.size() * sizeof(float));
    CHECK(run(detail::write_op<float>{.dst = of_size<float>(data.size()), .src = data.data(), .count = data.size()},
              {p}) == error_code());
    CHECK(made->memory().reserved >= size);
    CHECK(made->memory().pinned_reserved > 0);
    CHECK(run(memory::trim{}, {}) == error_code());
    CHECK(made->memory().reserved < size);
    CHECK(made->memory().pinned_reserved == 0);
}

TEST_CASE("copies and reductions complete while users hold all pinned memory available to them")
{
    constexpr std::size_t mib = std::size_t(1) << 20;
    for (const std::uint64_t limit : {4 * mib, 64 * mib})
        for (const std::size_t each : {std::size_t(1), mib / 4, mib, 2 * mib}) {
            CAPTURE(limit);
            CAPTURE(each);
            cuda_options how;
            how.pinned_limit = limit;
            ops_fixture f(how);
            std::vector<void*> held;
            for (;;) {
                const int rung = f.told.count();
                if (void* p = f.made->pinned()->try_allocate(each).value()) {
                    held.push_back(p);
                    continue;
                }
                // No slab is being created any more, and no block will be released.
                if (f.made->quiet() && f.told.count() == rung)
                    break;
                std::this_thread::yield();
            }
            CHECK(held.size() > 0);
            check_transfers<float>(f);
            constexpr std::size_t count = 3 * mib / sizeof(float);
            const std::vector<float> data(count, 1.0f);
            void* p = f.allocate(count * sizeof(float));
            CHECK(f.run(detail::write_op<float>{.dst = of_size<float>(count), .src = data.data(), .count = count},
                        {p}) == error_code());
            float sum = 0;
            const auto x = of_size<float>(1000);
            CHECK(f.run(blas::dot<float>{.x = x, .y = x, .n = 1000}, {p, p}, &sum) == error_code());
            CHECK(sum == 1000);
            CHECK(f.made->memory().pinned_reserved <= limit);
            for (void* h : held)
                f.made->pinned()->release(h);
            f.made->release(f.stream, p, count * sizeof(float), memory_kind::device);
        }
}

TEST_CASE_FIXTURE(ops_fixture, "a user function gets the stream of its op")
{
    struct seen {
        std::string backend;
        void* handle = nullptr;
    } saw;
    const detail::user_op op{&saw, [](void* self, const bound_op&, native_stream s) noexcept {
                                 static_cast<seen*>(self)->backend = s.backend;
                                 static_cast<seen*>(self)->handle = s.handle;
                             }};
    op_info info;
    info.id = detail::user_op_id;
    bound_op bound{.info = &info, .op = &op};
    CHECK_FALSE(test::start(*made, stream, bound));
    CHECK(made->finish(bound) == error_code());
    CHECK(saw.backend == "cuda");
    CHECK(fake.pending(static_cast<CUstream>(saw.handle)) == 0);
}

TEST_SUITE_END();

} // namespace test_cuda_memory_ops
