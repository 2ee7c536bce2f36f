#include "runtime_code.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

// Stream captures of others beside a working device, and those of a device beside others.
namespace {

using namespace coaccel;
using test::await;
using test::gpu_fixture;
using test::runtime_code;

constexpr std::size_t n = 1024;

/// Synchronizing a context in which a stream is captured is an error of the caller, and invalidates the capture.
bool is_capture_error(cudaError_t e)
{
    return e >= cudaErrorStreamCaptureUnsupported && e <= cudaErrorStreamCaptureWrongThread;
}

/// Everything that a device does often.
void work(gpu_fixture& f, int rounds)
{
    auto x = f.upload(std::vector<float>(n, 1.0f));
    for (int i = 0; i < rounds; ++i) {
        CHECK(f.exec(blas::scal<float>{.x = x, .n = n, .alpha = 1}));
        auto y = f.alloc<float>(n);
        CHECK(f.exec(memory::copy<float>{.src = x, .dst = y}));
        CHECK(f.download(y) == std::vector<float>(n, 1.0f));
    }
}

TEST_SUITE_BEGIN("gpu beside the CUDA runtime");

TEST_CASE("a global capture of other code is not invalidated by the work of a device")
{
    gpu_fixture f;
    work(f, 1);
    const auto memory = runtime_code::allocate(n);
    std::atomic<bool> capturing{false};
    std::atomic<bool> enough{false};
    cudaError_t ended = cudaErrorUnknown;
    cudaError_t launched = cudaErrorUnknown;
    std::thread other([&] {
        cudaStream_t stream = nullptr;
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t runnable = nullptr;
        (void)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        (void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
        (void)cudaMemsetAsync(memory.get(), 0, n * sizeof(float), stream);
        capturing = true;
        while (!enough)
            std::this_thread::yield();
        ended = cudaStreamEndCapture(stream, &graph);
        if (ended == cudaSuccess) {
            launched = cudaGraphInstantiate(&runnable, graph, 0);
            if (launched == cudaSuccess)
                launched = cudaGraphLaunch(runnable, stream);
            (void)cudaStreamSynchronize(stream);
            (void)cudaGraphExecDestroy(runnable);
            (void)cudaGraphDestroy(graph);
        }
        (void)cudaStreamDestroy(stream);
    });
    while (!capturing)
        std::this_thread::yield();
    work(f, 50);
    enough = true;
    other.join();
    CHECK(ended == cudaSuccess);
    CHECK(launched == cudaSuccess);
    CHECK(runtime_code::content(memory.get(), n) == std::vector<float>(n, 0.0f));
}

TEST_CASE("plans are recorded while other threads allocate and synchronize")
{
    gpu_fixture f;
    std::atomic<bool> stop{false};
    std::atomic<int> failures{0};
    std::atomic<int> refused{0};
    const auto note = [&](cudaError_t e) {
        (is_capture_error(e) ? refused : failures) += e != cudaSuccess;
        (void)cudaGetLastError();
    };
    // Each load is disturbed once by each thread. Threads that do not pause would invalidate every capture.
    std::atomic<int> loads{0};
    std::vector<std::thread> others;
    for (int t = 0; t < 2; ++t)
        others.emplace_back([&] {
            for (int seen = 0; !stop; seen = loads) {
                loads.wait(seen);
                void* p = nullptr;
                note(cudaMalloc(&p, 1 << 20));
                note(cudaDeviceSynchronize());
                if (p)
                    note(cudaFree(p));
            }
        });
    const auto disturb = [&] {
        ++loads;
        loads.notify_all();
    };
    const std::vector<float> weights(n, 2.0f);
    for (int i = 0; i < 20; ++i) {
        plan_builder b;
        auto x = b.input<float>(n);
        auto w = b.constant<float>(weights);
        auto y = b.output<float>(n);
        b.add(memory::copy<float>{.src = w, .dst = y});
        b.add(blas::axpy<float>{.x = x, .y = y, .n = n, .alpha = static_cast<float>(i + 1)});
        auto described = b.finish();
        REQUIRE_MESSAGE(described, (described ? std::string() : described.error().message()));
        // The device records a plan several times before it gives up.
        disturb();
        auto loaded = await(f.io, f.gpu.async_load(described.value()));
        for (int more = 0; more < 20 && !loaded; ++more) {
            REQUIRE_MESSAGE(is_capture_error(static_cast<cudaError_t>(loaded.error().value())),
                            loaded.error().message());
            loaded = await(f.io, f.gpu.async_load(described.value()));
        }
        REQUIRE_MESSAGE(loaded, (loaded ? std::string() : loaded.error().message()));
        const std::vector<float> ones(n, 1.0f);
        std::vector<float> result(n);
        CHECK(await(f.io, loaded.value().async_run(from(ones), to(result))));
        CHECK(result == std::vector<float>(n, 3.0f + static_cast<float>(i)));
        CHECK(await(f.io, loaded.value().async_unload()));
    }
    stop = true;
    disturb();
    for (auto& t : others)
        t.join();
    CHECK(failures == 0);
    MESSAGE("calls of other threads that the driver refused during a capture: ", refused.load());
}

TEST_SUITE_END();

} // namespace
