#include "child.hpp"
#include "runtime_code.hpp"

#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

// cudaDeviceReset destroys the context of every device of the process, so it is called in a process of its own.
namespace {

using namespace coaccel;
using test::await;

// Nothing is in flight at the reset: the driver crashed in another call of the process when there was.
int reset_child(const std::vector<std::string>&)
{
    int complaints = 0;
    const auto expect = [&](bool good, const char* what) {
        if (!good)
            std::cout << "not so: " << what << '\n';
        complaints += !good;
    };
    asio::io_context io{1};
    auto gpu = test::make_device(io, test::gpu_options());
    auto x = await(io, gpu.async_alloc<float>(1024)).value();
    // The reset frees this memory.
    void* memory = nullptr;
    expect(cudaMalloc(&memory, 64) == cudaSuccess, "memory for the runtime");
    std::atomic<bool> owner_gone{false};
    const auto forget = [](void* gone) { static_cast<std::atomic<bool>*>(gone)->store(true); };
    const auto adopted =
        await(io, gpu.async_adopt(static_cast<float*>(memory), 16, std::shared_ptr<void>(&owner_gone, forget)));
    expect(adopted.has_value(), "the memory was adopted");
    int answers = 0;
    int wrong = 0;
    const auto note = [&](error_code ec, auto&&...) {
        ++answers;
        // The device may have found out before the op came.
        if (ec && !is_context_lost(ec) && ec != errc::device_failed) {
            ++wrong;
            std::cout << "an op got: " << ec.message() << '\n';
        }
    };
    expect(cudaDeviceReset() == cudaSuccess, "the reset succeeds");
    constexpr int started = 5;
    for (int i = 0; i < started; ++i)
        gpu.async_exec(memory::fill<float>{.dst = x, .value = 1}, note);
    test::run_until(io, [&] { return answers == started && gpu.status().state == device_state::failed; });
    expect(wrong == 0, "every op is lost or refused");
    expect(is_context_lost(gpu.status().reason), "the state says why");
    std::cout << "reason: " << gpu.status().reason.message() << '\n';
    expect(await(io, gpu.async_alloc<float>(4)).error() == errc::device_failed, "later ops are refused");
    expect(await(io, gpu.async_revive()).error() == errc::device_failed, "it cannot be revived");
    test::run_until(io, [&] { return owner_gone.load(); });
    x.reset();
    gpu = {};
    test::run_out(io);
    expect(answers == started, "exactly once");
    return complaints;
}

const test::child registered_reset("reset", &reset_child);

TEST_SUITE_BEGIN("gpu faults");

TEST_CASE("after cudaDeviceReset every op is lost, the device fails, and the process ends")
{
    std::string output;
    CHECK_MESSAGE(test::run_child("reset", {}, output) == 0, output);
}

TEST_SUITE_END();

} // namespace
