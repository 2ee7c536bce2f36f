#ifndef COACCEL_CONTEXT_BUFFERS_BUFFER_TABLE_HPP
#define COACCEL_CONTEXT_BUFFERS_BUFFER_TABLE_HPP

#include "context/context.hpp"
#include "context/lanes/hazards.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace coaccel::detail {

/// Memory that no ref names any more.
struct retired_buffer {
    void* memory = nullptr;
    std::size_t bytes = 0;
    memory_kind kind = memory_kind::device;
    access_log log;
    /// Set if other code has allocated the memory: the object that keeps it alive, or null.
    std::optional<std::shared_ptr<void>> owner{};
};

/// Size and type of the buffer that a ref names.
struct buffer_facts {
    std::uint64_t size = 0;
    dtype type = dtype::u8;
};

/// The buffers of one context. A reused slot gets a new version, so an old ref never finds the memory of a new buffer.
class COACCEL_DECL buffer_table {
public:
    struct slot {
        void* memory = nullptr;
        std::uint64_t size = 0;
        std::uint32_t version = 0;
        dtype type = dtype::u8;
        memory_kind kind = memory_kind::device;
        bool live = false;
        access_log log;
        /// As retired_buffer::owner.
        std::optional<std::shared_ptr<void>> owner{};
    };

    explicit buffer_table(context_identity identity) noexcept : identity_(identity) {}

    /// Precondition: no buffer has been inserted yet.
    void adopt(context_identity identity) noexcept { identity_ = identity; }

    any_ref insert(void* memory, std::uint64_t size, dtype type, memory_kind kind = memory_kind::device);

    /// Inserts memory that other code has allocated and that `owner` keeps alive.
    any_ref adopt(void* memory, std::uint64_t size, dtype type, std::shared_ptr<void> owner);

    /// Moves the owners of adopted memory to `out`, which has room for all of them.
    void take_owners(owner_list& out) noexcept;

    /// The slot of a ref, or the reason why the ref cannot be used as `type`.
    result<slot*> find(const any_ref& ref, dtype type) noexcept;

    /// For the message about a ref that `find` rejected; empty for a slot that was never used.
    std::optional<buffer_facts> facts(const any_ref& ref) const noexcept;

    context_identity identity() const noexcept { return identity_; }

    /// Removes the buffer from the table; empty if the ref does not name a live buffer.
    std::optional<retired_buffer> retire(const any_ref& ref) noexcept;

    access_log& log(std::uint32_t index) noexcept { return slots_[index].log; }

    std::size_t live() const noexcept { return live_; }

private:
    context_identity identity_;
    std::vector<slot> slots_;
    std::vector<std::uint32_t> free_;
    std::size_t live_ = 0;
};

/// Whether a ref belongs to this context. Errors: errc::invalid_argument, errc::wrong_device, errc::stale_ref.
COACCEL_DECL error_code check_origin(const any_ref& ref, context_identity identity) noexcept;

/// Whether two refs of one context share an element.
inline bool overlap(const any_ref& a, const any_ref& b) noexcept
{
    return a.size != 0 && b.size != 0 && a.slot == b.slot && a.version == b.version && a.offset < b.offset + b.size &&
           b.offset < a.offset + a.size;
}

} // namespace coaccel::detail

#endif
