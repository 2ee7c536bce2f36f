#ifndef COACCEL_POSIX_REPLACED_FILE_HPP
#define COACCEL_POSIX_REPLACED_FILE_HPP

#include "posix/unique_fd.hpp"

#include <coaccel/core/result.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace coaccel::detail {

/// A file that gets new content as a whole. The content is written to a temporary file in the same folder, which then
/// takes the place of the file: a reader gets the old content or the new one. Without `commit`, the destructor
/// removes the temporary file.
///
/// A symbolic link is followed. The permissions of an existing file are kept.
///
/// Errors of all functions: errc::file_failed with the path and the reason.
class COACCEL_DECL replaced_file {
public:
    /// Errors also: the path names something other than a regular file, such as a folder or a device.
    static result<replaced_file> create(const std::string& path);

    replaced_file(replaced_file&& other) noexcept;
    replaced_file& operator=(replaced_file&&) = delete;
    ~replaced_file();

    /// Appends to the new content.
    error_code write(std::span<const std::byte> bytes);

    /// Waits until the new content is on the disk, then replaces the file.
    error_code commit();

private:
    replaced_file(std::string path, std::string temporary, unique_fd fd) noexcept;

    std::string path_;
    /// Empty: there is none, or it has become the file.
    std::string temporary_;
    unique_fd fd_;
};

} // namespace coaccel::detail

#endif
