#ifndef COACCEL_WORKER_IMAGE_LEDGER_HPP
#define COACCEL_WORKER_IMAGE_LEDGER_HPP

#include "worker/wire.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

namespace coaccel::jit {
struct image;
}

namespace coaccel::worker {

/// The parent's account of the compiled kernels that a worker has.
class COACCEL_DECL image_ledger {
public:
    explicit image_ledger(const image_limits& limits = {}) noexcept : limits_(limits) {}

    bool has(std::uint64_t id) const noexcept { return bytes_by_id_.contains(id); }
    std::size_t size() const noexcept { return bytes_by_id_.size(); }

    /// errc::invalid_argument, with a message that names the kernel and the limit, for one that no worker would take.
    error_code check(const jit::image& i) const;

    /// Whether there is a place for it beside those that are there.
    bool has_room_for(const jit::image& i) const noexcept;

    /// errc::invalid_argument, as from `check`: for when there is no place and none can be made.
    error_code full(const jit::image& i) const;

    void add(const jit::image& i);

    /// Takes those off that `is_gone` says yes to.
    template <class Predicate>
    void remove_if(Predicate is_gone)
    {
        boost::unordered::erase_if(bytes_by_id_, [&](const auto& entry) {
            if (!is_gone(entry.first))
                return false;
            bytes_ -= entry.second;
            return true;
        });
    }

private:
    const image_limits limits_;
    boost::unordered_flat_map<std::uint64_t, std::uint64_t> bytes_by_id_;
    std::uint64_t bytes_ = 0;
};

} // namespace coaccel::worker

#endif
