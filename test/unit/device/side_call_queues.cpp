#include "device/compile_calls.hpp"
#include "device/pinned_calls.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace test_device_side_call_queues {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

struct wants_pinned final : pinned_call {
    explicit wants_pinned(std::size_t bytes) : pinned_call(bytes, 1) {}
    wants_pinned(std::size_t count, std::size_t size) : pinned_call(count, size) {}
    void post() override {}
    void destroy() noexcept override {}
};

struct wants_kernel final : compile_call {
    explicit wants_kernel(std::uint64_t number) : compile_call("source", {}) { sequence = number; }
    void post() override {}
    void destroy() noexcept override {}
};

/// Has a number of bytes, and refuses more than it could ever have.
struct some_memory final : pinned_memory {
    result<void*> try_allocate(std::size_t bytes) override
    {
        if (bytes > 100)
            return errc::out_of_memory;
        if (bytes > left)
            return nullptr;
        left -= bytes;
        return &left;
    }
    void release(void*) noexcept override { ++released; }

    std::size_t left = 10;
    int released = 0;
};

struct answers {
    auto note()
    {
        return [this](request& r, const error_code& ec) { given.emplace_back(&r, ec); };
    }

    std::vector<std::pair<request*, error_code>> given;
};

} // namespace

TEST_SUITE_BEGIN("side calls");

TEST_CASE("pinned memory is given in the order of the calls, and a large call holds later ones back")
{
    const auto memory = std::make_shared<some_memory>();
    wants_pinned first(4), large(8), small(1);
    pinned_calls calls;
    for (auto* c : {&first, &large, &small})
        calls.add(*c);
    answers a;
    calls.serve(memory, a.note());
    REQUIRE(a.given.size() == 1);
    CHECK(a.given[0].first == &first);
    CHECK_FALSE(a.given[0].second);
    CHECK(first.memory != nullptr);
    memory->left = 9;
    calls.serve(memory, a.note());
    CHECK(a.given.size() == 3);
    CHECK(a.given[1].first == &large);
    CHECK(a.given[2].first == &small);
}

TEST_CASE("a call that can never have its memory is answered, and does not hold others back")
{
    const auto memory = std::make_shared<some_memory>();
    wants_pinned none(0), overflow(std::numeric_limits<std::size_t>::max(), 2), too_much(101), fine(1);
    pinned_calls calls;
    for (auto* c : {&none, &overflow, &too_much, &fine})
        calls.add(*c);
    answers a;
    calls.serve(memory, a.note());
    REQUIRE(a.given.size() == 4);
    CHECK(a.given[0].second == errc::invalid_argument);
    CHECK(a.given[1].second == errc::size_overflow);
    CHECK(a.given[2].second == errc::out_of_memory);
    CHECK_FALSE(a.given[3].second);
}

TEST_CASE("a pinned call that is cancelled makes room for the next one")
{
    const auto memory = std::make_shared<some_memory>();
    wants_pinned large(50), small(1);
    pinned_calls calls;
    calls.add(large);
    calls.add(small);
    answers a;
    calls.serve(memory, a.note());
    CHECK(a.given.empty());
    calls.remove(large);
    calls.serve(memory, a.note());
    CHECK(a.given.size() == 1);
    async_op_list left;
    calls.take_all(left);
    CHECK(left.empty());
}

TEST_CASE("each compilation is started once, and one that cannot start is answered")
{
    wants_kernel a(1), b(2), c(3);
    compile_calls calls;
    calls.add(a);
    calls.add(b);
    std::vector<std::uint64_t> started;
    answers given;
    const auto start = [&](compile_call& call) {
        started.push_back(call.sequence);
        return call.sequence == 2 ? make_error_code(errc::start_failed) : error_code();
    };
    calls.begin(start, given.note());
    calls.add(c);
    calls.begin(start, given.note());
    CHECK(started == std::vector<std::uint64_t>{1, 2, 3});
    REQUIRE(given.given.size() == 1);
    CHECK(given.given[0].first == &b);
    CHECK(given.given[0].second == errc::start_failed);
}

TEST_CASE("a compiled kernel finds its call unless that has left")
{
    wants_kernel a(1), b(2);
    compile_calls calls;
    calls.add(a);
    calls.add(b);
    calls.remove(a);
    CHECK(calls.take(1) == nullptr);
    CHECK(calls.take(2) == &b);
    CHECK(calls.take(2) == nullptr);
    CHECK(calls.empty());
}

TEST_CASE("all calls can be taken at once")
{
    wants_kernel a(1), b(2);
    compile_calls calls;
    calls.add(a);
    calls.add(b);
    async_op_list all;
    calls.take_all(all);
    CHECK(all.pop_front() == &a);
    CHECK(all.pop_front() == &b);
    CHECK(calls.empty());
}

TEST_SUITE_END();

} // namespace test_device_side_call_queues
