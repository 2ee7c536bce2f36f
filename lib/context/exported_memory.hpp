#ifndef COACCEL_CONTEXT_EXPORTED_MEMORY_HPP
#define COACCEL_CONTEXT_EXPORTED_MEMORY_HPP

#include "context/context.hpp"
#include "posix/unique_fd.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <cstdint>
#include <memory>

// Memory that outlives the context in which it was made.
namespace coaccel::detail {

/// Memory of a backend. It exists as long as this object or a mapping of it does, whatever becomes of the
/// process that made it. This process need not be able to access it.
struct exported_memory {
    unique_fd descriptor;
    std::uint64_t bytes = 0;
    memory_access access = memory_access::read_only;
};

/// Passes the memory of an exportable buffer, which no op uses, to this process. With memory_access::read_only it is
/// read-only from then on. Only the contexts of workers know this op and the next one.
struct export_op {
    using reply = void;
    static constexpr std::string_view name = "memory.export";
    static constexpr library lib = library::memory;

    inout<std::uint8_t> buffer{};
    memory_access access = memory_access::read_only;
    /// Where to put it.
    std::shared_ptr<const exported_memory>* to = nullptr;

    error_code check() const noexcept { return buffer.size() != 0 ? error_code{} : is_empty(name, "buffer"); }

    BOOST_DESCRIBE_CLASS(export_op, (), (buffer, access, to), (), ())
};

/// Makes a buffer of exported memory, which can be written if it was exported so.
struct import_op {
    using reply = allocation;
    static constexpr std::string_view name = "memory.import";
    static constexpr library lib = library::memory;

    const std::shared_ptr<const exported_memory>* from = nullptr;
    /// Of its elements.
    dtype type = dtype::u8;

    imported_buffer wanted() const noexcept { return {(*from)->bytes / size_of(type), type, (*from)->access}; }

    error_code check() const noexcept
    {
        if (const std::uint64_t rest = (*from)->bytes % size_of(type); rest != 0)
            return op_error(errc::length_mismatch, name,
                            {(*from)->bytes, " bytes are no whole number of elements of type ", to_string(type)});
        return check_count(name, (*from)->bytes / size_of(type), type);
    }

    BOOST_DESCRIBE_CLASS(import_op, (), (from, type), (), ())
};

} // namespace coaccel::detail

#endif
