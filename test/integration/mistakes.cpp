#include "mistakes.hpp"

#include "isolated.hpp"
#include "jit/image.hpp"
#include "support/gate.hpp"

#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/plugin.hpp>

#include <boost/asio/detached.hpp>
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace test_integration_mistakes {

// docs/mistakes.md shows messages in text blocks: they must be exactly the messages produced here.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::collection;
using test::device_fixture;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;

std::set<std::string> messages_of_page()
{
    std::ifstream page(COACCEL_TEST_MISTAKES_PAGE);
    REQUIRE(page.good());
    std::set<std::string> found;
    bool inside = false;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("```"))
            inside = line == "```text";
        else if (inside)
            found.insert(line);
    }
    return found;
}

void does_nothing(const jit::launch_shape&) {}

jit::kernel make_kernel(bool with_host)
{
    jit::compile_options options("scale");
    if (with_host)
        options.host(does_nothing);
    return jit::make_kernel(options, {"scale", "code", {}}).value();
}

void fields(collection& c)
{
    device_fixture f(test::pool_options());
    const auto x = f.upload(numbers(12));
    const auto y = f.upload(numbers(10));
    const auto z = f.upload(numbers(8));
    const memory::fill<float> fill{.dst = x, .value = 1.0f};
    c.add(f.exec(blas::gemm<float>{.a = x, .b = x, .c = y, .m = 2, .n = 2}));
    c.add(f.exec(blas::gemm<float>{.a = x, .b = x, .c = y, .m = 3, .n = 2, .k = 2, .lda = 2}));
    c.add(f.exec(blas::axpy<float>{.x = z, .y = y, .n = 9}));
    const auto places = f.upload(std::vector<std::int32_t>(16));
    c.add(f.exec(blas::getrf_batched<float>{
        .a = z, .pivots = places.subspan(0, 4), .info = places.subspan(0, 2), .n = 2, .batch = 2}));
    const auto bytes = f.upload(std::vector<std::int8_t>(32));
    blas::matmul<std::int8_t> product{
        .a = bytes.subspan(1, 16), .b = bytes.subspan(0, 16), .d = places, .m = 4, .n = 4, .k = 4};
    c.add(f.exec(product));
    product.trans_a = blas::transpose::yes;
    c.add(f.exec(product));
    c.add(f.exec(blas::matmul<float>{.a = x, .b = x, .d = y, .scale_d = z, .m = 2, .n = 2, .k = 2}));
    blas::gemm_batched<float> products{.m = 2, .n = 2, .k = 2};
    for (std::size_t i = 0; i <= blas::most_products; ++i)
        products.add(x, y, z);
    c.add(f.exec(products));
    c.add(await(f.io, f.gpu.async_exec(seq(fill, fill, memory::copy<float>{.src = x, .dst = y}))));
    c.add(f.exec(memory::copy<float>{.src = x.subspan(0, 8), .dst = x.subspan(4, 8)}));
    std::vector<float> host(10);
    c.add(await(f.io, f.gpu.async_read(x, host)));
}

void refs(collection& c)
{
    device_fixture f(test::pool_options());
    device_fixture other(test::pool_options());
    auto x = f.upload(numbers(12));
    const auto y = f.upload(numbers(12));
    const auto elsewhere = other.upload(numbers(12));
    c.add(f.exec(memory::fill<float>{}));
    c.add(f.exec(memory::fill<float>{.dst = elsewhere}));
    c.add(f.exec(memory::fill<double>{.dst = ref<double>::from_raw(x.ref().raw())}));
    c.add(await(f.io, f.gpu.async_download(x.subspan(8, 8))));
    const auto dangling = x.ref();
    x.reset();
    c.add(f.exec(memory::fill<float>{.dst = dangling}));
    REQUIRE(await(f.io, f.gpu.async_replace()));
    c.add(f.exec(memory::fill<float>{.dst = y}));
}

void resources(collection& c)
{
    auto o = test::pool_options();
    o.host.memory_limit = 1 << 20;
    o.queue.max_in_flight = 1;
    device_fixture f(o);
    c.add(await(f.io, f.gpu.async_alloc<float>(1 << 20)));
    const auto x = f.upload(numbers(4));
    test::gate gate;
    f.gpu.async_submit(inout(x), test::gate_op{&gate}, asio::detached);
    test::run_until(f.io, [&] { return gate.reached(1); });
    const memory::fill<float> fill{.dst = x, .value = 1.0f};
    exec_options at_once;
    at_once.when_full = when_full::fail;
    c.add(await(f.io, f.gpu.with(at_once).async_exec(fill)));
    c.add(await(f.io, f.gpu.with(within(0ms)).async_exec(fill)));
    gate.open();
}

void devices(collection& c)
{
    // Completes on a thread of the system executor.
    c.add(device().async_alloc<float>(1)(asio::use_future).get());
    device_fixture f(test::pool_options());
    REQUIRE(await(f.io, f.gpu.async_shutdown()));
    c.add(await(f.io, f.gpu.async_alloc<float>(1)));

    fault_injector faults;
    auto o = test::pool_options();
    o.host.injector = &faults;
    o.restart.max_restarts = 0;
    device_fixture broken(o);
    faults.poison();
    (void)await(broken.io, broken.gpu.async_alloc<float>(1, memory_init::zero));
    test::run_until(broken.io, [&] { return broken.gpu.status().state == device_state::failed; });
    c.add(await(broken.io, broken.gpu.async_alloc<float>(1)));
}

struct leave_alone {
    void operator()(native_stream, std::span<const float>) const {}
};

void own_code(collection& c)
{
    device_fixture f(test::pool_options());
    const auto bare = make_kernel(false);
    const auto kernel = make_kernel(true);
    c.add(f.exec(jit::launch(bare, {})));
    c.add(f.exec(jit::launch(kernel, {.grid = {0, 1, 1}})));
    const auto x = f.upload(numbers(4));
    c.add(f.exec(plugin::call("smooth", in(x))));

    isolated_fixture worker;
    const auto there = worker.upload(numbers(4));
    c.add(worker.exec(jit::launch(kernel, {})));
    c.add(worker.exec(jit::launch(bare, {})));
    c.add(await(worker.io, worker.gpu.async_submit(in(there), leave_alone{})));

    asio::io_context io{1};
    auto o = isolated_options();
    o.restart.max_restarts = 0;
    o.worker.program = "/usr/bin/true";
    c.add(await(io, device::async_create(io.get_executor(), o)));
}

} // namespace

TEST_SUITE_BEGIN("mistakes");

TEST_CASE("docs/mistakes.md shows exactly the messages of the library")
{
    collection c;
    fields(c);
    refs(c);
    resources(c);
    devices(c);
    own_code(c);
    test::add_plan_mistakes(c);
    test::add_serving_mistakes(c);
    const auto page = messages_of_page();
    for (const auto& m : c.messages)
        CHECK_MESSAGE(page.contains(m), "not in docs/mistakes.md: " << m);
    for (const auto& m : page)
        CHECK_MESSAGE(c.messages.contains(m), "not produced: " << m);
}

TEST_SUITE_END();

} // namespace test_integration_mistakes
