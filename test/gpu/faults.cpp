#include "child.hpp"
#include "cuda/driver/driver_api.hpp"
#include "fault_kernels.hpp"
#include "gpu.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <iostream>
#include <optional>
#include <thread>

// Real faults. Each happens in its own process, because nothing else in that process survives it.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::await;
using test::fault_kernels;
using clock_type = std::chrono::steady_clock;

// A thread that queries a stream of its own, as an independent witness of when the fault becomes visible.
class witness {
public:
    witness() : thread_([this] { watch(); }) { ready_.get_future().wait(); }

    ~witness()
    {
        stop_.store(true);
        thread_.join();
    }

    /// Nothing if the fault is not visible within this time.
    std::optional<clock_type::time_point> sees_it_within(clock_type::duration time)
    {
        if (seen_at_.wait_for(time) != std::future_status::ready)
            return std::nullopt;
        return seen_at_.get();
    }

private:
    void watch()
    {
        const auto* api = cuda::driver_api::load().value();
        CUdevice device = 0;
        CUcontext context = nullptr;
        CUstream stream = nullptr;
        const bool made = api->cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
                          api->cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
                          api->cuCtxSetCurrent(context) == CUDA_SUCCESS &&
                          api->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS;
        ready_.set_value();
        while (made && !stop_.load()) {
            const CUresult r = api->cuStreamQuery(stream);
            if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)
                return seen_.set_value(clock_type::now());
            // The driver has no notification of a fault, so the stream is queried.
            std::this_thread::sleep_for(200us);
        }
    }

    std::atomic<bool> stop_{false};
    std::promise<void> ready_;
    std::promise<clock_type::time_point> seen_;
    std::future<clock_type::time_point> seen_at_ = seen_.get_future();
    std::thread thread_;
};

int complaints = 0;

void tell(const char* what)
{
    static const auto start = clock_type::now();
    std::cout << std::chrono::duration<double>(clock_type::now() - start).count() << " s: " << what << std::endl;
}

void expect(bool good, const char* what)
{
    if (good)
        return;
    ++complaints;
    std::cout << "not so: " << what << '\n';
}

completion strategy(const std::string& name)
{
    if (name == "host_fn")
        return completion::host_fn;
    if (name == "polled")
        return completion::polled;
    return name == "sync" ? completion::sync : completion::adaptive;
}

struct answers {
    int count = 0;
    int wrong = 0;
    int good = 0;
    clock_type::time_point last{};

    auto handler()
    {
        return [this](error_code ec, auto&&...) {
            ++count;
            last = clock_type::now();
            good += ec ? 0 : 1;
            if (ec && ec != errc::context_lost) {
                ++wrong;
                std::cout << "an op got: " << ec.message() << '\n';
            }
        };
    }
};

/// A device that is never idle: it runs one op after another until one fails, because a fault is visible only to a call
/// of the driver.
template <class Op>
class busy_device {
public:
    busy_device(device d, const Op& op) : device_(std::move(d)), op_(op) { go_on(); }

    bool ended() const { return ended_; }
    const error_code& why() const { return why_; }

private:
    void go_on()
    {
        device_.async_exec(op_, [this](error_code ec) {
            why_ = ec;
            ended_ = static_cast<bool>(ec);
            if (!ec)
                go_on();
        });
    }

    device device_;
    Op op_;
    bool ended_ = false;
    error_code why_;
};

// One device with work behind a spinning kernel and a second busy device, then the fault.
int fault_child(const std::vector<std::string>& arguments)
{
    const std::string& fault = arguments.at(0);
    tell("begin");
    witness w;
    tell("witness");
    asio::io_context io{1};
    auto o = test::gpu_options();
    o.context.completion = strategy(arguments.at(1));
    auto gpu = test::make_device(io, o);
    auto other = test::make_device(io, o);
    const auto spin = test::compile(io, gpu, fault_kernels, "spin");
    const auto kernel = test::compile(io, gpu, fault_kernels, fault.c_str());
    const auto touch = test::compile(io, gpu, fault_kernels, "touch");
    auto memory = await(io, gpu.async_alloc<float>(1024)).value();
    auto others = await(io, other.async_alloc<float>(1024)).value();
    auto pinned = await(io, gpu.async_alloc_pinned<float>(1024)).value();
    std::vector<float> pageable(1u << 20, 1.0f);
    auto big = await(io, gpu.async_alloc<float>(pageable.size())).value();

    tell("set up");
    const auto touch_other = jit::launch(touch, {.block = {256}}, inout(others));
    busy_device beside(other, touch_other);
    answers got;
    answers culprit;
    int expected = 0;
    const auto exec = [&](const device& d, const auto& op, int lane = exec_options::any_lane) {
        ++expected;
        d.with({.lane = lane}).async_exec(op, got.handler());
    };
    exec(gpu, jit::launch(spin, {}, 100'000'000ull));
    // A bad write may be reported only after its kernel has completed without error.
    gpu.async_exec(jit::launch(kernel, {}, inout(memory)), culprit.handler());
    for (int i = 0; i < 20; ++i) {
        exec(gpu, jit::launch(touch, {.block = {256}}, inout(memory)));
        exec(gpu, memory::fill<float>{.dst = memory, .value = 1}, i % 4);
    }
    expected += 3;
    gpu.async_read(memory, pinned.span(), got.handler());
    gpu.async_write(memory, std::span<const float>(pageable).first(1024), got.handler());
    gpu.async_exec(seq(jit::launch(touch, {}, inout(memory)), memory::fill<float>{.dst = big, .value = 0}),
                   got.handler());
    gpu.async_write(big, std::span<const float>(pageable), got.handler());
    ++expected;

    test::run_until(io, [&] { return got.count == expected && culprit.count == 1 && beside.ended(); });
    test::run_until(
        io, [&] { return gpu.status().state == device_state::failed && other.status().state == device_state::failed; });
    // One op may succeed: the spinning kernel completed before the faulting one began.
    tell("answered");
    expect(got.wrong + culprit.wrong == 0 && is_context_lost(beside.why()), "every outstanding op got context_lost");
    expect(got.good <= 1, "nothing that was behind the fault succeeded");
    // The device may have seen the fault before the witness.
    const auto seen = w.sees_it_within(1s);
    expect(seen.has_value(), "the witness saw the fault");
    const auto late = std::chrono::duration<double, std::milli>(got.last - seen.value_or(got.last)).count();
    std::cout << fault << ", " << arguments.at(1) << ": all answered " << late << " ms after the fault showed\n";
    expect(late < 100, "within 100 ms of the fault showing");

    expect(is_context_lost(gpu.status().reason), "the state says why");
    std::cout << "reason: " << gpu.status().reason.message() << '\n';
    expect(await(io, gpu.async_exec(memory::fill<float>{.dst = memory, .value = 1})).error() == errc::device_failed,
           "a new op is refused");
    expect(await(io, gpu.async_alloc<float>(10)).error() == errc::device_failed, "a new buffer is refused");
    const auto revived = await(io, gpu.async_revive()).error();
    expect(revived == errc::device_failed && revived.message().find("isolation::worker") != std::string::npos,
           "it cannot be revived, and says what could be");
    pinned[0] = 1;
    memory.reset();
    big.reset();
    io.restart();
    io.poll();

    auto third = await(io, device::async_create(io.get_executor(), o));
    expect(!third, "no device can be made in this process any more");
    expect(got.count == expected, "exactly once");
    tell("refused");
    auto stats = await(io, gpu.async_stats());
    expect(stats.has_value(), "statistics are still answered");
    return complaints;
}

// A kernel that runs longer than the hang timeout.
int hang_child(const std::vector<std::string>& arguments)
{
    asio::io_context io{1};
    auto o = test::gpu_options();
    o.context.completion = strategy(arguments.at(0));
    o.context.hang_timeout = 300ms;
    // So that the third op waits for the first.
    o.context.lanes = lane_policy::single();
    auto gpu = test::make_device(io, o);
    const auto spin = test::compile(io, gpu, fault_kernels, "spin");
    auto memory = await(io, gpu.async_alloc<float>(1024)).value();
    answers got;
    const auto began = clock_type::now();
    gpu.async_exec(jit::launch(spin, {}, 200'000'000'000ull), got.handler());
    gpu.with({.lane = 1}).async_exec(memory::fill<float>{.dst = memory, .value = 1}, got.handler());
    gpu.async_exec(jit::launch(spin, {}, 1ull), got.handler());
    test::run_until(io, [&] { return got.count == 3 && gpu.status().state == device_state::failed; });
    const auto taken = clock_type::now() - began;
    expect(got.wrong == 0, "what hung was lost");
    expect(got.good == 1, "what did not wait for the hung kernel succeeded");
    expect(taken > 300ms && taken < 1s, "the device waited as long as it was told to");
    expect(is_context_lost(gpu.status().reason), "the state says why");
    tell("answered");
    return complaints;
}

const test::child registered("fault", &fault_child);
const test::child registered_hang("hang", &hang_child);

TEST_SUITE_BEGIN("gpu faults");

TEST_CASE("every outstanding op is completed within 100 ms of a fault, with every completion strategy")
{
    for (const std::string fault : {"illegal_address", "trap", "misaligned"})
        for (const std::string how : {"adaptive", "host_fn", "polled", "sync"}) {
            std::string output;
            CHECK_MESSAGE(test::run_child("fault", {fault, how}, output) == 0, fault, ", ", how, ": ", output);
            MESSAGE(output);
        }
}

TEST_CASE("a hanging kernel is abandoned after hang_timeout, and the process ends")
{
    for (const std::string how : {"adaptive", "host_fn", "polled", "sync"}) {
        std::string output;
        const auto began = clock_type::now();
        CHECK_MESSAGE(test::run_child("hang", {how}, output) == 0, how, ": ", output);
        CHECK(clock_type::now() - began < 10s);
    }
}

TEST_SUITE_END();

} // namespace
