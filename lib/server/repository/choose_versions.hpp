#ifndef COACCEL_SERVER_REPOSITORY_CHOOSE_VERSIONS_HPP
#define COACCEL_SERVER_REPOSITORY_CHOOSE_VERSIONS_HPP

#include <coaccel/server/server_options.hpp>

#include <cstdint>
#include <set>

namespace coaccel::server {

/// The versions that the policy wants, out of those that exist.
COACCEL_DECL std::set<std::uint64_t> choose_versions(const version_policy& policy,
                                                     const std::set<std::uint64_t>& exist);

} // namespace coaccel::server

#endif
