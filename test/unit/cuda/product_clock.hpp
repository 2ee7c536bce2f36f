#ifndef COACCEL_TEST_UNIT_CUDA_PRODUCT_CLOCK_HPP
#define COACCEL_TEST_UNIT_CUDA_PRODUCT_CLOCK_HPP

#include "support/fake_cublaslt.hpp"
#include "support/fake_cuda.hpp"

#include <chrono>
#include <map>
#include <mutex>

namespace test {

/// A fake driver whose events have the times of fake_cublaslt::busy, so that measurements do not depend on the speed of
/// the machine. One at a time; it must outlive the backend that uses it. Not for streams in a capture.
class product_clock {
public:
    product_clock(fake_cuda& gpu, const fake_cublaslt& lt) : gpu_(gpu), lt_(lt), table_(gpu.api())
    {
        here() = this;
        table_.cuEventRecord = [](CUevent e, CUstream s) { return here()->record(e, s); };
        table_.elapsed_time = [](float* milliseconds, CUevent first, CUevent last) {
            return here()->elapsed(milliseconds, first, last);
        };
    }
    product_clock(const product_clock&) = delete;
    product_clock& operator=(const product_clock&) = delete;
    ~product_clock() { here() = nullptr; }

    const coaccel::cuda::driver_api& api() const noexcept { return table_; }

    /// From now on, the time between two events is longer by as much as the first launch between them takes.
    void set_launch_time(std::chrono::microseconds t)
    {
        const std::scoped_lock lock(mutex_);
        launch_time_ = t;
    }

private:
    static product_clock*& here()
    {
        static product_clock* only = nullptr;
        return only;
    }

    CUresult record(CUevent e, CUstream s)
    {
        // Before the event, so that a thread that waits for it knows the time.
        (void)gpu_.enqueue(s, [this, e] {
            const std::scoped_lock lock(mutex_);
            times_[e] = lt_.busy();
        });
        return gpu_.api().cuEventRecord(e, s);
    }

    CUresult elapsed(float* milliseconds, CUevent first, CUevent last)
    {
        const CUresult r = gpu_.api().elapsed_time(milliseconds, first, last);
        if (r != CUDA_SUCCESS)
            return r;
        const std::scoped_lock lock(mutex_);
        *milliseconds =
            std::chrono::duration<float, std::milli>(times_.at(last) - times_.at(first) + launch_time_).count();
        return r;
    }

    fake_cuda& gpu_;
    const fake_cublaslt& lt_;
    coaccel::cuda::driver_api table_;
    std::mutex mutex_;
    std::map<CUevent, std::chrono::microseconds> times_;
    std::chrono::microseconds launch_time_{0};
};

} // namespace test

#endif
