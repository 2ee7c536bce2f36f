#ifndef COACCEL_TEST_SUPPORT_FAKE_CUBLASLT_HPP
#define COACCEL_TEST_SUPPORT_FAKE_CUBLASLT_HPP

#include "cuda/blas/cublaslt_api.hpp"
#include "support/fake_cuda.hpp"

#include <cstring>
#include <thread>

namespace test {

/// cuBLASLt on the fake driver: it checks descriptors and memory, computes products of floats, and records all
/// products. Only one may exist at a time, and its driver must outlive it. The destructor reports objects that were not
/// destroyed to the driver.
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
        layout a{}, b{}, c{};
        const void* a_address = nullptr;
        const void* b_address = nullptr;
        void* c_address = nullptr;
        const void* alpha = nullptr;
        const void* beta = nullptr;
        const void* workspace = nullptr;
        std::size_t workspace_bytes = 0;
        /// The number of the algorithm, which is that of the choice.
        std::uint64_t algorithm = 0;
    };

    explicit fake_cublaslt(fake_cuda& driver);
    fake_cublaslt(const fake_cublaslt&) = delete;
    fake_cublaslt& operator=(const fake_cublaslt&) = delete;
    ~fake_cublaslt();

    const coaccel::cuda::cublaslt_api& api() const noexcept;

    /// The nth next call of the function fails. Names are those of the vendor's manual.
    void fail(std::string_view function, cublasStatus_t status, int nth = 1);
    /// From now on no algorithm is found, but the call succeeds.
    void find_none(bool none);
    int calls(std::string_view function) const;
    std::vector<product> products() const;
    /// The preferences of the last choice of an algorithm.
    attribute_map preferences() const;
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
