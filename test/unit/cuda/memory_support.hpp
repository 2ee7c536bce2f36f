#ifndef COACCEL_TEST_UNIT_CUDA_MEMORY_SUPPORT_HPP
#define COACCEL_TEST_UNIT_CUDA_MEMORY_SUPPORT_HPP

#include "cuda/driver/driver_threads.hpp"
#include "support/fake_cuda.hpp"
#include "support/gate.hpp"
#include "support/sanitized.hpp"
#include "support/told.hpp"

#include <doctest/doctest.h>

#include <array>
#include <type_traits>

namespace test {

/// A fake driver with a current context, two streams and a thread pool.
struct fake_context {
    explicit fake_context(const fake_cuda::settings& how = {}, int threads = 2)
        : fake(how), api(fake.api()), context(make()), helpers(api, context, threads)
    {
        for (CUstream* s : {&stream, &growth})
            REQUIRE(api.cuStreamCreateWithPriority(s, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    }
    fake_context(const fake_context&) = delete;
    fake_context& operator=(const fake_context&) = delete;

    ~fake_context()
    {
        helpers.stop();
        (void)api.cuStreamDestroy(stream);
        (void)api.cuStreamDestroy(growth);
        CUcontext popped = nullptr;
        (void)api.cuCtxPopCurrent(&popped);
        (void)api.cuDevicePrimaryCtxRelease(0);
    }

    CUcontext make()
    {
        CUcontext made = nullptr;
        REQUIRE(api.cuDevicePrimaryCtxRetain(&made, 0) == CUDA_SUCCESS);
        REQUIRE(api.cuCtxPushCurrent(made) == CUDA_SUCCESS);
        return made;
    }

    /// Keeps every thread of the pool busy until the gate is opened.
    void occupy(gate& g)
    {
        for (std::size_t i = 0; i < helpers.limit(); ++i)
            REQUIRE(helpers.run([&g] { g.pass(); }));
    }

    /// Repeats the call after each notification, until there is an answer.
    template <class Ask>
    auto until_answered(Ask ask)
    {
        for (;;) {
            const int rung = told.count();
            auto answer = ask();
            if (!answer || answer.value() != std::remove_cvref_t<decltype(answer.value())>())
                return answer;
            told.wait_for(rung + 1);
        }
    }

    fake_cuda fake;
    const coaccel::cuda::driver_api& api;
    CUcontext context;
    test::told told;
    /// Declared before `helpers`, because threads of the pool may wait in a gate until the end.
    std::array<gate, 2> gates;
    coaccel::cuda::driver_threads helpers;
    CUstream stream = nullptr;
    CUstream growth = nullptr;
};

} // namespace test

#endif
