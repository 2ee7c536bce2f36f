#ifndef COACCEL_SERVER_REPOSITORY_FILE_CONTENT_HPP
#define COACCEL_SERVER_REPOSITORY_FILE_CONTENT_HPP

#include "server/repository/model_scan.hpp"

#include <coaccel/core/result.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <sys/stat.h>

namespace coaccel::server {

/// The identity of a file, from its status.
COACCEL_DECL file_identity identity_of(const struct stat& status) noexcept;

/// The bytes of a file in memory that cannot be written.
struct file_content {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner; ///< Keeps them.
};

/// Copies a file to memory of this process. A mapping of the file would not do: when another program shortens
/// the file, as `cp` does before it writes over it, a read of the mapping ends the process with a SIGBUS.
///
/// Errors: errc::file_failed if the file cannot be read or is not a regular file; errc::file_invalid if it is not the
/// one that was expected, or has changed while it was read. The message names the path.
COACCEL_DECL result<file_content> read_content(const std::string& path, const file_identity& expected);

} // namespace coaccel::server

#endif
