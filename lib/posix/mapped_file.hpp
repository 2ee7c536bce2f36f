#ifndef COACCEL_POSIX_MAPPED_FILE_HPP
#define COACCEL_POSIX_MAPPED_FILE_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace coaccel::detail {

/// The content of a file as memory that cannot be written. It stays valid when the file is removed or replaced, but
/// not when the file is shortened: reading a part that no longer exists is a SIGBUS. The file stays open, so that its
/// length can be checked.
class COACCEL_DECL mapped_file {
public:
    /// Errors: errc::file_failed if the file cannot be opened or mapped, or is not a regular file. The message names
    /// the path and the reason.
    static result<std::shared_ptr<const mapped_file>> open(const std::string& path);

    mapped_file(std::string path, unique_fd fd) noexcept : path_(std::move(path)), fd_(std::move(fd)) {}
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    ~mapped_file();

    std::span<const std::byte> bytes() const noexcept { return bytes_; }

    /// Checks that the file still has these bytes of the mapping. Another program can shorten it directly afterwards.
    ///
    /// Errors: errc::file_failed if it does not, or cannot be examined. The message names the path.
    error_code check(std::span<const std::byte> part) const;

private:
    std::string path_;
    unique_fd fd_;
    std::span<const std::byte> bytes_;
};

} // namespace coaccel::detail

#endif
