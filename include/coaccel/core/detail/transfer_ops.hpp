#ifndef COACCEL_CORE_DETAIL_TRANSFER_OPS_HPP
#define COACCEL_CORE_DETAIL_TRANSFER_OPS_HPP

#include <coaccel/core/backend.hpp>
#include <coaccel/core/detail/shape.hpp>
#include <coaccel/core/op.hpp>

#include <cstddef>

// The ops behind async_alloc, async_write, async_read and async_download. They contain addresses of this process and
// are therefore not part of the public API.
namespace coaccel::detail {

/// New memory: its ref, and its host address if the host can access it.
struct allocation {
    any_ref ref;
    void* host = nullptr;
};

/// The size of a buffer. The limit is half the address space, so that the sum of two sizes does not overflow either.
inline error_code check_count(std::string_view op, std::uint64_t count, dtype type) noexcept
{
    if (count == 0)
        return is_zero(op, "count");
    const auto n = times(count, size_of(type));
    if (n && *n >> 63 == 0)
        return {};
    return op_error(errc::size_overflow, op, {"count is ", count, ", too many elements of ", size_of(type), " bytes"});
}

struct allocate_op {
    using reply = allocation;
    static constexpr std::string_view name = "memory.allocate";
    static constexpr library lib = library::memory;
    static constexpr op_role role = op_role::allocate;

    std::uint64_t count = 0;
    dtype type = dtype::u8;
    memory_kind kind = memory_kind::device;

    extent bytes() const noexcept { return times(count, size_of(type)); }

    error_code check() const noexcept { return check_count(name, count, type); }

    BOOST_DESCRIBE_CLASS(allocate_op, (), (count, type, kind), (), ())
};

inline error_code check_span(std::string_view op, std::string_view field, std::uint64_t ref_size,
                             std::uint64_t span_size) noexcept
{
    if (span_size == 0)
        return is_empty(op, "the host range");
    if (ref_size == span_size)
        return {};
    return op_error(errc::length_mismatch, op, {"the host range has ", span_size, " elements, ", field, " ", ref_size});
}

template <element T>
struct write_op {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.write";
    static constexpr library lib = library::memory;
    static constexpr op_role role = op_role::write;
    static constexpr bool uses_callers_memory = true;

    out<T> dst{};
    const T* src = nullptr;
    std::uint64_t count = 0;

    std::uint64_t host_bytes() const noexcept { return count * sizeof(T); }

    error_code check() const noexcept { return check_span(name, "dst", dst.size(), count); }

    BOOST_DESCRIBE_CLASS(write_op, (), (dst, src, count), (), ())
};

template <element T>
struct read_op {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.read";
    static constexpr library lib = library::memory;
    static constexpr op_role role = op_role::read;
    static constexpr bool uses_callers_memory = true;

    in<T> src{};
    T* dst = nullptr;
    std::uint64_t count = 0;

    std::uint64_t host_bytes() const noexcept { return count * sizeof(T); }

    error_code check() const noexcept { return check_span(name, "src", src.size(), count); }

    BOOST_DESCRIBE_CLASS(read_op, (), (src, dst, count), (), ())
};

/// Receives downloaded data, outside the executor unless there is little of it. Either `append` takes all of it at once
/// and records its own failures, or `room` returns memory for it, null if there is none.
struct collector {
    void* object = nullptr;
    void (*append)(void* object, const void* data, std::size_t bytes) noexcept = nullptr;
    void* (*room)(void* object, std::size_t bytes) noexcept = nullptr;
};

template <element T>
struct collect_op {
    using value_type = T;
    using reply = void;
    static constexpr std::string_view name = "memory.download";
    static constexpr library lib = library::memory;
    static constexpr op_role role = op_role::download;

    in<T> src{};
    collector sink;

    error_code check() const noexcept { return src.size() != 0 ? error_code{} : is_empty(name, "src"); }

    BOOST_DESCRIBE_CLASS(collect_op, (), (src, sink), (), ())
};

/// The ops that copy between the host and a buffer, for one element type.
template <element T>
using transfers_of = type_list<write_op<T>, read_op<T>, collect_op<T>>;

/// The caller's function, called with the native stream and the memory of its operands. The operands differ from call
/// to call, so the device makes the description; the data of every such op begins with this struct.
struct user_op {
    void* object = nullptr;
    void (*call)(void* object, const bound_op& op, native_stream stream) noexcept = nullptr;

    std::uint64_t work() const noexcept { return reinterpret_cast<std::uintptr_t>(call); }
};

inline constexpr std::uint64_t user_op_id = hash("user.submit");

} // namespace coaccel::detail

#endif
