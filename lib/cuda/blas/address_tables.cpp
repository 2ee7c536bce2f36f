#include "cuda/blas/address_tables.hpp"

#include "cuda/backend.hpp"
#include "cuda/blas/blas_context.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::cuda {

result<readiness> address_tables::prepare(std::uint64_t addresses, std::uint64_t pivots)
{
    kernel_ = &backend_.resources().get<blas_context>().addresses;
    return memory_.prepare(addresses * sizeof(CUdeviceptr) + pivots * sizeof(std::int32_t));
}

void* const* address_tables::fill(std::initializer_list<address_sequence> from, std::uint64_t count) noexcept
{
    filled_ = from.size() * count;
    const auto functions = kernel_->load(backend_);
    if (!functions) {
        failure_ = functions.error();
        return nullptr;
    }
    address_sequences all{};
    std::ranges::copy(from, all.begin());
    auto* const tables = static_cast<void* const*>(memory_.memory());
    failure_ = launch_addresses(backend_, functions.value().fill_addresses, reinterpret_cast<CUdeviceptr>(tables),
                                count, all, static_cast<unsigned>(from.size()), stream_);
    return failure_ ? nullptr : tables;
}

void* const* address_tables::store(const address_list& from, std::uint32_t count) noexcept
{
    filled_ = count;
    const auto functions = kernel_->load(backend_);
    if (!functions) {
        failure_ = functions.error();
        return nullptr;
    }
    auto* const tables = static_cast<void* const*>(memory_.memory());
    failure_ = launch_store_addresses(backend_, functions.value().store_addresses,
                                      reinterpret_cast<CUdeviceptr>(tables), count, from, stream_);
    return failure_ ? nullptr : tables;
}

const std::int32_t* address_tables::limit_pivots(const std::int32_t* from, std::uint64_t count,
                                                 std::int32_t most) noexcept
{
    const auto functions = kernel_->load(backend_);
    if (!functions) {
        failure_ = functions.error();
        return nullptr;
    }
    const CUdeviceptr to = reinterpret_cast<CUdeviceptr>(memory_.memory()) + filled_ * sizeof(CUdeviceptr);
    failure_ = launch_limit_pivots(backend_, functions.value().limit_pivots, to, reinterpret_cast<CUdeviceptr>(from),
                                   count, most, stream_);
    return failure_ ? nullptr : reinterpret_cast<const std::int32_t*>(to);
}

error_code address_tables::launched() noexcept
{
    if (std::exchange(filled_, 0) == 0)
        return {};
    const auto failed = std::exchange(failure_, {});
    if (backend_.dead())
        return failed;
    const auto kept = memory_.launched();
    return failed ? failed : kept;
}

} // namespace coaccel::cuda
