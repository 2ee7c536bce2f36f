#include "worker/process/end_report.hpp"

#include "worker/protocol/wire.hpp"

#include <doctest/doctest.h>

#include <csignal>

namespace test_worker_end_report {

using namespace coaccel;
using namespace coaccel::detail;
using namespace coaccel::worker;
using end = child_process::end;

TEST_SUITE_BEGIN("end_report");

TEST_CASE("the exit status from the system precedes the status that the worker reported")
{
    constexpr end unknown{false, -1};
    struct row {
        const char* name;
        end how;
        std::optional<int> last_word;
        errc what;
        const char* text;
        loss_cause cause;
    };
    for (const row& r : {
             row{"exit", {false, 3}, std::nullopt, errc::worker_exited, "ended with status 3", loss_cause::fault},
             row{"exit, said otherwise", {false, 3}, 4, errc::worker_exited, "ended with status 3", loss_cause::fault},
             row{"other build",
                 {false, exit_mismatch},
                 std::nullopt,
                 errc::worker_mismatch,
                 "ended with status 70",
                 loss_cause::fault},
             row{"signal",
                 {true, SIGKILL},
                 std::nullopt,
                 errc::worker_killed,
                 "was ended by signal 9 (Killed)",
                 loss_cause::outside},
             row{"signal while it ended",
                 {true, SIGKILL},
                 0,
                 errc::worker_killed,
                 "was ended by signal 9 (Killed)",
                 loss_cause::outside},
             row{"reaped by others, exit", unknown, 3, errc::worker_exited, "ended with status 3", loss_cause::fault},
             row{"reaped by others, other build", unknown, exit_mismatch, errc::worker_mismatch, "ended with status 70",
                 loss_cause::fault},
             row{"reaped by others, signal", unknown, std::nullopt, errc::worker_killed, "was ended by a signal; which",
                 loss_cause::outside},
             row{"own error",
                 {true, SIGSEGV},
                 std::nullopt,
                 errc::worker_killed,
                 "was ended by signal 11",
                 loss_cause::fault},
             row{"own check",
                 {true, SIGABRT},
                 std::nullopt,
                 errc::worker_killed,
                 "was ended by signal 6",
                 loss_cause::fault},
             row{"from another process",
                 {true, SIGTERM},
                 std::nullopt,
                 errc::worker_killed,
                 "was ended by signal 15",
                 loss_cause::outside},
         }) {
        CAPTURE(r.name);
        const auto report = report_end(r.how, r.last_word);
        CHECK(report.what == r.what);
        CHECK(report.cause == r.cause);
        CHECK_MESSAGE(report.text.starts_with(r.text), report.text);
    }
}

TEST_SUITE_END();

} // namespace test_worker_end_report
