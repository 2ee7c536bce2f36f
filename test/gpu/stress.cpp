#include "gpu.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

#include <memory>
#include <random>

namespace {

using namespace coaccel;
using test::await;
using test::gpu_fixture;

TEST_SUITE_BEGIN("gpu stress");

// Each op has its own buffers, which are released while it may still run. It may be cancelled at any time.
struct in_flight_op {
    asio::cancellation_signal signal;
    std::vector<float> host;
    int answers = 0;
};

TEST_CASE("100,000 ops with random cancellations and releases each complete once")
{
    constexpr int total = 100000;
    constexpr std::size_t most_in_flight = 500;
    gpu_fixture f;
    std::mt19937_64 random(std::random_device{}());
    std::vector<std::shared_ptr<in_flight_op>> flights;
    std::vector<buffer<float>> kept;
    int ended = 0, cancelled = 0, wrong = 0;

    for (int started = 0; started < total;) {
        for (int burst = 0; burst < 50 && started < total; ++burst, ++started) {
            auto fl = std::make_shared<in_flight_op>();
            const std::size_t n = 1 + random() % 3000;
            auto done = asio::bind_cancellation_slot(fl->signal.slot(), [&, fl](error_code ec) {
                ++ended;
                wrong += ++fl->answers != 1;
                if (ec == asio::error::operation_aborted)
                    ++cancelled;
                else
                    wrong += ec ? 1 : 0;
            });
            if (kept.size() < 20 || random() % 4 == 0)
                kept.push_back(f.alloc<float>(4000));
            const std::size_t at = random() % kept.size();
            const ref<float> target = kept[at].subspan(0, n);
            switch (random() % 4) {
            case 0: f.gpu.async_exec(memory::fill<float>{.dst = target, .value = 1}, std::move(done)); break;
            case 1:
                fl->host.assign(n, 2);
                f.gpu.async_write(target, std::span<const float>(fl->host), std::move(done));
                break;
            case 2:
                fl->host.assign(n, 0);
                f.gpu.async_read(target, std::span(fl->host), std::move(done));
                break;
            default: f.gpu.async_exec(blas::scal<float>{.x = target, .n = n, .alpha = 0.5f}, std::move(done));
            }
            if (random() % 3 == 0)
                kept.erase(kept.begin() + static_cast<long>(at));
            flights.push_back(std::move(fl));
        }
        for (auto& fl : flights)
            if (random() % 8 == 0)
                fl->signal.emit(asio::cancellation_type::all);
        test::run_until(f.io, [&] {
            std::erase_if(flights, [](const auto& fl) { return fl->answers > 0; });
            return flights.size() < most_in_flight;
        });
    }
    test::run_until(f.io, [&] { return ended == total; });
    CHECK(wrong == 0);
    CHECK(cancelled > 0);
    CHECK(cancelled < total);

    // Released buffers are freed in the next turn.
    kept.clear();
    REQUIRE(await(f.io, f.gpu.async_stats()));
    auto stats = await(f.io, f.gpu.async_stats());
    REQUIRE(stats);
    CHECK(stats.value().live_buffers == 0);
    CHECK(stats.value().in_flight == 0);
}

TEST_CASE("a device can be shut down repeatedly in the middle of work")
{
    for (int round = 0; round < 8; ++round) {
        asio::io_context io{1};
        auto gpu = test::make_device(io, test::gpu_options());
        auto made = await(io, gpu.async_alloc<float>(1u << 20));
        REQUIRE(made);
        std::vector<float> host(1u << 20, 1);
        int ended = 0;
        for (int i = 0; i < 50; ++i) {
            gpu.async_exec(blas::scal<float>{.x = made.value(), .n = host.size()}, [&](error_code) { ++ended; });
            gpu.async_write(made.value(), std::span<const float>(host), [&](error_code) { ++ended; });
        }
        const auto how = round % 2 ? shutdown::drain : shutdown::abandon;
        bool stopped = false;
        gpu.async_shutdown(how, [&](error_code ec) {
            CHECK_FALSE(ec);
            CHECK(ended == 100);
            stopped = true;
        });
        test::run_until(io, [&] { return stopped; });
        gpu = {};
        test::run_out(io);
    }
}

TEST_CASE("an io_context can be destroyed with work on the GPU")
{
    std::vector<float> host(4u << 20, 1);
    auto io = std::make_unique<asio::io_context>(1);
    auto gpu = test::make_device(*io, test::gpu_options());
    auto made = await(*io, gpu.async_alloc<float>(host.size()));
    REQUIRE(made);
    for (int i = 0; i < 20; ++i)
        gpu.async_write(made.value(), std::span<const float>(host), [](error_code) { FAIL("must not be called"); });
    for (int i = 0; i < 5; ++i)
        io->poll_one();
    io.reset();
}

TEST_SUITE_END();

} // namespace
