#include "worker/parent/held_requests.hpp"

#include "buffer_ref.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>

#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace test_worker_held_requests {

namespace {

using namespace coaccel;
using coaccel::worker::held_requests;
using test::exec;

constexpr std::uint32_t device = 7;

ref<float> buffer(std::uint32_t slot, std::uint32_t of = device)
{
    return ref<float>::from_raw(test::buffer_ref(of, slot, 10));
}

exec<memory::fill<float>> fill(std::uint32_t slot, std::uint32_t of = device)
{
    return exec<memory::fill<float>>(memory::fill<float>{buffer(slot, of), 1.0f}, exec_options{});
}

exec<blas::axpy<float>> add(std::uint32_t from, std::uint32_t to)
{
    return exec<blas::axpy<float>>(blas::axpy<float>{.x = buffer(from), .y = buffer(to), .n = 10}, exec_options{});
}

exec<rand::uniform<float>> draw(const rand::generator& g, std::uint32_t slot)
{
    return exec<rand::uniform<float>>(rand::uniform<float>{.dst = buffer(slot), .from = g}, exec_options{});
}

struct fixture {
    bool must_wait(const detail::request& r) const { return held.must_wait(r, device); }
    bool must_wait(std::uint32_t slot) const { return held.must_wait(buffer(slot).raw(), device); }

    /// Lets go of what need not wait.
    void let_go()
    {
        started.clear();
        released.clear();
        held.let_go(
            device, [this](detail::request& r) { started.push_back(&r); },
            [this](const any_ref& b) { released.push_back(b.slot); });
    }

    /// The slots of buffers whose copies have unsent pieces.
    std::set<std::uint32_t> unsent;
    held_requests held{[this](std::uint32_t slot) { return unsent.contains(slot); }};
    std::vector<detail::request*> started;
    std::vector<std::uint32_t> released;
};

} // namespace

TEST_SUITE_BEGIN("held_requests");

TEST_CASE_FIXTURE(fixture, "without copies nothing waits")
{
    const auto r = fill(1);
    CHECK_FALSE(must_wait(r));
    CHECK_FALSE(must_wait(1));
    CHECK(held.empty());
}

TEST_CASE_FIXTURE(fixture, "a request and a release wait for the copy of their buffer, and for no other copy")
{
    unsent = {1};
    CHECK(must_wait(fill(1)));
    CHECK(must_wait(add(2, 1)));
    CHECK(must_wait(add(1, 2)));
    CHECK(must_wait(1));
    CHECK_FALSE(must_wait(fill(2)));
    CHECK_FALSE(must_wait(2));
}

TEST_CASE_FIXTURE(fixture, "an operand without a buffer waits for nothing")
{
    using product = blas::matmul<float>;
    product op{.a = buffer(1), .b = buffer(2), .d = buffer(3), .m = 2, .n = 2, .k = 2};
    exec<product> plain(op, exec_options{});
    op.bias = buffer(4);
    exec<product> biased(op, exec_options{});
    unsent = {4, any_ref::no_slot};
    CHECK_FALSE(must_wait(plain));
    CHECK(must_wait(biased));
    // Nor does anything wait for it.
    held.add(plain);
    CHECK_FALSE(must_wait(fill(5)));
    CHECK(must_wait(fill(3)));
}

TEST_CASE_FIXTURE(fixture, "a slot of another device is another buffer")
{
    unsent = {1};
    CHECK_FALSE(must_wait(fill(1, device + 1)));
    unsent = {};
    auto foreign = fill(1, device + 1);
    held.add(foreign);
    CHECK_FALSE(must_wait(fill(1)));
}

TEST_CASE_FIXTURE(fixture, "what uses the buffers of a held request waits behind it")
{
    unsent = {1};
    auto first = add(1, 2);
    REQUIRE(must_wait(first));
    held.add(first);
    CHECK(must_wait(fill(2)));
    CHECK(must_wait(2));
    CHECK_FALSE(must_wait(fill(3)));
    auto second = add(2, 3);
    held.add(second);
    CHECK(must_wait(fill(3)));
}

TEST_CASE_FIXTURE(fixture, "a use of a buffer waits behind its held release")
{
    held.add(buffer(1).raw());
    CHECK(must_wait(fill(1)));
    CHECK(must_wait(1));
    CHECK_FALSE(must_wait(fill(2)));
}

TEST_CASE_FIXTURE(fixture, "ops with the same state keep their order")
{
    const auto g = rand::make_generator();
    unsent = {1};
    auto first = draw(g, 1);
    held.add(first);
    CHECK(must_wait(draw(g, 2)));
    CHECK_FALSE(must_wait(draw(rand::make_generator(), 2)));
}

TEST_CASE_FIXTURE(fixture, "when a copy is sent, what waited for it follows in the order of arrival")
{
    unsent = {1, 5};
    auto a = add(1, 2);
    auto b = fill(2);
    auto other = fill(5);
    auto c = fill(2);
    held.add(a);
    held.add(b);
    held.add(other);
    held.add(buffer(1).raw());
    held.add(c);
    let_go();
    CHECK(started.empty());
    CHECK(released.empty());

    unsent = {5};
    let_go();
    CHECK(started == std::vector<detail::request*>{&a, &b, &c});
    CHECK(released == std::vector<std::uint32_t>{1});
    CHECK_FALSE(held.empty());

    unsent = {};
    let_go();
    CHECK(started == std::vector<detail::request*>{&other});
    CHECK(held.empty());
}

TEST_CASE_FIXTURE(fixture, "a request that begins a copy holds the later ones back")
{
    auto first = fill(1);
    auto second = fill(1);
    held.add(first);
    held.add(second);
    held.let_go(
        device,
        [this](detail::request& r) {
            started.push_back(&r);
            unsent = {1};
        },
        [](const any_ref&) {});
    CHECK(started == std::vector<detail::request*>{&first});
    unsent = {};
    let_go();
    CHECK(started == std::vector<detail::request*>{&second});
}

TEST_CASE_FIXTURE(fixture, "the requests can be taken, and the releases are forgotten")
{
    auto a = fill(1);
    auto b = fill(2);
    held.add(a);
    held.add(buffer(1).raw());
    held.add(b);
    std::vector<detail::request*> taken;
    held.take_all([&](detail::request& r) { taken.push_back(&r); });
    CHECK(taken == std::vector<detail::request*>{&a, &b});
    CHECK(held.empty());
}

TEST_SUITE_END();

} // namespace test_worker_held_requests
