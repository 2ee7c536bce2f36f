#include "posix/shared_memory.hpp"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <system_error>
#include <utility>

namespace coaccel::detail {
namespace {

// If the peer could shrink the memory, access to the mapping could raise SIGBUS.
constexpr int needed_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool possible(std::size_t bytes) noexcept
{
    return bytes != 0 && bytes <= std::size_t(std::numeric_limits<std::ptrdiff_t>::max());
}

error_code refused(const std::string& what, std::size_t bytes, int reason)
{
    return make_error_with_message(errc::out_of_memory, what + ": no shared memory of " + std::to_string(bytes) +
                                                            " bytes: " + std::generic_category().message(reason));
}

void* map(int fd, std::size_t bytes) noexcept
{
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

} // namespace

result<shared_memory> shared_memory::create(std::size_t bytes, const char* label)
{
    if (!possible(bytes))
        return make_error_with_message(errc::invalid_option,
                                       std::string(label) + ": no area can have " + std::to_string(bytes) + " bytes");
    struct sysinfo machine = {};
    if (::sysinfo(&machine) == 0 && bytes / machine.mem_unit > machine.totalram)
        return make_error_with_message(errc::out_of_memory, std::string(label) +
                                                                ": staging larger than the memory of this machine, " +
                                                                std::to_string(bytes) + " bytes");
    auto fd = above_standard(::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
        ::fcntl(fd.get(), F_ADD_SEALS, needed_seals) != 0)
        return refused(label, bytes, errno);
    void* const memory = map(fd.get(), bytes);
    if (memory == MAP_FAILED)
        return refused(label, bytes, errno);
    return shared_memory(std::move(fd), {static_cast<std::byte*>(memory), bytes});
}

result<shared_memory> shared_memory::adopt(unique_fd fd, std::size_t bytes)
{
    if (!possible(bytes))
        return make_error_with_message(errc::worker_corrupted,
                                       "no shared memory has " + std::to_string(bytes) + " bytes");
    struct stat found = {};
    if (::fstat(fd.get(), &found) != 0 || found.st_size != static_cast<off_t>(bytes))
        return make_error_with_message(errc::worker_corrupted,
                                       "the shared memory does not have " + std::to_string(bytes) + " bytes");
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & needed_seals) != needed_seals)
        return make_error_with_message(errc::worker_corrupted, "the shared memory is not sealed");
    void* const memory = map(fd.get(), bytes);
    if (memory == MAP_FAILED && errno == EPERM)
        return make_error_with_message(errc::worker_corrupted, "the shared memory cannot be written");
    if (memory == MAP_FAILED)
        return refused("shared memory of the peer", bytes, errno);
    return shared_memory(std::move(fd), {static_cast<std::byte*>(memory), bytes});
}

shared_memory::shared_memory(shared_memory&& other) noexcept
    : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {}))
{}

shared_memory& shared_memory::operator=(shared_memory&& other) noexcept
{
    if (this != &other) {
        unmap();
        fd_ = std::move(other.fd_);
        bytes_ = std::exchange(other.bytes_, {});
    }
    return *this;
}

void shared_memory::unmap() noexcept
{
    if (!bytes_.empty())
        ::munmap(bytes_.data(), bytes_.size());
    bytes_ = {};
}

} // namespace coaccel::detail
