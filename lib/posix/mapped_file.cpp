#include "posix/mapped_file.hpp"

#include "posix/file_error.hpp"
#include "posix/unique_fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace coaccel::detail {

result<std::shared_ptr<const mapped_file>> mapped_file::open(const std::string& path)
{
    // A pipe without a writer would otherwise block.
    const auto fd = above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd)
        return file_error("open", path, errno);
    struct stat found = {};
    if (::fstat(fd.get(), &found) != 0)
        return file_error("examine", path, errno);
    if (!S_ISREG(found.st_mode))
        return not_a_file("open", path);
    const auto size = static_cast<std::size_t>(found.st_size);
    // A mapping cannot be empty.
    if (size == 0)
        return std::make_shared<const mapped_file>(std::span<const std::byte>());
    // The object first, so that nothing can fail once the file is mapped.
    auto made = std::make_shared<mapped_file>(std::span<const std::byte>());
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (at == MAP_FAILED)
        return file_error("map", path, errno);
    made->bytes_ = {static_cast<const std::byte*>(at), size};
    return std::shared_ptr<const mapped_file>(std::move(made));
}

mapped_file::~mapped_file()
{
    if (!bytes_.empty())
        (void)::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

} // namespace coaccel::detail
