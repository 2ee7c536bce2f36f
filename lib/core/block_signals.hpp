#ifndef COACCEL_CORE_BLOCK_SIGNALS_HPP
#define COACCEL_CORE_BLOCK_SIGNALS_HPP

#include <csignal>
#include <initializer_list>

namespace coaccel::detail {

/// Blocks signals while it lives, for a thread of the library that is started meanwhile and inherits the mask: the
/// signals of the process are for the threads of the program.
///
/// Left open are those that a thread causes itself, for which crash handlers are installed, and those by which
/// profilers sample a thread or by which the kernel limits its time. SIGPIPE and SIGXFSZ stay blocked although a thread
/// causes them itself: a failing write of the library is no reason to end the process.
class block_signals {
public:
    block_signals() noexcept
    {
        sigset_t others;
        sigfillset(&others);
        for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF, SIGXCPU})
            sigdelset(&others, own);
        ::pthread_sigmask(SIG_BLOCK, &others, &before_);
    }
    block_signals(const block_signals&) = delete;
    block_signals& operator=(const block_signals&) = delete;
    ~block_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

} // namespace coaccel::detail

#endif
