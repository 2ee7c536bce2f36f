#ifndef COACCEL_WORKER_PARENT_SENT_KERNELS_HPP
#define COACCEL_WORKER_PARENT_SENT_KERNELS_HPP

#include "worker/protocol/wire.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

namespace coaccel::jit {
struct image;
}

namespace coaccel::worker {

/// The parent's record of the compiled kernels that a worker holds.
class COACCEL_DECL sent_kernels {
public:
    explicit sent_kernels(const image_limits& limits = {}) noexcept : limits_(limits) {}

    bool has(std::uint64_t id) const noexcept { return bytes_by_id_.contains(id); }
    std::size_t size() const noexcept { return bytes_by_id_.size(); }

    /// Returns errc::invalid_argument, with a message that names the kernel and the limit, for a kernel that no worker
    /// accepts.
    error_code check(const jit::image& i) const;

    /// Whether the kernel fits in addition to the present ones.
    bool has_room_for(const jit::image& i) const noexcept;

    /// Whether to look for destroyed kernels before this one is added. There is no notification when a kernel is
    /// destroyed, so all are looked up if there is no room or if they have more than doubled since the last time.
    bool should_scan_for(const jit::image& i) const noexcept { return size() > 2 * kept_ + 64 || !has_room_for(i); }

    /// Returns errc::invalid_argument, as `check` does, for a kernel for which no room can be made.
    error_code full(const jit::image& i) const;

    void add(const jit::image& i);

    /// Removes the kernels for which `is_gone` returns true.
    template <class Predicate>
    void remove_if(Predicate is_gone)
    {
        boost::unordered::erase_if(bytes_by_id_, [&](const auto& entry) {
            if (!is_gone(entry.first))
                return false;
            bytes_ -= entry.second;
            return true;
        });
        kept_ = size();
    }

private:
    const image_limits limits_;
    boost::unordered_flat_map<std::uint64_t, std::uint64_t> bytes_by_id_;
    std::uint64_t bytes_ = 0;
    /// How many were left by the last `remove_if`.
    std::size_t kept_ = 0;
};

} // namespace coaccel::worker

#endif
