// Makes all inherited descriptors blocking, then executes the worker program.
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
