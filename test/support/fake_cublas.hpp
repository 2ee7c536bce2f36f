#ifndef COACCEL_TEST_SUPPORT_FAKE_CUBLAS_HPP
#define COACCEL_TEST_SUPPORT_FAKE_CUBLAS_HPP

#include "cuda/blas/cublas_api.hpp"
#include "support/fake_cuda.hpp"

namespace test {

/// cuBLAS on the fake driver: handles, and axpy, scal, copy, dot and simple gemv, GemmBatchedEx, trsmBatched and
/// getrsBatched of floats; the rest is not supported.
/// Only one may exist at a time, and its driver must outlive it. The destructor reports handles that were not destroyed
/// to the driver.
class fake_cublas {
public:
    explicit fake_cublas(fake_cuda& driver);
    fake_cublas(const fake_cublas&) = delete;
    fake_cublas& operator=(const fake_cublas&) = delete;
    ~fake_cublas();

    const coaccel::cuda::cublas_api& api() const noexcept;

    /// The nth next call of the function fails. Names are those of the vendor's manual.
    void fail(std::string_view function, cublasStatus_t status, int nth = 1);
    int calls(std::string_view function) const;
    std::size_t handles() const;

    struct state;

private:
    std::unique_ptr<state> state_;
};

} // namespace test

#endif
