#include "server/repository/unknown_models.hpp"

#include "core/near_name.hpp"
#include "server/protocol/in_quotes.hpp"

#include <string_view>

namespace coaccel::server {

std::vector<std::string> unknown_models(const server_options& options, const model_scan& scan)
{
    std::vector<std::string> warnings;
    if (!scan.readable)
        return warnings;
    std::vector<std::string_view> names;
    for (const auto& [name, m] : scan.models)
        names.push_back(name);
    for (const auto& [name, own] : options.models)
        if (!scan.models.contains(name))
            warnings.push_back("[model " + name + "]: " + options.model_folder + " has no model " + in_quotes(name) +
                               detail::suggestion(name, names));
    return warnings;
}

} // namespace coaccel::server
