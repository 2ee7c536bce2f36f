#ifndef COACCEL_POSIX_MAPPED_FILE_HPP
#define COACCEL_POSIX_MAPPED_FILE_HPP

#include <coaccel/core/result.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace coaccel::detail {

/// The content of a file as memory that cannot be written. It stays valid when the file is removed or replaced, but
/// not when the file is shortened: reading a part that no longer exists is a SIGBUS.
class COACCEL_DECL mapped_file {
public:
    /// Errors: errc::file_failed if the file cannot be opened or mapped, or is not a regular file. The message names
    /// the path and the reason.
    static result<std::shared_ptr<const mapped_file>> open(const std::string& path);

    explicit mapped_file(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    ~mapped_file();

    std::span<const std::byte> bytes() const noexcept { return bytes_; }

private:
    std::span<const std::byte> bytes_;
};

} // namespace coaccel::detail

#endif
