#ifndef COACCEL_TEST_SUPPORT_FAKE_CUBLASLT_HPP
#define COACCEL_TEST_SUPPORT_FAKE_CUBLASLT_HPP

#include "cuda/blas/cublaslt_api.hpp"
#include "support/fake_cuda.hpp"

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

namespace test {

/// cuBLASLt on the fake driver: it checks descriptors and memory, computes products of floats, and records all
/// products. What the real library refuses is a violation of the driver, and so is the use of an algorithm for a
/// problem or for addresses other than those for which it was found. Only one may exist at a time, and its driver must
/// outlive it. The destructor reports objects that were not destroyed to the driver.
class fake_cublaslt {
public:
    /// The attributes of a descriptor that were set, by their number.
    class attribute_map {
    public:
        void set(int which, const void* value, std::size_t bytes)
        {
            const auto* first = static_cast<const char*>(value);
            values_[which].assign(first, first + bytes);
        }

        bool has(int which) const { return values_.contains(which); }

        /// The default if it was not set.
        template <class Value>
        Value get(int which, Value value = {}) const
        {
            const auto found = values_.find(which);
            if (found != values_.end() && found->second.size() == sizeof(Value))
                std::memcpy(&value, found->second.data(), sizeof(Value));
            return value;
        }

        /// Calls `f(which, bytes)` in the order of the attributes.
        template <class F>
        void for_each(const F& f) const
        {
            for (const auto& [which, bytes] : values_)
                f(which, bytes);
        }

    private:
        std::map<int, std::vector<char>> values_;
    };

    struct layout {
        cudaDataType type{};
        std::uint64_t rows = 0, cols = 0;
        std::int64_t ld = 0;
        attribute_map attributes{};
    };

    struct operation {
        cublasComputeType_t compute{};
        cudaDataType scale_type{};
        attribute_map attributes{};
    };

    struct product {
        std::thread::id thread{};
        operation how{};
        layout a{}, b{}, c{}, d{};
        const void* a_address = nullptr;
        const void* b_address = nullptr;
        const void* c_address = nullptr;
        void* d_address = nullptr;
        const void* alpha = nullptr;
        const void* beta = nullptr;
        const void* workspace = nullptr;
        std::size_t workspace_bytes = 0;
        /// The number of the algorithm, see set_algorithms.
        int algorithm = 0;
        /// The number of the call that found the algorithm, from 1.
        int choice = 0;
    };

    /// An algorithm that is found for every problem.
    struct algorithm {
        /// How long it takes, by the clock of `busy`.
        std::chrono::microseconds duration{};
        /// The result of a product with it.
        cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
        /// The status with which it is found. Only those with CUBLAS_STATUS_SUCCESS may be used.
        cublasStatus_t found = CUBLAS_STATUS_SUCCESS;
        std::size_t workspace_bytes = 0;
    };

    explicit fake_cublaslt(fake_cuda& driver);
    fake_cublaslt(const fake_cublaslt&) = delete;
    fake_cublaslt& operator=(const fake_cublaslt&) = delete;
    ~fake_cublaslt();

    const coaccel::cuda::cublaslt_api& api() const noexcept;

    /// The nth next call of the function fails. Names are those of the vendor's manual.
    void fail(std::string_view function, cublasStatus_t status, int nth = 1);
    /// The algorithms that are found from now on, in this order; their numbers begin with zero. By default there is one
    /// of default values. Empty: none is found, but the call succeeds.
    void set_algorithms(std::vector<algorithm> all);
    /// An algorithm that this library finds for no problem.
    static cublasLtMatmulAlgo_t unknown_algorithm();
    /// Called before each product is put on its stream. It must not call this library.
    void before_products(std::function<void(CUstream)> call);
    /// How long the products that the device has completed took, by the durations of their algorithms.
    std::chrono::microseconds busy() const;
    /// 10000 * major + 100 * minor + patch.
    void set_version(int version);
    int calls(std::string_view function) const;
    std::vector<product> products() const;
    /// The preferences of the last choice of an algorithm.
    attribute_map preferences() const;
    /// How many algorithms the last choice asked for.
    int wanted() const;
    /// The thread of the last choice.
    std::thread::id chooser() const;
    /// Handles and descriptors.
    std::size_t alive() const;

    struct state;

private:
    std::unique_ptr<state> state_;
};

} // namespace test

#endif
