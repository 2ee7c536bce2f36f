#ifndef COACCEL_TEST_SUPPORT_NO_THREADS_HPP
#define COACCEL_TEST_SUPPORT_NO_THREADS_HPP

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <pthread.h>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace test {

/// While it exists no thread can be started, because the stack of a new thread does not fit into the address space. The
/// stack size is larger than any used before, because glibc caches and reuses old stacks. Not with sanitizers, which
/// need additional address space.
class no_threads {
public:
    no_threads()
    {
        constexpr std::size_t mebibyte = std::size_t(1) << 20;
        REQUIRE(::pthread_getattr_default_np(&before_) == 0);
        pthread_attr_t large;
        ::pthread_attr_init(&large);
        ::pthread_attr_setstacksize(&large, 1024 * mebibyte);
        REQUIRE(::pthread_setattr_default_np(&large) == 0);
        ::pthread_attr_destroy(&large);
        REQUIRE(::getrlimit(RLIMIT_AS, &limit_) == 0);
        std::size_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        rlimit tight = limit_;
        tight.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + 512 * mebibyte;
        REQUIRE(::setrlimit(RLIMIT_AS, &tight) == 0);
        REQUIRE_THROWS_AS(std::thread([] {}).join(), std::system_error);
    }

    no_threads(const no_threads&) = delete;
    no_threads& operator=(const no_threads&) = delete;

    ~no_threads()
    {
        ::setrlimit(RLIMIT_AS, &limit_);
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_;
    rlimit limit_{};
};

} // namespace test

#endif
