#ifndef COACCEL_TEST_UNIT_CUDA_MEMORY_SUPPORT_HPP
#define COACCEL_TEST_UNIT_CUDA_MEMORY_SUPPORT_HPP

#include "cuda/backstage.hpp"
#include "support/fake_cuda.hpp"
#include "support/gate.hpp"
#include "support/sanitized.hpp"
#include "support/told.hpp"

#include <doctest/doctest.h>

#include <array>
#include <type_traits>

namespace test {

/// A fake driver with a context that is current, two streams and the threads behind it.
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
        (void)api.cuCtxDestroy(context);
    }

    CUcontext make()
    {
        CUcontext made = nullptr;
        REQUIRE(api.create_context(&made, 0, 0) == CUDA_SUCCESS);
        return made;
    }

    /// Keeps every thread of the backstage busy until the gate is opened.
    void occupy(gate& g)
    {
        for (int i = 0; i < helpers.max_threads(); ++i)
            REQUIRE(helpers.run([&g] { g.pass(); }));
    }

    /// Calls again and again, whenever the told has rung, until there is an answer.
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
    /// Here, because the threads of the backstage may stand in them to the end.
    std::array<gate, 2> gates;
    coaccel::cuda::backstage helpers;
    CUstream stream = nullptr;
    CUstream growth = nullptr;
};

} // namespace test

#endif
