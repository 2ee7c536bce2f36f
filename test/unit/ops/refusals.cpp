#include "support/device_fixture.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

namespace test_ops_refusals {

// The errors of a device for ops that its context refuses. The messages do not depend on where the context is.
namespace {

using namespace coaccel;
using test::device_fixture;

/// Not known to any backend.
template <element T>
struct foreign {
    using value_type = T;

    inout<T> x;

    error_code check() const noexcept { return {}; }

    COACCEL_OP(user, foreign, void, x)
};

template <class Body>
void on_each_device(Body body)
{
    for (const auto& options : test::devices_under_test()) {
        CAPTURE(options.kind);
        device_fixture f(options);
        body(f);
    }
}

template <class T>
ref<T> changed(const ref<T>& from, const std::function<void(any_ref&)>& change)
{
    any_ref raw = from.raw();
    change(raw);
    return ref<T>::from_raw(raw);
}

template <class... Ops>
asio::awaitable<error_code> run_seq(device dev, op_seq<Ops...> ops)
{
    const auto done = co_await dev.async_exec(ops);
    co_return done ? error_code() : done.error();
}

template <class T>
asio::awaitable<error_code> read(device dev, ref<T> from, std::span<T> to)
{
    const auto done = co_await dev.async_read(from, to);
    co_return done ? error_code() : done.error();
}

template <class T>
asio::awaitable<error_code> write(device dev, ref<T> to, std::span<const T> from)
{
    const auto done = co_await dev.async_write(to, from);
    co_return done ? error_code() : done.error();
}

template <class T>
asio::awaitable<error_code> download(device dev, ref<T> from)
{
    const auto done = co_await dev.async_download(from);
    co_return done ? error_code() : done.error();
}

asio::awaitable<error_code> upload_nothing(device dev)
{
    const auto done = co_await dev.async_upload(std::span<const float>());
    co_return done ? error_code() : done.error();
}

asio::awaitable<error_code> allocate(device dev, std::size_t count)
{
    const auto done = co_await dev.async_alloc<double>(count);
    co_return done ? error_code() : done.error();
}

void check(const error_code& got, errc code, const std::string& message)
{
    CHECK(got.message() == message);
    CHECK_MESSAGE(got == code, message);
}

} // namespace

TEST_SUITE_BEGIN("refused ops");

TEST_CASE("the message for a field out of range names the field and its value")
{
    on_each_device([](device_fixture& f) {
        const auto x = f.upload(std::vector<float>(12));
        const auto y = f.upload(std::vector<float>(10));
        check(f.error_of(blas::gemm<float>{.a = x, .b = x, .c = y, .m = 2, .n = 2}), errc::invalid_argument,
              "blas.gemm: k is 0");
        check(f.error_of(memory::copy<float>{.src = x, .dst = y}), errc::length_mismatch,
              "memory.copy: dst has 10 elements, src 12");
        check(test::co_run(f.io, allocate(f.gpu, 0)), errc::invalid_argument, "memory.allocate: count is 0");
        check(test::co_run(f.io, upload_nothing(f.gpu)), errc::invalid_argument,
              "memory.write: the host range has 0 elements");
        std::vector<float> host(11);
        check(test::co_run(f.io, read(f.gpu, x.ref(), std::span(host))), errc::length_mismatch,
              "memory.read: the host range has 11 elements, src 12");
        check(test::co_run(f.io, write(f.gpu, y.ref(), std::span<const float>(host))), errc::length_mismatch,
              "memory.write: the host range has 11 elements, dst 10");
        check(test::co_run(f.io, download(f.gpu, ref<float>())), errc::invalid_argument,
              "memory.download: src has 0 elements");
    });
}

TEST_CASE("the message for an unusable operand names the operand and the reason")
{
    struct row {
        errc code;
        const char* message;
        std::function<void(any_ref&)> change;
    };
    const row rows[] = {
        {errc::invalid_argument, " names no buffer", [](any_ref& r) { r.device = 0; }},
        {errc::wrong_device, " belongs to another device", [](any_ref& r) { r.device += 1000; }},
        {errc::stale_ref, " is of generation 7, the device is at generation 1", [](any_ref& r) { r.generation = 7; }},
        {errc::out_of_bounds, " names 10 elements from 3 on, its buffer has 10", [](any_ref& r) { r.offset = 3; }},
        {errc::out_of_bounds, " is a subspan of 10 elements outside its ref",
         [](any_ref& r) { r.offset = any_ref::invalid_offset; }},
        {errc::wrong_dtype, " takes f32, given a ref of f64", [](any_ref& r) { r.type = dtype::f64; }},
    };
    on_each_device([&](device_fixture& f) {
        const auto x = f.upload(std::vector<float>(10));
        const auto y = f.upload(std::vector<float>(10));
        std::vector<float> host(10);
        for (const row& r : rows) {
            CAPTURE(r.message);
            const auto bad = changed(x.ref(), r.change);
            check(f.error_of(memory::copy<float>{.src = bad, .dst = y}), r.code,
                  std::string("memory.copy: src") + r.message);
            check(f.error_of(memory::copy<float>{.src = y, .dst = bad}), r.code,
                  std::string("memory.copy: dst") + r.message);
            check(f.error_of(blas::dot<float>{.x = y, .y = bad, .n = 5}), r.code,
                  std::string("blas.dot: y") + r.message);
            check(test::co_run(f.io, read(f.gpu, bad, std::span(host))), r.code,
                  std::string("memory.read: src") + r.message);
            check(test::co_run(f.io, write(f.gpu, bad, std::span<const float>(host))), r.code,
                  std::string("memory.write: dst") + r.message);
            check(test::co_run(f.io, download(f.gpu, bad)), r.code, std::string("memory.download: src") + r.message);
        }
        CHECK_FALSE(f.error_of(memory::copy<float>{.src = x, .dst = y}));
    });
}

TEST_CASE("the message for a released buffer or one of another type names the operand")
{
    on_each_device([](device_fixture& f) {
        auto x = f.upload(std::vector<float>(10));
        const auto y = f.upload(std::vector<float>(10));
        const auto as_double = ref<double>::from_raw(x.ref().raw());
        check(f.error_of(memory::fill<double>{.dst = as_double}), errc::wrong_dtype,
              "memory.fill: dst takes f64, its buffer holds f32");
        check(test::co_run(f.io, download(f.gpu, as_double)), errc::wrong_dtype,
              "memory.download: src takes f64, its buffer holds f32");
        const auto dangling = x.ref();
        x.reset();
        check(f.error_of(memory::copy<float>{.src = dangling, .dst = y}), errc::released_ref,
              "memory.copy: the buffer of src has been released");
        check(test::co_run(f.io, download(f.gpu, dangling)), errc::released_ref,
              "memory.download: the buffer of src has been released");
    });
}

TEST_CASE("the message for overlapping operands names both")
{
    on_each_device([](device_fixture& f) {
        const auto x = f.upload(std::vector<float>(16));
        check(f.error_of(memory::copy<float>{.src = x.subspan(0, 8), .dst = x.subspan(4, 8)}), errc::overlap,
              "memory.copy: src and dst overlap");
        check(f.error_of(blas::gemm<float>{
                  .a = x.subspan(0, 4), .b = x.subspan(4, 4), .c = x.subspan(6, 4), .m = 2, .n = 2, .k = 2}),
              errc::overlap, "blas.gemm: b and c overlap");
    });
}

TEST_CASE("in a seq the message names the op that was refused")
{
    on_each_device([](device_fixture& f) {
        const auto x = f.upload(std::vector<float>(12));
        const auto y = f.upload(std::vector<float>(10));
        const memory::fill<float> fill{.dst = x, .value = 1.0f};
        check(test::co_run(f.io, run_seq(f.gpu, seq(fill, fill, memory::copy<float>{.src = x, .dst = y}))),
              errc::length_mismatch, "memory.copy, third of seq: dst has 10 elements, src 12");
        check(test::co_run(
                  f.io, run_seq(f.gpu, seq(memory::copy<float>{.src = x.subspan(0, 4), .dst = x.subspan(0, 4)}, fill))),
              errc::overlap, "memory.copy, first of seq: src and dst overlap");
        const memory::fill<float> lost{.dst = changed(x.ref(), [](any_ref& r) { r.generation = 9; })};
        check(test::co_run(f.io, run_seq(f.gpu, seq(fill, lost))), errc::stale_ref,
              "memory.fill, second of seq: dst is of generation 9, the device is at generation 1");
        check(test::co_run(f.io, run_seq(f.gpu, seq(fill, fill, fill, fill, fill, fill, fill, fill, fill, fill, lost))),
              errc::stale_ref, "memory.fill, op 11 of seq: dst is of generation 9, the device is at generation 1");
    });
}

TEST_CASE("the message for an op that the backend does not implement names the op, its element type and the backend")
{
    on_each_device([](device_fixture& f) {
        const auto x = f.upload(std::vector<float>(4));
        const auto stats = test::await(f.io, f.gpu.async_stats());
        REQUIRE(stats);
        const std::string why = ": the " + stats.value().backend + " backend does not implement it";
        check(f.error_of(foreign<float>{x}), errc::unsupported_op, "user.foreign<f32>" + why);
        const memory::fill<float> fill{.dst = x, .value = 1.0f};
        check(test::co_run(f.io, run_seq(f.gpu, seq(fill, foreign<float>{x}))), errc::unsupported_op,
              "user.foreign<f32>, second of seq" + why);
    });
}

TEST_CASE("the message for a function missing in every plug-in names the function")
{
    on_each_device([](device_fixture& f) {
        const auto x = f.upload(std::vector<float>(4));
        check(f.error_of(plugin::call("no_such_function", in(x))), errc::function_missing,
              "plugin.call: no plug-in has a function named no_such_function, because device_options::plugin is null");
    });
}

TEST_SUITE_END();

} // namespace test_ops_refusals
