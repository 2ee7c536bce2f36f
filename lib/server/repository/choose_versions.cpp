#include "server/repository/choose_versions.hpp"

#include <algorithm>
#include <iterator>

namespace coaccel::server {

std::set<std::uint64_t> choose_versions(const version_policy& policy, const std::set<std::uint64_t>& exist)
{
    switch (policy.how) {
    case version_policy::rule::all: return exist;
    case version_policy::rule::latest: {
        const auto count = std::min<std::size_t>(policy.count, exist.size());
        return {std::prev(exist.end(), static_cast<std::ptrdiff_t>(count)), exist.end()};
    }
    case version_policy::rule::listed: break;
    }
    std::set<std::uint64_t> chosen;
    std::ranges::set_intersection(policy.list, exist, std::inserter(chosen, chosen.end()));
    return chosen;
}

} // namespace coaccel::server
