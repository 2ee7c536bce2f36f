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
    /// False when the part does not go with the parts before it.
    [[nodiscard]] bool add(const image_frame& frame);

    /// Null for one that never came, or not to its end.
    std::shared_ptr<const jit::image> find(std::uint64_t id) const noexcept;

private:
    struct entry {
        std::string code;
        std::shared_ptr<const jit::image> made;
    };

    boost::unordered_flat_map<std::uint64_t, entry> entries_;
};

} // namespace coaccel::worker

#endif
