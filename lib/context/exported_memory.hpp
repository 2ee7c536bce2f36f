#ifndef COACCEL_CONTEXT_EXPORTED_MEMORY_HPP
#define COACCEL_CONTEXT_EXPORTED_MEMORY_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <cstdint>
#include <memory>

// Memory that outlives the context in which it was made.
namespace coaccel::detail {

/// Read-only memory of a backend. It exists as long as this object or a mapping of it does, whatever becomes of the
/// process that made it. This process need not be able to access it.
struct exported_memory {
    unique_fd descriptor;
    std::uint64_t bytes = 0;
};

/// Makes the memory of an exportable buffer, which no op uses, read-only for good, and passes it to this process.
/// Only the contexts of workers know this op and the next one.
struct export_op {
    using reply = void;
    static constexpr std::string_view name = "memory.export";
    static constexpr library lib = library::memory;

    inout<std::uint8_t> buffer{};
    /// Where to put it.
    std::shared_ptr<const exported_memory>* to = nullptr;

    error_code check() const noexcept { return buffer.size() != 0 ? error_code{} : is_empty(name, "buffer"); }

    BOOST_DESCRIBE_CLASS(export_op, (), (buffer, to), (), ())
};

/// Makes a read-only buffer of exported memory.
struct import_op {
    using reply = allocation;
    static constexpr std::string_view name = "memory.import";
    static constexpr library lib = library::memory;

    const std::shared_ptr<const exported_memory>* from = nullptr;

    error_code check() const noexcept { return check_count(name, (*from)->bytes, dtype::u8); }

    BOOST_DESCRIBE_CLASS(import_op, (), (from), (), ())
};

} // namespace coaccel::detail

#endif
