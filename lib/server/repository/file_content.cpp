#include "server/repository/file_content.hpp"

#include "core/escape_text.hpp"
#include "posix/file_error.hpp"
#include "posix/unique_fd.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>

namespace coaccel::server {
namespace {

// A system call reads less than 2 GiB.
constexpr std::size_t most_at_once = std::size_t(1) << 30;

error_code changed(const std::string& path)
{
    return detail::op_error(errc::file_invalid, "model",
                            {"the file ", detail::escape_text(path), " has changed while it was being loaded"});
}

struct unmap_pages {
    std::size_t size = 0;

    void operator()(std::byte* at) const noexcept { (void)::munmap(at, size); }
};

/// Memory of whole pages, because contents of a plan begin at pages.
result<std::shared_ptr<std::byte>> allocate_pages(const std::string& path, std::size_t size)
{
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return detail::file_error("read", path, errno);
    return std::shared_ptr<std::byte>(static_cast<std::byte*>(at), unmap_pages{size});
}

} // namespace

file_identity identity_of(const struct stat& status) noexcept
{
    return {static_cast<std::uint64_t>(status.st_size),
            std::int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec,
            static_cast<std::uint64_t>(status.st_ino)};
}

result<file_content> read_content(const std::string& path, const file_identity& expected)
{
    // A pipe without a writer would otherwise block.
    const auto fd = detail::above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd)
        return detail::file_error("open", path, errno);
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0)
        return detail::file_error("examine", path, errno);
    if (!S_ISREG(status.st_mode))
        return detail::not_a_file("open", path);
    if (identity_of(status) != expected || expected.size == 0)
        return changed(path);
    BOOST_OUTCOME_TRY(const auto owner, allocate_pages(path, static_cast<std::size_t>(expected.size)));
    const std::span memory(owner.get(), static_cast<std::size_t>(expected.size));
    for (std::size_t at = 0; at < memory.size();) {
        const auto got = ::read(fd.get(), memory.data() + at, std::min(most_at_once, memory.size() - at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return detail::file_error("read", path, errno);
        if (got == 0)
            return changed(path);
        at += static_cast<std::size_t>(got);
    }
    if (::fstat(fd.get(), &status) != 0)
        return detail::file_error("examine", path, errno);
    if (identity_of(status) != expected)
        return changed(path);
    if (::mprotect(memory.data(), memory.size(), PROT_READ) != 0)
        return detail::file_error("read", path, errno);
    return file_content{memory, owner};
}

} // namespace coaccel::server
