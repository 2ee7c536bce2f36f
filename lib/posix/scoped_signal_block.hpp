#ifndef COACCEL_POSIX_SCOPED_SIGNAL_BLOCK_HPP
#define COACCEL_POSIX_SCOPED_SIGNAL_BLOCK_HPP

#include <csignal>
#include <initializer_list>

namespace coaccel::detail {

/// Blocks signals during its lifetime, so that a thread of the library that is started meanwhile inherits the mask: the
/// signals of the process are meant for the threads of the program.
///
/// Signals that a thread causes itself, which crash handlers handle, and signals used by profilers to sample a thread
/// or by the kernel to limit its time are not blocked. SIGPIPE and SIGXFSZ are blocked although a thread causes them
/// itself: a failed write of the library must not end the process.
class scoped_signal_block {
public:
    scoped_signal_block() noexcept
    {
        sigset_t others;
        sigfillset(&others);
        for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF, SIGXCPU})
            sigdelset(&others, own);
        ::pthread_sigmask(SIG_BLOCK, &others, &before_);
    }
    scoped_signal_block(const scoped_signal_block&) = delete;
    scoped_signal_block& operator=(const scoped_signal_block&) = delete;
    ~scoped_signal_block() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

} // namespace coaccel::detail

#endif
