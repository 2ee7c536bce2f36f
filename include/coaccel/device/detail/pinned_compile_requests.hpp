#ifndef COACCEL_DEVICE_DETAIL_PINNED_COMPILE_REQUESTS_HPP
#define COACCEL_DEVICE_DETAIL_PINNED_COMPILE_REQUESTS_HPP

#include <coaccel/core/detail/shape.hpp>
#include <coaccel/core/pinned_buffer.hpp>
#include <coaccel/device/detail/device_access.hpp>
#include <coaccel/ops/jit.hpp>

#include <memory>
#include <string>
#include <tuple>
#include <utility>

// Calls of a device that bypass its lanes: they need a context, but no stream.
namespace coaccel::detail {

/// Waits until pinned memory is available.
class pinned_call : public request {
public:
    pinned_call(std::size_t count, std::size_t size) noexcept
        : request(request_kind::pinned), wanted(times(count, size))
    {}

    /// Empty if the size overflows.
    const extent wanted;
    void* memory = nullptr;
    std::shared_ptr<pinned_memory> owner;

protected:
    ~pinned_call()
    {
        if (memory)
            owner->release(memory);
    }
};

template <element T>
class pinned_request : public pinned_call {
public:
    pinned_request(const core_ptr&, std::size_t count) noexcept : pinned_call(count, sizeof(T)) {}

    auto take()
    {
        if (ec)
            return std::tuple(ec, pinned_buffer<T>());
        auto* data = static_cast<T*>(std::exchange(memory, nullptr));
        return std::tuple(ec, pinned_buffer<T>(data, *wanted / sizeof(T), std::move(owner)));
    }

protected:
    ~pinned_request() = default;
};

/// Compiles outside the executor.
class compile_call : public request {
public:
    compile_call(std::string s, jit::compile_options o)
        : request(request_kind::compile), source(std::move(s)), how(std::move(o))
    {}

    std::string source;
    jit::compile_options how;
    jit::kernel made;
    /// Created when the compilation begins, and destroyed with the call: the compiler then sees that the result is no
    /// longer wanted.
    std::shared_ptr<const bool> begun;

protected:
    ~compile_call() = default;
};

class compile_request : public compile_call {
public:
    compile_request(const core_ptr&, std::string s, jit::compile_options o) : compile_call(std::move(s), std::move(o))
    {}

    auto take() { return std::tuple(ec, std::move(made)); }

protected:
    ~compile_request() = default;
};

} // namespace coaccel::detail

#endif
