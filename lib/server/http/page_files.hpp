#ifndef COACCEL_SERVER_HTTP_PAGE_FILES_HPP
#define COACCEL_SERVER_HTTP_PAGE_FILES_HPP

#include "server/http/reply.hpp"

#include <string>
#include <string_view>

namespace coaccel::server {

/// Whether a path may be served: it does not leave the folder, and has no hidden parts.
bool is_page_path(std::string_view path) noexcept;

/// The file of the folder, or status 404. An empty path, or one that ends with a slash, is that of index.html. The call
/// blocks.
reply page_file(const std::string& folder, std::string_view path);

} // namespace coaccel::server

#endif
