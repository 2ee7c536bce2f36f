#include "posix/sealed_memory.hpp"

#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <utility>

namespace coaccel::detail {
namespace {

constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;

int seals_for(memory_access access) noexcept
{
    return size_seals | F_SEAL_SEAL | (access == memory_access::read_only ? F_SEAL_WRITE : 0);
}

error_code failed(const std::string& what, int reason)
{
    return make_error_with_message(errc::out_of_memory, what + ": " + std::generic_category().message(reason));
}

/// Private, because kernels before 6.7 refuse shared mappings of memory that is sealed against writing. The pages are
/// those of the file all the same, since none is written.
void* map_read_only(int fd, std::size_t bytes, void* where) noexcept
{
    return ::mmap(where, bytes, PROT_READ, MAP_PRIVATE | (where ? MAP_FIXED : 0), fd, 0);
}

void* map_writable(int fd, std::size_t bytes, void* where) noexcept
{
    return ::mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (where ? MAP_FIXED : 0), fd, 0);
}

} // namespace

result<sealed_memory> sealed_memory::create(std::size_t bytes, const char* label)
{
    const std::string what = std::string(label) + ": no memory of " + std::to_string(bytes) + " bytes";
    if (bytes == 0 || bytes > std::size_t(std::numeric_limits<std::ptrdiff_t>::max()))
        return make_error_with_message(errc::out_of_memory, what);
    auto fd = above_standard(::memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 || ::fcntl(fd.get(), F_ADD_SEALS, size_seals) != 0)
        return failed(what, errno);
    void* const memory = map_writable(fd.get(), bytes, nullptr);
    if (memory == MAP_FAILED)
        return failed(what, errno);
    return sealed_memory(std::move(fd), memory, bytes);
}

error_code sealed_memory::check(const unique_fd& fd, std::size_t bytes, memory_access access)
{
    struct stat found = {};
    if (::fstat(fd.get(), &found) != 0)
        return make_error_with_message(errc::invalid_argument, "the descriptor of the memory is not open");
    // Before the size: other kinds of descriptors have none.
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0)
        return make_error_with_message(errc::invalid_argument, "the descriptor is not one of memory");
    // Other seals do not matter: the system may have added one that forbids execution.
    if ((seals & (seals_for(memory_access::read_only) | F_SEAL_FUTURE_WRITE)) != seals_for(access))
        return make_error_with_message(errc::invalid_argument, access == memory_access::read_only
                                                                   ? "the memory is not sealed against writing"
                                                                   : "the memory is not sealed for writers");
    if (found.st_size < 0 || static_cast<std::size_t>(found.st_size) != bytes)
        return make_error_with_message(errc::invalid_argument, "the memory has " + std::to_string(found.st_size) +
                                                                   " bytes instead of " + std::to_string(bytes));
    return {};
}

result<sealed_memory> sealed_memory::open(const unique_fd& fd, std::size_t bytes, memory_access access)
{
    if (auto ec = check(fd, bytes, access))
        return ec;
    void* const memory = access == memory_access::read_only ? map_read_only(fd.get(), bytes, nullptr)
                                                            : map_writable(fd.get(), bytes, nullptr);
    if (memory == MAP_FAILED)
        return failed("memory of " + std::to_string(bytes) + " bytes cannot be mapped", errno);
    return sealed_memory(unique_fd(), memory, bytes);
}

result<unique_fd> sealed_memory::seal(memory_access access)
{
    if (access == memory_access::read_only) {
        if (auto ec = forbid_writing())
            return ec;
    } else if (::fcntl(fd_.get(), F_ADD_SEALS, seals_for(access)) != 0) {
        return failed("memory of " + std::to_string(bytes_) + " bytes cannot be sealed", errno);
    }
    return std::move(fd_);
}

error_code sealed_memory::forbid_writing()
{
    // The kernel seals only memory without writable mappings. The address range stays reserved meanwhile.
    if (::mmap(memory_, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        return failed("memory of " + std::to_string(bytes_) + " bytes cannot be sealed", errno);
    // Pages that the kernel is moving or writing out are busy for a moment. It waits for them, but not for long.
    bool sealed = false;
    int reason = EBUSY;
    for (int tries = 0; tries < 3 && !sealed && reason == EBUSY; ++tries) {
        sealed = ::fcntl(fd_.get(), F_ADD_SEALS, seals_for(memory_access::read_only)) == 0;
        reason = errno;
    }
    void* const again = sealed ? map_read_only(fd_.get(), bytes_, memory_) : map_writable(fd_.get(), bytes_, memory_);
    if (again == MAP_FAILED)
        return make_error_with_message(errc::context_lost,
                                       "memory of " + std::to_string(bytes_) +
                                           " bytes cannot be mapped again: " + std::generic_category().message(errno));
    if (!sealed)
        return failed("memory of " + std::to_string(bytes_) + " bytes cannot be sealed", reason);
    return {};
}

sealed_memory::sealed_memory(sealed_memory&& other) noexcept
    : fd_(std::move(other.fd_)), memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0))
{}

sealed_memory& sealed_memory::operator=(sealed_memory&& other) noexcept
{
    if (this != &other) {
        unmap();
        fd_ = std::move(other.fd_);
        memory_ = std::exchange(other.memory_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
}

void sealed_memory::unmap() noexcept
{
    if (memory_)
        ::munmap(memory_, bytes_);
    memory_ = nullptr;
}

} // namespace coaccel::detail
