#ifndef COACCEL_DEVICE_SHARED_CONSTANTS_HPP
#define COACCEL_DEVICE_SHARED_CONSTANTS_HPP

#include "context/exported_memory.hpp"
#include "device/constant_groups.hpp"

#include <coaccel/device/detail/durable_requests.hpp>

#include <memory>
#include <vector>

namespace coaccel::detail {

/// Constants in memory that outlives the workers of the device. The loaded plans that use it own it.
struct shared_constant {
    constant_group content;
    std::shared_ptr<const exported_memory> memory;
};

/// Whether a context can share constants with the other contexts of its device.
enum class sharing : std::uint8_t { no, yes };

/// Finds the constants that the workers of a device share. Owns none of them.
class COACCEL_DECL shared_constants {
public:
    /// Smaller groups are uploaded to every worker: a GPU exports memory in units of this size.
    static constexpr std::uint64_t least_bytes = least_shared_bytes;

    /// Null if there is none.
    std::shared_ptr<const shared_constant> find(const constant_group& c) const noexcept;

    /// The constants in this memory. If another worker has made it meanwhile, that one.
    std::shared_ptr<const shared_constant> add(const constant_group& c, std::shared_ptr<const exported_memory> memory);

    /// This one is not found any more: its memory cannot be used.
    void discard(const shared_constant& c) noexcept;
    void discard_all() noexcept { all_.clear(); }

    /// The memory of all of them.
    std::uint64_t bytes() const noexcept;

private:
    std::vector<std::weak_ptr<const shared_constant>> all_;
};

} // namespace coaccel::detail

#endif
