#include "worker/parent/staged_run.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace test_worker_staged_run {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::run_argument;

struct fixture {
    fixture()
    {
        op.inputs = inputs;
        op.input_count = 2;
        op.outputs = &output;
        op.output_count = 1;
    }

    std::shared_ptr<staging> memory = staging::create(std::uint64_t(1) << 20).value();
    std::vector<std::byte> a = std::vector<std::byte>(10, std::byte{1});
    std::vector<std::byte> b = std::vector<std::byte>(100, std::byte{2});
    std::vector<std::byte> y = std::vector<std::byte>(7);
    run_argument inputs[2] = {{a.data(), {0, 10}}, {b.data(), {256, 100}}};
    run_argument output{y.data(), {512, 7}};
    detail::plan_run_op op;
    run_frame frame;
};

} // namespace

TEST_SUITE_BEGIN("staged_run");

TEST_CASE("inputs are copied into a block, and outputs out of it")
{
    fixture f;
    const staged_run run(f.op, *f.memory);
    REQUIRE(run.bytes() == 64 + 128 + 64);
    CHECK_FALSE(run.into_pinned());
    const auto block = f.memory->take(run.bytes());
    REQUIRE(block);
    run.fill(*block, f.frame);
    REQUIRE(f.frame.inputs.size() == 2);
    REQUIRE(f.frame.outputs.size() == 1);
    CHECK(f.frame.inputs[1].where.offset == 256);
    CHECK(f.frame.inputs[1].where.bytes == 100);
    CHECK(f.frame.inputs[1].offset == *block + 64);
    CHECK(f.frame.outputs[0].offset == *block + 192);
    CHECK(std::memcmp(f.memory->at(f.frame.inputs[0].offset), f.a.data(), 10) == 0);
    CHECK(std::memcmp(f.memory->at(f.frame.inputs[1].offset), f.b.data(), 100) == 0);
    std::memset(f.memory->at(f.frame.outputs[0].offset), 9, 7);
    run.deliver(*block);
    CHECK(f.y == std::vector<std::byte>(7, std::byte{9}));
    CHECK(f.a == std::vector<std::byte>(10, std::byte{1}));
}

TEST_CASE("pinned arguments stay where they are")
{
    fixture f;
    auto* pinned = static_cast<std::byte*>(f.memory->try_allocate(4096).value());
    REQUIRE(pinned);
    f.inputs[0].host = pinned + 100;
    f.output.host = pinned + 300;
    const staged_run run(f.op, *f.memory);
    CHECK(run.bytes() == 128);
    CHECK(run.into_pinned());
    const auto block = f.memory->take(run.bytes());
    REQUIRE(block);
    run.fill(*block, f.frame);
    CHECK(f.memory->at(f.frame.inputs[0].offset) == pinned + 100);
    CHECK(f.frame.inputs[1].offset == *block);
    CHECK(f.memory->at(f.frame.outputs[0].offset) == pinned + 300);
    pinned[300] = std::byte{4};
    run.deliver(*block);
    CHECK(pinned[300] == std::byte{4});
    f.memory->release(pinned);
}

TEST_CASE("a run without arguments needs no block")
{
    fixture f;
    f.op.input_count = f.op.output_count = 0;
    const staged_run run(f.op, *f.memory);
    CHECK(run.bytes() == 0);
    run.fill(0, f.frame);
    CHECK(f.frame.inputs.empty());
    CHECK(f.frame.outputs.empty());
}

TEST_SUITE_END();

} // namespace test_worker_staged_run
