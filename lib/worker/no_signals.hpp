#ifndef COACCEL_WORKER_NO_SIGNALS_HPP
#define COACCEL_WORKER_NO_SIGNALS_HPP

#include <csignal>

namespace coaccel::worker {

/// Keeps signals from this thread, and from one it starts: they are for the threads of the program.
class no_signals {
public:
    no_signals() noexcept
    {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    no_signals(const no_signals&) = delete;
    no_signals& operator=(const no_signals&) = delete;
    ~no_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

} // namespace coaccel::worker

#endif
