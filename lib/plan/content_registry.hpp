#ifndef COACCEL_PLAN_CONTENT_REGISTRY_HPP
#define COACCEL_PLAN_CONTENT_REGISTRY_HPP

#include <coaccel/plan/detail/plan_data.hpp>

#include <cstddef>

namespace coaccel::detail {

/// Returns this content with its identity, which is that of all equal contents in the process, so that a device that
/// loads it compares no bytes on its executor.
///
/// Compares the bytes with those of contents that have the same hash, because a file could contain forged content: the
/// hash does not resist deliberate collisions. Blocks as long as that takes, and reads the file of a mapped content.
COACCEL_DECL plan_content identify_content(const plan_content& c);

/// How many contents have an identity, equal ones included.
COACCEL_DECL std::size_t identified_contents();

} // namespace coaccel::detail

#endif
