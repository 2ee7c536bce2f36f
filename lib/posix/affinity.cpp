#include "posix/affinity.hpp"

#include <cerrno>
#include <cstddef>
#include <sys/syscall.h>
#include <unistd.h>

namespace coaccel::detail {

cpu_mask affinity_of_thread()
{
    // The system call, because cpu_set_t is limited to 1024 CPUs. The kernel refuses a mask that is smaller than the
    // number of CPUs it was built for.
    constexpr std::size_t most_words = 4096;
    for (std::size_t words = 16; words <= most_words; words *= 2) {
        cpu_mask mask(words);
        const long bytes = ::syscall(SYS_sched_getaffinity, 0, words * sizeof(unsigned long), mask.data());
        if (bytes > 0) {
            mask.resize(static_cast<std::size_t>(bytes) / sizeof(unsigned long));
            return mask;
        }
        if (errno != EINVAL)
            break;
    }
    return {};
}

} // namespace coaccel::detail
