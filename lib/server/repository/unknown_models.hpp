#ifndef COACCEL_SERVER_REPOSITORY_UNKNOWN_MODELS_HPP
#define COACCEL_SERVER_REPOSITORY_UNKNOWN_MODELS_HPP

#include "server/repository/model_scan.hpp"

#include <coaccel/server/server_options.hpp>

#include <string>
#include <vector>

namespace coaccel::server {

/// Warnings about models that have options but no folder: a name may be misspelt. A model may also be added later, so
/// this is not an error.
COACCEL_DECL std::vector<std::string> unknown_models(const server_options& options, const model_scan& scan);

} // namespace coaccel::server

#endif
