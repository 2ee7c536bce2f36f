// The worker program, after it has made every descriptor that it was given one that blocks.
#include <fcntl.h>
#include <unistd.h>

int main(int, char** argv)
{
    for (int fd = 3; fd < 64; ++fd)
        if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0)
            (void)::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    ::execv(COACCEL_TEST_WORKER, argv);
    return 1;
}
