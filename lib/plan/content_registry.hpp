#ifndef COACCEL_PLAN_CONTENT_REGISTRY_HPP
#define COACCEL_PLAN_CONTENT_REGISTRY_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/plan/detail/plan_data.hpp>

#include <cstddef>

namespace coaccel::detail {

/// Checks that `count` bytes from `offset` can be read, if the content is that of a file. Another program can shorten
/// the file directly afterwards.
///
/// Errors: as mapped_file::check.
COACCEL_DECL error_code check_content(const plan_content& c, std::uint64_t offset, std::uint64_t count);

/// Returns this content with its identity, which is that of all equal contents in the process, so that a device that
/// loads it compares no bytes on its executor.
///
/// Compares the bytes with those of contents that have the same hash, because a file could contain forged content: the
/// hash does not resist deliberate collisions. Blocks as long as that takes, and reads the file of a mapped content. A
/// content that can no longer be read is equal to no other.
COACCEL_DECL plan_content identify_content(const plan_content& c);

/// How many contents have an identity, equal ones included.
COACCEL_DECL std::size_t identified_contents();

} // namespace coaccel::detail

#endif
