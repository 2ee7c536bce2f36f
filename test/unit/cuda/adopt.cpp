#include "foreign_code.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace test_cuda_adopt {

// Buffers over memory of other CUDA code in the process.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::adopt;
using test::adoption;
using test::context_driver;
using test::cuda_world;
using test::exec;
using test::foreign_code;
using test::hold;
using test::hold_lane;

using fill_op = exec<memory::fill<float>>;

fill_op fill(ref<float> x, float value)
{
    return fill_op(memory::fill<float>{x, value}, exec_options{});
}

std::string hex(const void* p)
{
    return std::string(detail::address_text(p).view());
}

} // namespace

TEST_SUITE_BEGIN("cuda adopt");

TEST_CASE("ops read and write adopted memory, which is never freed by the context")
{
    cuda_world w;
    foreign_code other(w.driver);
    float* memory = other.allocate(8);
    {
        context_driver d(w);
        const auto x = adopt(d, memory, 8);
        CHECK(d.context->live_buffers() == 1);
        CHECK(d.context->memory().used == 0);
        d.write(x, {1, 2, 3, 4, 5, 6, 7, 8});
        auto part = fill(x.subspan(2, 3), 9.0f);
        CHECK_FALSE(d.outcome_of(part));
        CHECK(std::vector<float>(memory, memory + 8) == std::vector<float>{1, 2, 9, 9, 9, 6, 7, 8});
        d.context->release(x.raw());
        CHECK(d.context->live_buffers() == 0);
        auto late = fill(x, 0.0f);
        CHECK(d.outcome_of(late) == errc::released_ref);
        // A part of an allocation, which is still adopted when the context ends.
        const auto tail = adopt(d, memory + 4, 4);
        CHECK(d.read(tail) == std::vector<float>{9, 6, 7, 8});
    }
    CHECK(memory[0] == 1);
    other.free(memory);
}

TEST_CASE("memory that ops cannot use is refused, with its address")
{
    cuda_world w(test::fake_cuda::settings{.devices = 2});
    foreign_code other(w.driver);
    float* memory = other.allocate(100);
    context_driver d(w);
    const auto refusal = [&](void* p, std::size_t count) {
        adoption r(static_cast<float*>(p), count, nullptr);
        const auto ec = d.outcome_of(r);
        if (ec)
            CHECK(std::get<1>(r.take()).ref().raw().device == 0);
        return ec;
    };
    const auto check = [](const error_code& ec, errc what, const std::string& text) {
        CHECK(ec == what);
        CHECK(ec.message() == "memory.adopt: " + text);
    };
    check(refusal(nullptr, 4), errc::invalid_argument, "pointer is null");
    check(refusal(memory, 0), errc::invalid_argument, "count is 0");
    auto* odd = reinterpret_cast<char*>(memory) + 2;
    check(refusal(odd, 4), errc::invalid_argument,
          "pointer is " + hex(odd) + ", which is not a multiple of 4, the size of f32");
    check(refusal(memory, std::size_t(1) << 61), errc::size_overflow,
          "count is 2305843009213693952, too many elements of 4 bytes");
    check(refusal(memory, 101), errc::out_of_bounds,
          "count is 101, which is 404 bytes; the allocation of pointer " + hex(memory) +
              " has 400 bytes from there on");
    check(refusal(memory + 90, 11), errc::out_of_bounds,
          "count is 11, which is 44 bytes; the allocation of pointer " + hex(memory + 90) +
              " has 40 bytes from there on");
    CHECK_FALSE(refusal(memory + 90, 10));
    CHECK_FALSE(refusal(memory, 100));

    alignas(16) float on_the_stack[4]{};
    check(refusal(on_the_stack, 4), errc::invalid_argument,
          "pointer is " + hex(on_the_stack) + ", which the driver does not know");
    CHECK(w.driver.api().cuMemHostRegister(on_the_stack, sizeof on_the_stack, 0) == CUDA_SUCCESS);
    check(refusal(on_the_stack, 4), errc::invalid_argument,
          "pointer is " + hex(on_the_stack) + ", which is host memory");
    CHECK(w.driver.api().cuMemHostUnregister(on_the_stack) == CUDA_SUCCESS);

    {
        foreign_code second(w.driver, 1);
        float* far = second.allocate(4);
        check(refusal(far, 4), errc::wrong_device,
              "pointer is " + hex(far) + ", memory of GPU 1; the device uses GPU 0");
        second.free(far);
        check(refusal(far, 4), errc::invalid_argument, "pointer is " + hex(far) + ", which the driver does not know");
    }
    w.driver.fail("cuPointerGetAttributes", CUDA_ERROR_NOT_SUPPORTED);
    CHECK(refusal(memory, 4).value() == CUDA_ERROR_NOT_SUPPORTED);
    w.driver.fail("cuPointerGetAttributes", CUDA_ERROR_NOT_SUPPORTED, 2);
    CHECK(refusal(memory, 4).value() == CUDA_ERROR_NOT_SUPPORTED);
    CHECK(d.losses == 0);
    other.free(memory);
}

TEST_CASE("managed memory can be adopted, on whichever GPU it is")
{
    cuda_world w(test::fake_cuda::settings{.devices = 2});
    foreign_code second(w.driver, 1);
    CUdeviceptr managed = 0;
    REQUIRE(w.driver.api().cuMemAllocManaged(&managed, 16, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    {
        context_driver d(w);
        const auto x = adopt(d, reinterpret_cast<void*>(managed), 4);
        auto r = fill(x, 5.0f);
        CHECK_FALSE(d.outcome_of(r));
        CHECK(d.read(x) == std::vector<float>(4, 5.0f));
    }
    CHECK(w.driver.api().cuMemFree(managed) == CUDA_SUCCESS);
}

TEST_CASE("the owner lives until the buffer was released and the last op has ended")
{
    cuda_world w;
    foreign_code other(w.driver);
    context_driver d(w);
    auto owner = other.owned(4);
    void* memory = owner.get();
    const auto x = adopt(d, memory, 4, std::move(owner));
    test::gate gate;
    hold<inout<float>> slow(hold_lane{&w, gate}, std::tuple(inout<float>(x)));
    d.submit(slow);
    auto after = fill(x, 2.0f);
    d.submit(after);
    d.context->release(x.raw());
    d.run_until([&] { return gate.reached(1); });
    CHECK(other.frees == 0);
    // Memory of our own can be allocated and released meanwhile.
    d.context->release(d.floats(16).raw());
    CHECK(other.frees == 0);
    gate.open();
    d.run_until([&] { return d.has_ended(slow) && d.has_ended(after); });
    d.run_until([&] { return other.frees == 1; });
    CHECK_FALSE(d.outcome(after));

    // Without ops the owner is destroyed with the release.
    auto second = other.owned(4);
    void* unused = second.get();
    d.context->release(adopt(d, unused, 4, std::move(second)).raw());
    CHECK(other.frees == 2);
}

TEST_CASE("an owner outlives a refused adoption only in the caller's hands")
{
    cuda_world w;
    foreign_code other(w.driver);
    context_driver d(w);
    auto owner = other.owned(4);
    {
        adoption r(static_cast<float*>(owner.get()), 5, owner);
        CHECK(d.outcome_of(r) == errc::out_of_bounds);
    }
    CHECK(owner.use_count() == 1);
}

TEST_CASE("the end of a context destroys the owners of its buffers, after its work")
{
    cuda_world w;
    foreign_code other(w.driver);
    test::gate gate;
    {
        context_driver d(w);
        auto owner = other.owned(4);
        void* memory = owner.get();
        const auto x = adopt(d, memory, 4, std::move(owner));
        auto r = fill(x, 2.0f);
        d.submit(r);
        auto kept = other.owned(4);
        void* second = kept.get();
        (void)adopt(d, second, 4, std::move(kept));
        d.context->release(x.raw());
    }
    CHECK(other.frees == 2);
}

TEST_CASE("owners can be taken from a context that has ended, to be destroyed elsewhere")
{
    cuda_world w;
    foreign_code other(w.driver);
    std::unique_ptr<detail::owner_list> owners;
    {
        context_driver d(w);
        auto owner = other.owned(4);
        void* memory = owner.get();
        (void)adopt(d, memory, 4, std::move(owner));
        detail::async_op_list dropped;
        d.context->drop(dropped);
        owners = d.context->take_owners();
    }
    REQUIRE(owners);
    CHECK(owners->size() == 1);
    CHECK(other.frees == 0);
    owners.reset();
    CHECK(other.frees == 1);
}

TEST_CASE("after a fault the owners are destroyed with the context, not before")
{
    cuda_world w;
    int destroyed = 0;
    {
        foreign_code other(w.driver);
        context_driver d(w);
        // The memory of a dead context cannot be freed any more.
        const std::shared_ptr<void> owner(other.allocate(4), [&](void*) { ++destroyed; });
        const auto x = adopt(d, owner.get(), 4, std::shared_ptr<void>(nullptr, [&](void*) { ++destroyed; }));
        w.driver.kill_at(CUDA_ERROR_ILLEGAL_ADDRESS, 1);
        auto r = fill(x, 2.0f);
        CHECK(d.outcome_of(r) == errc::context_lost);
        d.context->release(x.raw());
        CHECK(destroyed == 0);
        d.run_until([&] { return d.losses > 0; });
        CHECK(destroyed == 0);
        adoption late(static_cast<float*>(owner.get()), 4, nullptr);
        CHECK(d.outcome_of(late) == errc::context_lost);
    }
    CHECK(destroyed == 2);
}

TEST_CASE("an owner is never destroyed if work that hangs may still use its memory")
{
    cuda_world w;
    w.context.hang_timeout = 200ms;
    foreign_code other(w.driver);
    test::gate never;
    const std::shared_ptr<void> memory(other.allocate(4), [&](void* p) { other.free(p); });
    int destroyed = 0;
    {
        context_driver d(w);
        const auto x =
            adopt(d, memory.get(), 4, std::shared_ptr<void>(&destroyed, [](void* n) { ++*static_cast<int*>(n); }));
        hold<inout<float>> hung(hold_lane{&w, never}, std::tuple(inout<float>(x)));
        d.submit(hung);
        d.run_until([&] { return d.losses > 0; });
        CHECK(d.outcome(hung) == errc::context_lost);
        d.context->release(x.raw());
    }
    CHECK(destroyed == 0);
    never.open();
    // An abandoned context leaves everything to the end of the process.
    CHECK(w.driver.violations().empty());
}

TEST_SUITE_END();

} // namespace test_cuda_adopt
