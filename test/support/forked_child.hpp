#ifndef COACCEL_TEST_SUPPORT_FORKED_CHILD_HPP
#define COACCEL_TEST_SUPPORT_FORKED_CHILD_HPP

#include <coaccel/core/error.hpp>

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

// For tests that fork. The child does not use doctest, whose state belongs to the parent: it reports errors with its
// exit status.
namespace test {

namespace asio = boost::asio;

/// Exit statuses of a child.
enum : int { well = 0, first_mistake = 10, never_answered = 90 };

/// Whether Asio is told of the fork, as it requires.
enum class notified : bool { no, yes };

/// Runs the function in a forked child, which exits with the returned value; no object of this process is destroyed
/// there. A child that hangs is killed by a signal. Returns the status, or the negative number of the signal.
template <class Function>
int in_forked_child(asio::io_context& io, notified asio_knows, Function function)
{
    using fork_event = asio::execution_context::fork_event;
    const auto notify = [&](fork_event event) {
        if (asio_knows == notified::yes)
            io.notify_fork(event);
    };
    notify(asio::execution_context::fork_prepare);
    const auto pid = ::fork();
    if (pid == 0) {
        ::alarm(30);
        notify(asio::execution_context::fork_child);
        ::_exit(function());
    }
    notify(asio::execution_context::fork_parent);
    REQUIRE(pid > 0);
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

template <class Condition>
bool runs_until(asio::io_context& io, Condition condition)
{
    io.restart();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    while (!condition() && std::chrono::steady_clock::now() < end)
        io.run_one_for(std::chrono::milliseconds(1));
    return condition();
}

/// The error of an operation; no value if it never completed.
template <class Operation>
std::optional<coaccel::error_code> error_in_child(asio::io_context& io, Operation operation)
{
    std::optional<coaccel::error_code> answer;
    std::move(operation)([&](auto r) { answer = r ? coaccel::error_code() : r.error(); });
    runs_until(io, [&] { return answer.has_value(); });
    return answer;
}

} // namespace test

#endif
