#include "support/devices.hpp"

#include <coaccel/ops/memory.hpp>

#include <boost/asio.hpp>
#include <doctest/doctest.h>

#include <memory>
#include <optional>

namespace test_device_outlive {

// Using a device after its execution context was destroyed. AddressSanitizer reports accesses to destroyed parts of it.

namespace {

using namespace coaccel;
using test::await;

TEST_SUITE_BEGIN("device outlives");

struct remains {
    device gpu;
    buffer<float> x;
    pinned_buffer<float> pinned;
    std::optional<watch<device_status>> states;
};

template <class Executor>
void fill(remains& r, asio::io_context& io, const Executor& ex, const device_options& o)
{
    r.gpu = await(io, device::async_create(ex, o)).value();
    r.x = await(io, r.gpu.async_alloc<float>(4)).value();
    r.pinned = await(io, r.gpu.async_alloc_pinned<float>(4)).value();
    r.states = r.gpu.watch_state();
}

TEST_CASE("all objects of a device made on a strand may outlive the execution context")
{
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        remains plain;
        remains erased;
        {
            asio::io_context io;
            fill(plain, io, asio::make_strand(io), o);
            fill(erased, io, asio::make_strand(asio::any_io_executor(io.get_executor())), o);
        }
        for (remains* r : {&plain, &erased}) {
            CHECK(r->states->get().state == device_state::ready);
            CHECK(r->gpu.status().generation == 1);
            r->gpu.cancel();
            auto copy = *r->states;
            r->x.reset();
        }
    }
}

TEST_CASE("an operation started after the execution context is destroyed drops its handler uncalled")
{
    remains r;
    {
        asio::io_context io;
        fill(r, io, asio::make_strand(io), test::pool_options());
    }
    const auto held = std::make_shared<int>();
    const auto never = [held](error_code, auto&&...) { CHECK(false); };
    r.gpu.async_exec(memory::fill<float>{r.x, 1.0f}, never);
    r.gpu.async_download(r.x, never);
    r.gpu.async_stats(never);
    r.gpu.async_shutdown(never);
    r.states->async_changed(never);
    CHECK(held.use_count() == 2);
    // A handler executor in another execution context makes no difference.
    asio::io_context other;
    r.gpu.async_exec(memory::fill<float>{r.x, 1.0f}, asio::bind_executor(other, never));
    test::run_out(other);
    CHECK(held.use_count() == 2);
}

TEST_CASE("waiting ops and objects owned by their handlers are destroyed with the strand's execution context")
{
    remains r;
    {
        asio::io_context io;
        auto strand = asio::make_strand(io);
        fill(r, io, strand, test::pool_options());
        for (int i = 0; i < 20; ++i)
            r.gpu.async_exec(memory::fill<float>{r.x, 1.0f}, [own = r.gpu.watch_state(), strand](error_code) {});
        io.poll_one();
    }
    r.x.reset();
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_outlive
