#ifndef COACCEL_TEST_SUPPORT_FAKE_CURAND_HPP
#define COACCEL_TEST_SUPPORT_FAKE_CURAND_HPP

#include "cuda/rand/curand_api.hpp"
#include "support/fake_cuda.hpp"

#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace test {

/// cuRAND on the fake driver. Philox has its real words; number n of any other generator is n, or n / 2^20 as a real
/// number. Only one may exist at a time, and its driver must outlive it. The destructor reports generators that were
/// not destroyed to the driver.
class fake_curand {
public:
    /// A call with a generator.
    struct call {
        std::string function;
        std::thread::id thread;
        curandRngType_t type{};
        CUstream stream = nullptr;
        /// The value that the call sets, or the number of numbers.
        unsigned long long value = 0;
    };

    explicit fake_curand(fake_cuda& driver);
    fake_curand(const fake_curand&) = delete;
    fake_curand& operator=(const fake_curand&) = delete;
    ~fake_curand();

    const coaccel::cuda::curand_api& api() const noexcept;

    /// The next call of the function fails. Names are those of the vendor's manual.
    void fail(std::string_view function, curandStatus_t status);
    /// The calls of a function so far.
    std::vector<call> calls(std::string_view function) const;
    std::size_t generators() const;

    struct state;

private:
    std::unique_ptr<state> state_;
};

} // namespace test

#endif
