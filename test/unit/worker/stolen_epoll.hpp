#ifndef COACCEL_TEST_UNIT_WORKER_STOLEN_EPOLL_HPP
#define COACCEL_TEST_UNIT_WORKER_STOLEN_EPOLL_HPP

#include <doctest/doctest.h>

#include <fcntl.h>
#include <filesystem>
#include <set>
#include <string>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>

namespace test {

/// Finds the epoll descriptor that is created after this object, and closes it like a program that closes all unknown
/// descriptors.
class stolen_epoll {
public:
    /// Another file gets the number, so that no descriptor is closed twice.
    void steal() const
    {
        std::set<int> made;
        for (const int d : all())
            if (!before_.contains(d))
                made.insert(d);
        REQUIRE(made.size() == 1);
        const int other = ::memfd_create("not the overseer's", MFD_CLOEXEC);
        REQUIRE(::dup3(other, *made.begin(), O_CLOEXEC) == *made.begin());
        ::close(other);
    }

private:
    static std::set<int> all()
    {
        std::set<int> found;
        std::error_code gone;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
            if (std::filesystem::read_symlink(entry.path(), gone) == "anon_inode:[eventpoll]")
                found.insert(std::stoi(entry.path().filename().string()));
        return found;
    }

    const std::set<int> before_ = all();
};

} // namespace test

#endif
