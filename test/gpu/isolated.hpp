#ifndef COACCEL_TEST_DEVICE_ISOLATED_HPP
#define COACCEL_TEST_DEVICE_ISOLATED_HPP

#include "gpu.hpp"

#include <boost/asio/executor_work_guard.hpp>

#include <chrono>
#include <optional>

namespace test::isolated {

using namespace coaccel;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

inline constexpr std::size_t side = 96;

inline device_options isolated_options(int standby = 0)
{
    auto o = gpu_options();
    o.isolation = isolation::worker;
    o.standby = standby;
    o.restart.max_restarts = 10'000;
    // This test causes many faults in a short time.
    o.restart.initial_backoff = 0ms;
    o.worker.log = [](std::string_view) {};
    return o;
}

inline double milliseconds(clock_type::duration d)
{
    return std::chrono::duration<double, std::milli>(d).count();
}

// Small integers, so that every order of summation gives the same result.
inline std::vector<float> matrix(std::size_t seed)
{
    std::vector<float> v(side * side);
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<float>((i * 7 + seed) % 13);
    return v;
}

inline std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b)
{
    std::vector<float> c(side * side);
    for (std::size_t i = 0; i < side; ++i)
        for (std::size_t j = 0; j < side; ++j)
            for (std::size_t l = 0; l < side; ++l)
                c[i + j * side] += a[i + l * side] * b[l + j * side];
    return c;
}

struct answers {
    int good = 0;
    int lost = 0;
    int other = 0;
    std::optional<clock_type::time_point> first_loss{};

    auto handler()
    {
        return [this](error_code ec, auto&&...) {
            ++(!ec ? good : ec == errc::context_lost ? lost : other);
            if (ec && !first_loss)
                first_loss = clock_type::now();
        };
    }
    int all() const { return good + lost + other; }
};

/// A device that is always busy and checks its results.
class bystander {
public:
    bystander(asio::io_context& io, const device& gpu)
        : io_(io), gpu_(gpu), a_(upload(matrix(1))), b_(upload(matrix(2))), c_(upload(matrix(3))),
          wanted_(product(matrix(1), matrix(2)))
    {
        next();
    }

    bystander(const bystander&) = delete;
    bystander& operator=(const bystander&) = delete;

    ~bystander()
    {
        stop_ = true;
        run_until(io_, [this] { return !running_; });
    }

    /// Checks that it has made progress without an error since the last check.
    void check()
    {
        const auto before = rounds_;
        run_until(io_, [&] { return rounds_ >= before + 3 || failed_; });
        CHECK_FALSE(failed_);
        auto got = await(io_, gpu_.async_download(c_));
        REQUIRE(got);
        CHECK(got.value() == wanted_);
        CHECK(gpu_.status().generation == 1);
    }

private:
    buffer<float> upload(const std::vector<float>& data)
    {
        auto made = await(io_, gpu_.async_upload(data));
        REQUIRE(made);
        return std::move(made).value();
    }

    void next()
    {
        running_ = true;
        const blas::gemm<float> op{.a = a_, .b = b_, .c = c_, .m = side, .n = side, .k = side};
        gpu_.async_exec(op, [this](error_code ec) {
            running_ = false;
            failed_ = ec;
            ++rounds_;
            if (!ec && !stop_)
                next();
        });
    }

    asio::io_context& io_;
    device gpu_;
    buffer<float> a_, b_, c_;
    const std::vector<float> wanted_;
    std::uint64_t rounds_ = 0;
    error_code failed_;
    bool running_ = false;
    bool stop_ = false;
};

struct world {
    ~world()
    {
        work.reset();
        run_out(io);
    }

    device make(const device_options& o) { return make_device(io, o); }

    int process_of(const device& gpu) { return await(io, gpu.async_stats()).value().hardware.process; }

    std::uint64_t free_memory(const device& gpu) { return await(io, gpu.async_stats()).value().memory.free; }

    void expect_copies(const device& gpu)
    {
        const auto data = matrix(5);
        auto made = await(io, gpu.async_upload(data));
        REQUIRE_MESSAGE(made, (made ? std::string() : made.error().message()));
        auto got = await(io, gpu.async_download(made.value()));
        REQUIRE(got);
        CHECK(got.value() == data);
    }

    /// Repeats an op until it succeeds; returns that time.
    clock_type::time_point recover(const device& gpu)
    {
        const std::vector<float> data(16, 1.0f);
        const auto end = clock_type::now() + 30s;
        for (;;) {
            auto made = await(io, gpu.async_upload(data));
            if (made)
                return clock_type::now();
            REQUIRE_MESSAGE(is_context_lost(made.error()), made.error().message());
            REQUIRE(clock_type::now() < end);
        }
    }

    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
};

} // namespace test::isolated

#endif
