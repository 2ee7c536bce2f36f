#ifndef COACCEL_TEST_UNIT_CUDA_CUDA_WORLD_HPP
#define COACCEL_TEST_UNIT_CUDA_CUDA_WORLD_HPP

#include "cuda/factory.hpp"
#include "support/context_driver.hpp"
#include "support/fake_cublas.hpp"
#include "support/fake_cublaslt.hpp"
#include "support/fake_curand.hpp"

namespace test {

/// Contexts on the fake driver. Its destruction also checks that the driver was used correctly, and not called after
/// the loss of the context.
class cuda_world final : public context_world {
public:
    explicit cuda_world(const fake_cuda::settings& how = {}) : driver(how)
    {
        options.blas_workspace = std::uint64_t(64) << 10;
        options.helper_threads = 2;
        frees_in_stream_order = true;
        context.monitor_interval = std::chrono::milliseconds(5);
    }

    ~cuda_world() override
    {
        // Calls made before the loss was noticed are allowed.
        if (lost_)
            CHECK(driver.late_calls() == known_);
    }

    void on_lost() noexcept override
    {
        lost_ = true;
        known_ = driver.late_calls();
    }

    coaccel::detail::context_factory factory() override
    {
        return coaccel::cuda::make_factory(
            options, 0, coaccel::cuda::library_tables(&driver.api(), &blas.api(), &lt.api(), &rand.api()));
    }

    bool limit_memory(std::uint64_t bytes) override
    {
        options.memory_limit = bytes;
        return true;
    }

    void poison() override { driver.kill_at(CUDA_ERROR_ILLEGAL_ADDRESS, 1); }

    void hold(coaccel::native_stream s, test::gate gate) override
    {
        driver.block(static_cast<CUstream>(s.handle), [gate, arrived = false]() mutable {
            if (!std::exchange(arrived, true))
                gate.arrive();
            return gate.is_open();
        });
    }

    fake_cuda driver;
    fake_cublas blas{driver};
    fake_cublaslt lt{driver};
    fake_curand rand{driver};
    coaccel::cuda_options options;

private:
    bool lost_ = false;
    std::string known_;
};

} // namespace test

#endif
