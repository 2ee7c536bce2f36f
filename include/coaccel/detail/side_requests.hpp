#ifndef COACCEL_DETAIL_SIDE_REQUESTS_HPP
#define COACCEL_DETAIL_SIDE_REQUESTS_HPP

#include <coaccel/core/pinned_buffer.hpp>
#include <coaccel/detail/device_access.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/shape.hpp>

#include <memory>
#include <string>
#include <tuple>
#include <utility>

// Calls of a device that go beside its lanes: they need a context, but no stream.
namespace coaccel::detail {

/// Waits until there is pinned memory for it.
class pinned_call : public request {
public:
    pinned_call(std::size_t count, std::size_t size) noexcept
        : request(request_kind::pinned), wanted(times(count, size))
    {}

    /// Nothing when it overflows.
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

/// Compiles away from the executor.
class compile_call : public request {
public:
    compile_call(std::string s, jit::compile_options o)
        : request(request_kind::compile), source(std::move(s)), how(std::move(o))
    {}

    std::string source;
    jit::compile_options how;
    jit::kernel made;
    /// Made when the compiling begins, and gone with the call: so the compiler sees that nobody waits any more.
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
