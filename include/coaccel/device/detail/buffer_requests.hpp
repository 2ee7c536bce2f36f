#ifndef COACCEL_DEVICE_DETAIL_BUFFER_REQUESTS_HPP
#define COACCEL_DEVICE_DETAIL_BUFFER_REQUESTS_HPP

#include <coaccel/core/detail/adopt_op.hpp>
#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/core/managed_buffer.hpp>
#include <coaccel/device/detail/device_access.hpp>
#include <coaccel/ops/memory.hpp>

#include <array>
#include <memory>
#include <new>
#include <span>
#include <tuple>
#include <vector>

namespace coaccel::detail {

/// An allocation that the caller has not received yet; releases the memory if the caller never receives it.
class pending_allocation {
public:
    explicit pending_allocation(const core_ptr& core) : owner_(make_buffer_owner(core)) {}
    pending_allocation(const pending_allocation&) = delete;
    pending_allocation& operator=(const pending_allocation&) = delete;

    ~pending_allocation()
    {
        if (owner_ && made.ref.device != 0)
            owner_->release(made.ref);
    }

    template <element T>
    buffer<T> take() noexcept
    {
        return buffer<T>(made.ref, std::move(owner_));
    }

    allocation made;

private:
    std::shared_ptr<buffer_owner> owner_;
};

/// Allocates memory, then optionally fills it with one further op that has an operand `dst`.
template <element T, class Fill>
class buffer_request : public request {
public:
    buffer_request(const core_ptr& core, std::size_t count, const Fill& fill, std::size_t steps,
                   const exec_options& how)
        : lease_(core), allocate_{.count = count, .type = dtype_v<T>}, fill_(fill)
    {
        options = how;
        bound_[0] = {.info = &info_of<allocate_op>(), .op = &allocate_, .reply = &lease_.made};
        bound_[1] = {.info = &info_of<Fill>(), .op = &fill_, .operands = &address_};
        ops = std::span(bound_).first(steps);
    }

    void prepare(std::size_t i) noexcept override
    {
        if (i == 1)
            fill_.dst = ref<T>::from_raw(lease_.made.ref);
    }

    auto take() { return std::tuple(ec, ec ? buffer<T>() : lease_.template take<T>()); }

protected:
    ~buffer_request() = default;

private:
    pending_allocation lease_;
    allocate_op allocate_;
    Fill fill_;
    void* address_ = nullptr;
    std::array<bound_op, 2> bound_;
};

template <element T>
class alloc_request : public buffer_request<T, memory::fill<T>> {
public:
    static constexpr bool detachable = true;

    alloc_request(const core_ptr& core, std::size_t count, bool zeroed, const exec_options& how)
        : buffer_request<T, memory::fill<T>>(core, count, memory::fill<T>{}, zeroed ? 2 : 1, how)
    {}

protected:
    ~alloc_request() = default;
};

template <element T>
class managed_request : public request {
public:
    static constexpr bool detachable = true;

    managed_request(const core_ptr& core, std::size_t count, const exec_options& how = {})
        : lease_(core), allocate_{.count = count, .type = dtype_v<T>, .kind = memory_kind::managed}
    {
        options = how;
        bound_ = {.info = &info_of<allocate_op>(), .op = &allocate_, .reply = &lease_.made};
        ops = {&bound_, 1};
    }

    auto take()
    {
        auto* host = static_cast<T*>(lease_.made.host);
        return std::tuple(ec, ec ? managed_buffer<T>() : managed_buffer<T>(lease_.template take<T>(), host));
    }

protected:
    ~managed_request() = default;

private:
    pending_allocation lease_;
    allocate_op allocate_;
    bound_op bound_;
};

/// A buffer over memory of other code.
template <element T>
class adopt_request : public request {
public:
    static constexpr bool detachable = true;

    adopt_request(const core_ptr& core, T* pointer, std::size_t count, std::shared_ptr<void> owner,
                  const exec_options& how = {})
        : lease_(core), owner_(std::move(owner)),
          adopt_{.pointer = pointer, .count = count, .type = dtype_v<T>, .owner = &owner_}
    {
        options = how;
        bound_ = {.info = &info_of<adopt_op>(), .op = &adopt_, .reply = &lease_.made};
        ops = {&bound_, 1};
    }

    auto take() { return std::tuple(ec, ec ? buffer<T>() : lease_.template take<T>()); }

protected:
    ~adopt_request() = default;

private:
    pending_allocation lease_;
    std::shared_ptr<void> owner_;
    adopt_op adopt_;
    bound_op bound_;
};

template <element T>
class upload_request : public buffer_request<T, write_op<T>> {
public:
    upload_request(const core_ptr& core, std::span<const T> data, const exec_options& how)
        : buffer_request<T, write_op<T>>(core, data.size(), write_op<T>{.src = data.data(), .count = data.size()}, 2,
                                         how)
    {
        this->bytes = data.size_bytes();
        // Without elements, the check of the allocation would fail first, and its message does not name the range.
        if (data.empty())
            this->ops = this->ops.last(1);
    }

protected:
    ~upload_request() = default;
};

template <element T>
class download_request : public request {
public:
    static constexpr bool detachable = true;

    download_request(const core_ptr&, const ref<T>& source, const exec_options& how = {})
        : collect_{.src = source, .sink = {this, &append, &room}}
    {
        options = how;
        bytes = source.size_bytes();
        bound_ = {.info = &info_of<collect_op<T>>(), .op = &collect_, .operands = &address_};
        ops = {&bound_, 1};
    }

    auto take()
    {
        if (!ec && exhausted_)
            ec = errc::out_of_memory;
        return std::tuple(ec, ec ? std::vector<T>() : std::move(data_));
    }

protected:
    ~download_request() = default;

private:
    static void append(void* object, const void* data, std::size_t bytes) noexcept
    {
        auto* self = static_cast<download_request*>(object);
        try {
            self->data_.reserve(self->collect_.src.size());
            const auto* first = static_cast<const T*>(data);
            self->data_.insert(self->data_.end(), first, first + bytes / sizeof(T));
        } catch (const std::bad_alloc&) {
            self->exhausted_ = true;
        }
    }

    static void* room(void* object, std::size_t bytes) noexcept
    {
        auto* self = static_cast<download_request*>(object);
        try {
            self->data_.resize(bytes / sizeof(T));
            return self->data_.data();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }

    collect_op<T> collect_;
    void* address_ = nullptr;
    bound_op bound_;
    std::vector<T> data_;
    bool exhausted_ = false;
};

} // namespace coaccel::detail

#endif
