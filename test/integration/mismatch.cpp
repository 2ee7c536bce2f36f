#include "isolated.hpp"
#include "worker_programs.hpp"

#include <doctest/doctest.h>

namespace test_integration_mismatch {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::isolated_fixture;
using test::isolated_options;
using test::numbers;
using test::worker_log;

namespace {

const std::string other_build = COACCEL_TEST_OTHER_BUILD;

} // namespace

TEST_SUITE_BEGIN("isolated mismatch");

TEST_CASE("a worker program of another build is refused by name and not retried")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        asio::io_context io{1};
        auto o = isolated_options();
        o.standby = standby;
        o.worker.program = other_build.c_str();
        // A second attempt would make the test wait.
        o.restart.initial_backoff = o.restart.max_backoff = 1h;
        const auto ec = await(io, device::async_create(io.get_executor(), o)).error();
        CHECK(ec == errc::worker_mismatch);
        CHECK(ec == fault::device_lost);
        CHECK_MESSAGE(ec.message().find(other_build) != std::string::npos, ec.message());
        CHECK(worker_log::has("its parent is of another version or build"));
    }
}

TEST_CASE("a device whose worker program is replaced by one of another build fails at the next start")
{
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        const test::program_link program;
        auto o = isolated_options();
        o.standby = standby;
        o.worker.program = program.path();
        o.restart.initial_backoff = 0ms;
        isolated_fixture f(o);
        const auto x = f.upload(numbers(10));
        program.lead_to(other_build);
        CHECK(f.download(x.ref()) == numbers(10));
        // A standby that was started before has the right build.
        for (int i = 0; i < standby; ++i) {
            f.send(SIGKILL);
            f.wait_for_generation(generation(2 + i));
            CHECK(f.download(f.upload(numbers(10)).ref()) == numbers(10));
        }
        f.send(SIGKILL);
        test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
        CHECK(f.gpu.status().reason == errc::worker_mismatch);
        CHECK(f.gpu.status().generation == generation(1 + standby));
        CHECK(await(f.io, f.gpu.async_alloc<float>(10)).error() == errc::device_failed);
    }
}

TEST_SUITE_END();

} // namespace test_integration_mismatch
