#include "child.hpp"
#include "fault_kernels.hpp"
#include "gpu.hpp"

#include <boost/asio/executor_work_guard.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

// Real faults in worker processes, which this process and its other devices survive.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::fault_kernels;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t side = 96;

device_options isolated_options(int standby = 0)
{
    auto o = test::gpu_options();
    o.isolation = isolation::worker;
    o.standby = standby;
    o.restart.max_restarts = 10'000;
    // Many faults in a short time are the point here.
    o.restart.initial_backoff = 0ms;
    o.worker.log = [](std::string_view) {};
    return o;
}

double milliseconds(clock_type::duration d)
{
    return std::chrono::duration<double, std::milli>(d).count();
}

// Small whole numbers, so that every order of adding them gives the same.
std::vector<float> matrix(std::size_t seed)
{
    std::vector<float> v(side * side);
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<float>((i * 7 + seed) % 13);
    return v;
}

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b)
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
            ++(!ec ? good : is_context_lost(ec) ? lost : other);
            if (ec && !first_loss)
                first_loss = clock_type::now();
        };
    }
    int all() const { return good + lost + other; }
};

/// A device that is never without work, and checks what it gets.
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
        test::run_until(io_, [this] { return !running_; });
    }

    /// Since the last time it was asked it has gone on, and without an error.
    void check()
    {
        const auto before = rounds_;
        test::run_until(io_, [&] { return rounds_ >= before + 3 || failed_; });
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
        test::run_out(io);
    }

    device make(const device_options& o) { return test::make_device(io, o); }

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

    /// Asks until an op succeeds; answers when that was.
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

TEST_SUITE_BEGIN("gpu isolated");

TEST_CASE("a GPU is used from a worker process as from this one")
{
    world w;
    const auto gpu = w.make(isolated_options());
    CHECK(w.process_of(gpu) > 0);
    const auto a = matrix(1), b = matrix(2);
    auto da = await(w.io, gpu.async_upload(a)).value();
    auto db = await(w.io, gpu.async_upload(b)).value();
    auto dc = await(w.io, gpu.async_alloc<float>(side * side)).value();
    const blas::gemm<float> op{.a = da, .b = db, .c = dc, .m = side, .n = side, .k = side};
    REQUIRE(await(w.io, gpu.async_exec(op)));
    const auto wanted = product(a, b);
    CHECK(await(w.io, gpu.async_download(dc)).value() == wanted);
    CHECK(await(w.io, gpu.async_exec(blas::asum<float>{.x = da, .n = 13})).value() == 78.0f);

    const auto touch = test::compile(w.io, gpu, fault_kernels, "touch");
    REQUIRE(await(w.io, gpu.async_exec(jit::launch(touch, {.block = {256}}, inout(dc)))));
    const auto touched = await(w.io, gpu.async_download(dc)).value();
    CHECK(touched[255] == wanted[255] + 1);
    CHECK(touched[256] == wanted[256]);

    // More than the staging holds at a time.
    std::vector<float> large(40'000'000);
    for (std::size_t i = 0; i < large.size(); ++i)
        large[i] = static_cast<float>(i % 8191);
    auto dl = await(w.io, gpu.async_upload(large)).value();
    CHECK(await(w.io, gpu.async_download(dl)).value() == large);
}

TEST_CASE("a fault costs what was outstanding, once, and disturbs no other device")
{
    world w;
    // One in a process of its own, one in this.
    bystander by(w.io, w.make(isolated_options()));
    bystander here(w.io, w.make(test::gpu_options()));
    for (const int standby : {0, 1}) {
        const auto gpu = w.make(isolated_options(standby));
        const auto spin = test::compile(w.io, gpu, fault_kernels, "spin");
        const auto touch = test::compile(w.io, gpu, fault_kernels, "touch");
        for (const std::string fault : {"illegal_address", "trap", "misaligned"}) {
            CAPTURE(standby);
            CAPTURE(fault);
            const auto kernel = test::compile(w.io, gpu, fault_kernels, fault.c_str());
            auto x = await(w.io, gpu.async_alloc<float>(1024, init::zero)).value();
            const std::vector<float> host(1024, 1.0f);
            std::vector<float> back(1024);
            const auto g = gpu.status().generation;
            const int process = w.process_of(gpu);
            answers before, culprit, behind;
            gpu.async_exec(jit::launch(spin, {}, 50'000'000ull), before.handler());
            // A bad write may come to light after its kernel ended well.
            gpu.async_exec(jit::launch(kernel, {}, inout(x)), culprit.handler());
            for (int i = 0; i < 20; ++i) {
                gpu.async_exec(jit::launch(touch, {.block = {256}}, inout(x)), behind.handler());
                gpu.async_exec(memory::fill<float>{.dst = x, .value = 1}, behind.handler());
            }
            gpu.async_write(x, std::span<const float>(host), behind.handler());
            gpu.async_read(x, std::span<float>(back), behind.handler());
            gpu.async_download(x, behind.handler());
            test::run_until(w.io, [&] { return before.all() == 1 && culprit.all() == 1 && behind.all() == 43; });
            CHECK(before.other + culprit.other == 0);
            CHECK(behind.lost == 43);
            REQUIRE(behind.first_loss.has_value());
            const auto recovered = w.recover(gpu);
            MESSAGE(fault << ", standby " << standby << ": first success "
                          << milliseconds(recovered - *behind.first_loss) << " ms after the first op was told");
            CHECK(gpu.status().generation == g + 1);
            CHECK(is_context_lost(gpu.status().reason));
            CHECK(w.process_of(gpu) != process);
            CHECK(await(w.io, gpu.async_exec(memory::fill<float>{.dst = x, .value = 1})).error() == errc::stale_ref);
            w.expect_copies(gpu);
            // The same kernel, in the next worker.
            auto y = await(w.io, gpu.async_alloc<float>(256, init::zero)).value();
            REQUIRE(await(w.io, gpu.async_exec(jit::launch(touch, {.block = {256}}, inout(y)))));
            CHECK(await(w.io, gpu.async_download(y)).value() == std::vector<float>(256, 1.0f));
            CHECK(before.all() + culprit.all() + behind.all() == 45);
            by.check();
            here.check();
        }
    }
}

/// Waits until the GPU has as much free memory as before, give or take what its driver keeps for itself.
void expect_memory_back(world& w, const device& observer, std::uint64_t level)
{
    constexpr std::uint64_t tolerance = std::uint64_t(300) << 20;
    // The driver takes a while to tidy up after a process.
    const auto end = clock_type::now() + 5s;
    auto now = w.free_memory(observer);
    while (now + tolerance < level && clock_type::now() < end)
        now = w.free_memory(observer);
    MESSAGE("free: " << (level >> 20) << " MiB before, " << (now >> 20) << " MiB after");
    CHECK(now + tolerance >= level);
}

TEST_CASE("a hundred faults in a row leave no GPU memory behind")
{
    world w;
    const auto other = w.make(isolated_options());
    bystander by(w.io, other);
    const auto level = w.free_memory(other);
    REQUIRE(level > 0);
    {
        const auto gpu = w.make(isolated_options(1));
        std::vector<jit::kernel> kernels;
        for (const char* fault : {"illegal_address", "trap", "misaligned"})
            kernels.push_back(test::compile(w.io, gpu, fault_kernels, fault));
        clock_type::duration sum{}, longest{};
        for (generation g = 1; g <= 100; ++g) {
            CAPTURE(g);
            auto x = await(w.io, gpu.async_alloc<float>(std::size_t(1) << 20));
            REQUIRE(x);
            answers got;
            gpu.async_exec(jit::launch(kernels[g % kernels.size()], {}, inout(x.value())), got.handler());
            gpu.async_exec(memory::fill<float>{.dst = x.value(), .value = 1}, got.handler());
            test::run_until(w.io, [&] { return got.all() == 2; });
            CHECK(got.other == 0);
            REQUIRE(got.first_loss.has_value());
            const auto taken = w.recover(gpu) - *got.first_loss;
            sum += taken;
            longest = std::max(longest, taken);
            CHECK(gpu.status().generation == g + 1);
        }
        MESSAGE("100 faults: first success after " << milliseconds(sum) / 100 << " ms on average, at most "
                                                   << milliseconds(longest) << " ms");
        w.expect_copies(gpu);
        by.check();
        REQUIRE(await(w.io, gpu.async_shutdown()));
    }
    expect_memory_back(w, other, level);
    by.check();
}

/// A device whose worker dies as soon as it is of use.
class mortal {
public:
    explicit mortal(const device& gpu) : gpu_(gpu) {}

    void die(int times)
    {
        left_ = times;
        next();
    }
    int left() const { return left_; }

private:
    void next()
    {
        gpu_.async_alloc<float>(std::size_t(1) << 20, [this](error_code ec, buffer<float> made) {
            if (ec) {
                CHECK_MESSAGE(is_context_lost(ec), ec.message());
                return next();
            }
            // It goes with its worker.
            kept_ = std::move(made);
            kill();
        });
    }

    void kill()
    {
        gpu_.async_stats([this](error_code ec, const device_stats& stats) {
            if (!ec && ::kill(stats.hardware.process, SIGKILL) == 0)
                --left_;
            if (left_ > 0)
                next();
        });
    }

    device gpu_;
    buffer<float> kept_;
    int left_ = 0;
};

TEST_CASE("workers that die one after another leave no GPU memory behind")
{
    // The driver makes one context at a time, so that a thousand take minutes: they are for who asks for them.
    const char* const wanted = std::getenv("COACCEL_TEST_RESTARTS");
    const int total = wanted ? std::atoi(wanted) : 100;
    constexpr int at_once = 10;
    const int each = total / at_once;
    world w;
    const auto other = w.make(isolated_options());
    bystander by(w.io, other);
    const auto level = w.free_memory(other);
    const auto began = clock_type::now();
    {
        std::vector<device> gpus;
        std::vector<std::unique_ptr<mortal>> all;
        for (int i = 0; i < at_once; ++i) {
            gpus.push_back(w.make(isolated_options()));
            all.push_back(std::make_unique<mortal>(gpus.back()));
            all.back()->die(each);
        }
        for (int left = each - 1; left >= 0; --left)
            for (const auto& m : all)
                test::run_until(w.io, [&] { return m->left() <= left; });
        for (const auto& gpu : gpus) {
            w.recover(gpu);
            CHECK(gpu.status().generation == static_cast<generation>(each) + 1);
            w.expect_copies(gpu);
        }
        by.check();
        for (const auto& gpu : gpus)
            REQUIRE(await(w.io, gpu.async_shutdown()));
    }
    MESSAGE("restarts: " << at_once * each << " in " << milliseconds(clock_type::now() - began) / 1000 << " s");
    expect_memory_back(w, other, level);
    by.check();
}

TEST_CASE("a kernel that hangs is cut off")
{
    world w;
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options(standby);
        o.context.hang_timeout = 300ms;
        const auto gpu = w.make(o);
        const auto spin = test::compile(w.io, gpu, fault_kernels, "spin");
        // Loading a kernel may take a while by itself.
        REQUIRE(await(w.io, gpu.async_exec(jit::launch(spin, {}, 1ull))));
        answers got;
        const auto began = clock_type::now();
        gpu.async_exec(jit::launch(spin, {}, 200'000'000'000ull), got.handler());
        test::run_until(w.io, [&] { return got.all() == 1; });
        CHECK(got.lost == 1);
        const auto told = clock_type::now();
        CHECK(told - began > 290ms);
        CHECK(told - began < 3s);
        const auto recovered = w.recover(gpu);
        MESSAGE("hang, standby " << standby << ": told after " << milliseconds(told - began) << " ms, first success "
                                 << milliseconds(recovered - told) << " ms later");
        CHECK(gpu.status().generation == 2);
        w.expect_copies(gpu);
    }
}

TEST_CASE("a worker that stands still is cut off")
{
    world w;
    for (const int standby : {0, 1}) {
        CAPTURE(standby);
        auto o = isolated_options(standby);
        o.worker.heartbeat = 500ms;
        const auto gpu = w.make(o);
        auto x = await(w.io, gpu.async_alloc<float>(1024)).value();
        const int process = w.process_of(gpu);
        const auto began = clock_type::now();
        REQUIRE(::kill(process, SIGSTOP) == 0);
        answers got;
        gpu.async_exec(memory::fill<float>{.dst = x, .value = 1}, got.handler());
        test::run_until(w.io, [&] { return got.all() == 1; });
        CHECK(got.lost == 1);
        const auto told = clock_type::now();
        CHECK(told - began < 3s);
        const auto recovered = w.recover(gpu);
        MESSAGE("stopped, standby " << standby << ": told after " << milliseconds(told - began) << " ms, first success "
                                    << milliseconds(recovered - told) << " ms later");
        CHECK(gpu.status().reason == errc::worker_hung);
        CHECK(w.process_of(gpu) != process);
        w.expect_copies(gpu);
    }
}

bool has_loaded(std::string_view library)
{
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(library) != std::string::npos)
            return true;
    return false;
}

// In a process of its own, because other cases of this program load the driver.
int untouched_child(const std::vector<std::string>&)
{
    {
        world w;
        const auto gpu = w.make(isolated_options(1));
        auto x = await(w.io, gpu.async_upload(std::vector<float>(256, 1.0f))).value();
        REQUIRE(await(w.io, gpu.async_exec(blas::scal<float>{.x = x, .n = 256, .alpha = 2})));
        const auto touch = test::compile(w.io, gpu, fault_kernels, "touch");
        REQUIRE(await(w.io, gpu.async_exec(jit::launch(touch, {.block = {256}}, inout(x)))));
        REQUIRE(await(w.io, gpu.async_download(x)).value() == std::vector<float>(256, 3.0f));
        REQUIRE(::kill(w.process_of(gpu), SIGKILL) == 0);
        test::run_until(w.io, [&] { return gpu.status().generation == 2; });
        w.expect_copies(gpu);
    }
    int found = 0;
    for (const char* library : {"libcuda.so", "libcublas", "libcudart"})
        if (has_loaded(library)) {
            std::cout << library << " is in this process\n";
            ++found;
        }
    return found;
}

const test::child registered("isolated_untouched", &untouched_child);

TEST_CASE("a process with isolated devices only does not load CUDA")
{
    std::string output;
    CHECK_MESSAGE(test::run_child("isolated_untouched", {}, output) == 0, output);
}

TEST_SUITE_END();

} // namespace
