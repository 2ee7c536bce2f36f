#ifndef COACCEL_DEVICE_DETAIL_DURABLE_REQUESTS_HPP
#define COACCEL_DEVICE_DETAIL_DURABLE_REQUESTS_HPP

#include <coaccel/core/durable_buffer.hpp>
#include <coaccel/device/detail/buffer_requests.hpp>
#include <coaccel/device/detail/exec_requests.hpp>
#include <coaccel/ops/memory.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// Smaller contents are uploaded to each worker: a GPU exports memory in units of this size.
inline constexpr std::uint64_t least_shared_bytes = std::uint64_t(2) << 20;

/// Waits for memory that outlives the contexts of the device.
class durable_call : public request {
public:
    durable_call(const core_ptr& core, std::uint64_t n, dtype t, std::shared_ptr<const std::byte> elements = nullptr)
        : request(request_kind::durable), count(n), type(t), content(std::move(elements)), lease(core)
    {}

    const std::uint64_t count;
    const dtype type;
    /// What it contains, if it can only be read; null: it begins with zeros.
    const std::shared_ptr<const std::byte> content;
    pending_allocation lease;
    std::shared_ptr<durable_status> status = std::make_shared<durable_status>();

protected:
    ~durable_call() = default;
};

template <element T>
class durable_request : public durable_call {
public:
    durable_request(const core_ptr& core, std::size_t count) : durable_call(core, count, dtype_v<T>) {}

    auto take()
    {
        return std::tuple(ec, ec ? durable_buffer<T>() : durable_buffer<T>(lease.template take<T>(), status));
    }

protected:
    ~durable_request() = default;
};

/// These elements in memory that all workers of the device share, and that can only be read.
template <element T>
class shared_elements_request : public durable_call {
public:
    shared_elements_request(const core_ptr& core, const std::shared_ptr<const std::vector<T>>& elements)
        : durable_call(core, elements->size(), dtype_v<T>,
                       std::shared_ptr<const std::byte>(elements, reinterpret_cast<const std::byte*>(elements->data())))
    {}

    auto take() { return std::tuple(ec, ec ? buffer<T>() : lease.template take<T>()); }

protected:
    ~shared_elements_request() = default;
};

/// The user relies on the content of a durable buffer.
class trust_call : public request {
public:
    explicit trust_call(const any_ref& b) noexcept : request(request_kind::trust), buffer(b) {}

    const any_ref buffer;

protected:
    ~trust_call() = default;
};

class trust_request : public trust_call {
public:
    trust_request(const core_ptr&, const any_ref& b) noexcept : trust_call(b) {}

    auto take() { return std::tuple(ec); }

protected:
    ~trust_request() = default;
};

/// Overwrites a whole durable buffer, which may be suspect, with zeros.
template <element T>
class clear_request : public exec_request<memory::fill<T>> {
public:
    clear_request(const core_ptr& core, const ref<T>& all, const exec_options& how)
        : exec_request<memory::fill<T>>(core, memory::fill<T>{.dst = all, .value = T{}}, how)
    {
        this->overwrites_durable = true;
    }

protected:
    ~clear_request() = default;
};

} // namespace coaccel::detail

#endif
