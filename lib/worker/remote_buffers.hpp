#ifndef COACCEL_WORKER_REMOTE_BUFFERS_HPP
#define COACCEL_WORKER_REMOTE_BUFFERS_HPP

#include "context/buffer_table.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <optional>

namespace coaccel::worker {

/// The buffers a worker has made. A copy goes to it bit by bit, so a ref that does not fit must be found out before the
/// first of them.
class COACCEL_DECL remote_buffers {
public:
    /// False, and nothing is added, when there is one in its slot.
    [[nodiscard]] bool add(const any_ref& made);
    void remove(const any_ref& buffer) noexcept;

    /// What the worker would say to this ref. Errors: errc::invalid_argument, errc::wrong_device, errc::stale_ref,
    /// errc::released_ref, errc::wrong_dtype, errc::out_of_bounds.
    error_code check(const any_ref& ref, dtype type, detail::context_identity identity) const noexcept;

    /// For the message about a ref that was refused.
    std::optional<detail::buffer_facts> facts(const any_ref& ref) const noexcept;

private:
    struct entry {
        std::uint32_t version = 0;
        dtype type = dtype::u8;
        std::uint64_t size = 0;
    };

    boost::unordered_flat_map<std::uint32_t, entry> entries_;
};

} // namespace coaccel::worker

#endif
