#ifndef COACCEL_WORKER_IMAGE_SHELF_HPP
#define COACCEL_WORKER_IMAGE_SHELF_HPP

#include "worker/wire.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <memory>

namespace coaccel::jit {
struct image;
}

namespace coaccel::worker {

/// The compiled kernels that came from the parent, by the numbers they have there.
class COACCEL_DECL image_shelf {
public:
    explicit image_shelf(const image_limits& limits = {}) noexcept : limits_(limits) {}

    /// False when the part does not go with the parts before it, or is beyond the limits.
    [[nodiscard]] bool add(const image_frame& frame);

    /// False for one that never came. Ops that use it keep it.
    [[nodiscard]] bool remove(std::uint64_t id) noexcept;

    /// Null for one that never came, or not to its end.
    std::shared_ptr<const jit::image> find(std::uint64_t id) const noexcept;

private:
    struct entry {
        std::uint64_t total = 0;
        /// Of all limited bytes.
        std::uint64_t bytes = 0;
        std::shared_ptr<jit::image> growing;
        std::shared_ptr<const jit::image> made;
    };

    /// Null: there is no place for it.
    entry* begin(const image_frame& frame);

    const image_limits limits_;
    boost::unordered_flat_map<std::uint64_t, entry> entries_;
    // Including what is still to come.
    std::uint64_t bytes_ = 0;
};

} // namespace coaccel::worker

#endif
