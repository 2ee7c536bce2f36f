#ifndef COACCEL_CLIENT_FILES_HPP
#define COACCEL_CLIENT_FILES_HPP

#include <coaccel/core/result.hpp>

#include <string>

namespace coaccel::client {

/// The content of a regular file of at most 2 GiB.
///
/// Errors: errc::file_failed with the path and the reason.
/// Exceptions: std::bad_alloc.
result<std::string> read_file(const std::string& path);

/// Gives a file this content as a whole.
///
/// Errors: errc::file_failed with the path and the reason.
/// Exceptions: std::bad_alloc.
result<void> write_file(const std::string& path, const std::string& content);

} // namespace coaccel::client

#endif
