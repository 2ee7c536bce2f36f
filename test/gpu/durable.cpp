#include "fault_kernels.hpp"
#include "isolated.hpp"

#include <coaccel/plan/plan_builder.hpp>

// Memory of a GPU that keeps its content when a worker dies of a real fault.
namespace test_gpu_durable {
namespace {

using namespace coaccel;
using namespace test;
using namespace test::isolated;

/// Each costs the time that the driver needs to report it and to make the next context.
constexpr int faults = 5;

struct fixture : world {
    fixture() : gpu(make(isolated_options(1))), wild(compile(io, gpu, fault_kernels, "illegal_address")) {}

    /// An illegal address, while nothing writes durable memory.
    void fault()
    {
        auto target = await(io, gpu.async_alloc<float>(1)).value();
        const auto done = await(io, gpu.async_exec(jit::launch(wild, {.block = {1}}, inout(target))));
        CHECK_FALSE(done);
        CHECK(is_context_lost(done.error()));
    }

    error_code add_one(const ref<float>& to)
    {
        const std::vector<float> one{1};
        auto x = await(io, gpu.async_upload(one));
        REQUIRE_MESSAGE(x, (x ? std::string() : x.error().message()));
        const auto done = await(io, gpu.async_exec(blas::axpy<float>{.x = x.value(), .y = to, .n = 1, .alpha = 1}));
        return done ? error_code() : done.error();
    }

    device gpu;
    jit::kernel wild;
};

TEST_SUITE_BEGIN("gpu isolated");

TEST_CASE("a durable counter is exact over real faults")
{
    fixture f;
    auto made = await(f.io, f.gpu.async_alloc_durable<float>(1));
    REQUIRE_MESSAGE(made, (made ? std::string() : made.error().message()));
    const auto& counter = made.value();
    CHECK_FALSE(f.add_one(counter.ref()));
    for (int n = 1; n <= faults; ++n) {
        CAPTURE(n);
        f.fault();
        CHECK(f.add_one(counter.ref()) == errc::buffer_suspect);
        CHECK(counter.suspect());
        REQUIRE(await(f.io, f.gpu.async_trust(counter)));
        CHECK_FALSE(f.add_one(counter.ref()));
        CHECK(await(f.io, f.gpu.async_download(counter.ref())).value() == std::vector<float>{float(n + 1)});
    }
    f.fault();
    REQUIRE(await(f.io, f.gpu.async_clear(counter)));
    CHECK(await(f.io, f.gpu.async_download(counter.ref())).value() == std::vector<float>{0});
}

TEST_CASE("a durable state of a plan follows its rule after a real fault")
{
    fixture f;
    const auto load = [&](suspect_rule rule) {
        plan_builder b("count");
        const auto one = b.input<float>(1);
        const auto sum = b.state<float>(1, durable{rule});
        const auto y = b.output<float>(1);
        b.add(blas::axpy<float>{.x = one, .y = sum, .n = 1, .alpha = 1});
        b.add(memory::copy<float>{sum, y});
        auto made = await(f.io, f.gpu.async_load(b.finish().value()));
        REQUIRE_MESSAGE(made, (made ? std::string() : made.error().message()));
        return std::move(made).value();
    };
    const auto kept = load(suspect_rule::keep);
    const auto reset = load(suspect_rule::reset);
    const auto failing = load(suspect_rule::fail);
    const auto count = [&](const plan& p) -> result<float> {
        const std::vector<float> one{1};
        std::vector<float> y{-1};
        const auto done = await(f.io, p.async_run(from(one), to(y)));
        if (!done)
            return done.error();
        return y[0];
    };
    for (const auto* p : {&kept, &reset, &failing})
        CHECK(count(*p).value() == 1);
    f.fault();
    CHECK(count(kept).value() == 2);
    CHECK(count(reset).value() == 1);
    CHECK(count(failing).error() == errc::buffer_suspect);
    CHECK(failing.suspect());
    CHECK(await(f.io, failing.async_revive()));
    CHECK(count(failing).value() == 2);
}

TEST_SUITE_END();

} // namespace
} // namespace test_gpu_durable
