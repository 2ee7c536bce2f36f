#include "worker/parent/received_memory.hpp"

#include "posix/sealed_memory.hpp"

#include <string>
#include <sys/stat.h>

namespace coaccel::worker {
namespace {

error_code refused(const std::string& why)
{
    return make_error_with_message(errc::invalid_argument, why);
}

const char* name_of(mode_t type) noexcept
{
    switch (type) {
    case S_IFREG: return "a file";
    case S_IFDIR: return "a directory";
    case S_IFLNK: return "a link";
    case S_IFSOCK: return "a socket";
    case S_IFIFO: return "a pipe";
    case S_IFBLK: return "a block device";
    default: return "of an unknown type";
    }
}

/// NVIDIA's driver returns an open /dev/nvidiactl, which is a character device. Others may return an anonymous inode,
/// such as a DMA buffer, which has no type.
error_code check_driver_memory(const detail::unique_fd& descriptor)
{
    struct stat found = {};
    if (::fstat(descriptor.get(), &found) != 0)
        return refused("the descriptor of the memory is not open");
    const mode_t type = found.st_mode & S_IFMT;
    if (type == S_IFCHR || type == 0)
        return {};
    return refused(std::string("the descriptor is not one of GPU memory: it is ") + name_of(type));
}

} // namespace

error_code check_received_memory(std::string_view backend, const detail::unique_fd& descriptor, std::uint64_t bytes,
                                 memory_access access)
{
    if (backend == "host")
        return detail::sealed_memory::check(descriptor, bytes, access);
    if (backend == "cuda")
        return check_driver_memory(descriptor);
    return refused("the " + std::string(backend) + " backend exports no memory");
}

} // namespace coaccel::worker
