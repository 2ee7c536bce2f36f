#ifndef COACCEL_WORKER_PARENT_REMOTE_BUFFERS_HPP
#define COACCEL_WORKER_PARENT_REMOTE_BUFFERS_HPP

#include "context/buffers/buffer_table.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <optional>

namespace coaccel::worker {

/// The buffers that a worker has made. A copy is sent to the worker in pieces, so an invalid ref must be detected
/// before the first piece.
class COACCEL_DECL remote_buffers {
public:
    /// Returns false and adds nothing if the slot is already in use.
    [[nodiscard]] bool add(const any_ref& made);
    void remove(const any_ref& buffer) noexcept;

    /// The caller has released a buffer. Its release is sent later if copies use the buffer, and then it is removed.
    void released() noexcept { live_ -= live_ > 0; }
    /// How many buffers the callers have not released.
    std::size_t live() const noexcept { return live_; }

    /// Checks a ref as the worker would. Errors: errc::invalid_argument, errc::wrong_device, errc::stale_ref,
    /// errc::released_ref, errc::wrong_dtype, errc::out_of_bounds.
    error_code check(const any_ref& ref, dtype type, detail::context_identity identity) const noexcept;

    /// Facts for the error message about a rejected ref.
    std::optional<detail::buffer_facts> facts(const any_ref& ref) const noexcept;

private:
    struct entry {
        std::uint32_t version = 0;
        dtype type = dtype::u8;
        std::uint64_t size = 0;
    };

    boost::unordered_flat_map<std::uint32_t, entry> entries_;
    std::size_t live_ = 0;
};

} // namespace coaccel::worker

#endif
