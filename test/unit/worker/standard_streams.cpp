#include "posix/child_process.hpp"
#include "posix/shared_memory.hpp"
#include "worker/process/process_monitor.hpp"
#include "worker/transport/doorbell.hpp"
#include "worker/transport/doorbell_waiter.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace test_worker_standard_streams {

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using namespace coaccel::worker;

/// Closes the standard streams of this process during its lifetime.
class closed_streams {
public:
    closed_streams()
    {
        for (int d = 0; d < 3; ++d) {
            kept_[d] = ::fcntl(d, F_DUPFD_CLOEXEC, 3);
            ::close(d);
        }
    }
    closed_streams(const closed_streams&) = delete;
    closed_streams& operator=(const closed_streams&) = delete;
    ~closed_streams()
    {
        for (int d = 0; d < 3; ++d)
            if (kept_[d] >= 0) {
                ::dup2(kept_[d], d);
                ::close(kept_[d]);
            }
    }

private:
    int kept_[3] = {-1, -1, -1};
};

struct no_events final : detail::context_events {
    void finished(detail::request&, error_code) noexcept override {}
    void lost(error_code, detail::loss_cause) noexcept override {}
    void wake() noexcept override {}
    bool has_more() noexcept override { return false; }
};

} // namespace

TEST_SUITE_BEGIN("standard streams");

TEST_CASE("in a process without standard streams no new descriptor gets one of their numbers")
{
    boost::asio::io_context io;
    // Asio creates its own descriptors with the first object.
    const boost::asio::posix::stream_descriptor first(io);
    no_events events;
    bool all_made = false;
    std::vector<int> taken;
    {
        const closed_streams closed;
        const auto area = shared_memory::create(4096, "test");
        const auto bell = doorbell::create();
        const auto monitor = process_monitor::shared();
        const auto child = child_process::start(
            {.program = "/bin/sleep", .arguments = {"1000"}, .environment = {}, .descriptors = {}});
        if (area && bell && monitor && child) {
            const auto watch = doorbell_waiter::create(io.get_executor(), bell.value().wait_fd(), events);
            all_made = watch != nullptr;
            for (int d = 0; d < 3; ++d)
                if (::fcntl(d, F_GETFD) >= 0)
                    taken.push_back(d);
        }
    }
    CHECK(all_made);
    CHECK(taken == std::vector<int>{});
}

TEST_SUITE_END();

} // namespace test_worker_standard_streams
