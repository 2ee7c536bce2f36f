#ifndef COACCEL_POSIX_FILE_HPP
#define COACCEL_POSIX_FILE_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/config.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace coaccel::detail {

/// Reads the whole file; nothing if reading fails or the file exceeds `limit` bytes.
COACCEL_DECL std::optional<std::string> read_all(const unique_fd& f, std::uint64_t limit);

/// Changes when the file is replaced. Empty if there is no file.
COACCEL_DECL std::string file_stamp(const std::string& path);

} // namespace coaccel::detail

#endif
