#include "posix/mapped_file.hpp"

#include "posix/file_error.hpp"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace coaccel::detail {

result<std::shared_ptr<const mapped_file>> mapped_file::open(const std::string& path)
{
    // A pipe without a writer would otherwise block.
    auto fd = above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd)
        return file_error("open", path, errno);
    struct stat found = {};
    if (::fstat(fd.get(), &found) != 0)
        return file_error("examine", path, errno);
    if (!S_ISREG(found.st_mode))
        return not_a_file("open", path);
    const auto size = static_cast<std::size_t>(found.st_size);
    // The object first, so that nothing can fail once the file is mapped.
    auto made = std::make_shared<mapped_file>(path, std::move(fd));
    // A mapping cannot be empty.
    if (size == 0)
        return std::shared_ptr<const mapped_file>(std::move(made));
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, made->fd_.get(), 0);
    if (at == MAP_FAILED)
        return file_error("map", path, errno);
    made->bytes_ = {static_cast<const std::byte*>(at), size};
    return std::shared_ptr<const mapped_file>(std::move(made));
}

error_code mapped_file::check(std::span<const std::byte> part) const
{
    struct stat found = {};
    if (::fstat(fd_.get(), &found) != 0)
        return file_error("examine", path_, errno);
    const auto has = static_cast<std::uint64_t>(found.st_size);
    const auto needs = static_cast<std::uint64_t>(part.data() + part.size() - bytes_.data());
    return has >= needs ? error_code() : shortened_file(path_, has, needs);
}

mapped_file::~mapped_file()
{
    if (!bytes_.empty())
        (void)::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

} // namespace coaccel::detail
