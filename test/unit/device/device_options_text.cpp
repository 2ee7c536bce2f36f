#include <coaccel/device/device_options_text.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace test_device_device_options_text {

namespace {

using namespace coaccel;
using namespace std::chrono_literals;

struct bad {
    const char* text;
    const char* told;
};

std::string refusal(std::string_view text)
{
    const auto parsed = parse_device_options(text);
    REQUIRE(parsed.has_error());
    CHECK(parsed.error() == errc::invalid_option);
    return parsed.error().message();
}

TEST_SUITE_BEGIN("device_options as text");

TEST_CASE("words set the kind, the ordinal and the isolation, and fields set the other options")
{
    const auto o = parse_device_options("cuda:1,worker,standby=1").value();
    CHECK(o.kind == device_kind::cuda);
    CHECK(o.ordinal == 1);
    CHECK(o.isolation == isolation::worker);
    CHECK(o.standby == 1);

    const auto p = parse_device_options(" context.hang_timeout=5s , host ,host.threads=2,host.memory_limit=2G,"
                                        "context.lanes=pooled:3,context.completion=polled,restart.jitter=0.25")
                       .value();
    CHECK(p.kind == device_kind::host);
    CHECK(p.isolation == isolation::in_process);
    CHECK(p.context.hang_timeout == 5s);
    CHECK(p.host.threads == 2);
    CHECK(p.host.memory_limit == std::uint64_t(2) << 30);
    CHECK(p.context.lanes.how == lane_policy::kind::pooled);
    CHECK(p.context.lanes.count == 3);
    CHECK(p.context.completion == completion::polled);
    CHECK(p.restart.jitter == 0.25);
}

TEST_CASE("options that are not named keep their values")
{
    device_options base;
    base.kind = device_kind::host;
    base.queue.max_queued = 7;
    CHECK(parse_device_options("", base).value().kind == device_kind::host);
    const auto o = parse_device_options("standby=2,worker", base).value();
    CHECK(o.kind == device_kind::host);
    CHECK(o.queue.max_queued == 7);
    CHECK(o.standby == 2);
}

TEST_CASE("an error names the word, its position and the expected input")
{
    static constexpr bad all[] = {
        {"cuda:1,wroker", "\"wroker\" at position 8: unknown word; did you mean worker?"},
        {"gpu", "\"gpu\" at position 1: unknown word; known are best, host, cuda, cuda:n, worker, in_process"},
        {"cuda,stand_by=1", "\"stand_by=1\" at position 6: unknown field stand_by; did you mean standby?"},
        {"max_queued=5", "unknown field max_queued; did you mean queue.max_queued?"},
        {"colour=5", "\"colour=5\" at position 1: unknown field colour"},
        {"=5", "\"=5\" at position 1: unknown field "},
        {"plugin=a.so", "\"plugin=a.so\" at position 1: plugin cannot be set by text"},
        {"worker.program=a", "worker.program cannot be set by text"},
        {"host.faults.delay=5s", "host.faults.delay cannot be set by text"},
        {"kind=host", "kind is set by a word: best, host, cuda or, with an ordinal, cuda:1"},
        {"ordinal=1", "ordinal is set by a word: best, host, cuda or, with an ordinal, cuda:1"},
        {"isolation=worker", "isolation is set by a word: in_process or worker"},
        {"standby=one", "\"standby=one\" at position 1: the value must be a whole number"},
        {"standby", "needs a value"},
        {"cuda:x", "\"cuda:x\" at position 1: the ordinal after the colon must be a whole number, as in cuda:1"},
        {"host:1", "\"host:1\" at position 1: host takes no ordinal"},
        {"host,cuda", "\"cuda\" at position 6: another word for the kind was given before"},
        {"worker,in_process", "\"in_process\" at position 8: another word for the isolation was given before"},
        {"standby=1, standby=1", "\"standby=1\" at position 12: given twice"},
        {"host,,worker", "at position 6: a word is missing"},
        {"host,", "at position 6: a word is missing"},
        {"context.hang_timeout=5", "the value must be a time"},
        {"context.hang_timeout=99999999999999s", "the value must be a time"},
        {"host.memory_limit=2T", "the value must be a number of bytes"},
        {"host.memory_limit=99999999999999999999", "the value must be a number of bytes"},
        {"context.completion=quick", "the value must be adaptive, host_fn, polled or sync"},
        {"context.lanes=pooled", "the value must be chained:n, per_library, single or pooled:n"},
        {"context.lanes=chained:x", "the value must be chained:n, per_library, single or pooled:n"},
        {"context.lanes=chained:9", ": context.lanes.count is 9; it must be from 1 to 8"},
        {"standby=9", ": standby is 9; it must be from 0 to 4"},
        {"standby=1", ": standby is 1; it must be 0 unless isolation is worker"},
        {"cuda:-1", ": ordinal is -1; it must not be negative"},
        {"worker.heartbeat=1500us", ": worker.heartbeat is 1500 us; it must be 0, for none, or at least 50 ms"},
        {"restart.jitter=1.5", ": restart_policy::jitter is 1.5; it must be from 0 to 1"},
        {"worker.staging_bytes=5", ": worker.staging_bytes is 5; it must be from 1 MiB to 64 GiB"},
    };
    for (const bad& b : all) {
        const auto told = refusal(b.text);
        INFO("text: ", std::string(b.text), ", told: ", told);
        CHECK(told.find(b.told) != std::string::npos);
        CHECK(told.find(b.text) != std::string::npos);
    }
}

TEST_CASE("options are written as text that parses to the same options")
{
    CHECK(to_string(device_options{}) == "best");
    CHECK(to_string(parse_device_options("host,context.lanes=chained:4").value()) == "host");
    static constexpr const char* texts[] = {
        "host",
        "cuda:3,worker,standby=1",
        "best,queue.max_in_flight=5,queue.max_bytes_in_flight=3M,queue.max_queued=12",
        "host,context.lanes=single,context.completion=sync,context.spin_budget=0ns,context.monitor_interval=1500us",
        "host,context.lanes=pooled:2,context.hang_timeout=2min",
        "host,context.lanes=per_library",
        "host,context.lanes=chained:2",
        "host,restart.max_restarts=0,restart.window=1s,restart.initial_backoff=7ns,restart.max_backoff=1min,"
        "restart.multiplier=1.5,restart.jitter=0",
        "host,host.mode=inline,host.threads=2,host.memory_limit=1K,host.pinned_limit=1025",
        "cuda,cuda.memory_limit=4G,cuda.release_threshold=0,cuda.pinned_limit=8M,cuda.helper_threads=2,cuda.blas=fast,"
        "cuda.blas_workspace=16M",
        "cuda,worker,worker.staging_bytes=128M,worker.start_timeout=5s,worker.heartbeat=1s,worker.spin=0ns,"
        "worker.max_data_bytes=1G,worker.core_dumps=on",
    };
    for (const char* text : texts) {
        const auto parsed = parse_device_options(text);
        INFO("text: ", std::string(text));
        REQUIRE_MESSAGE(parsed, parsed.error().message());
        CHECK(to_string(parsed.value()) == text);
    }
}

TEST_CASE("the environment variable COACCEL_DEVICE sets the options")
{
    device_options base;
    base.kind = device_kind::host;
    ::unsetenv("COACCEL_DEVICE");
    CHECK(device_options_from_environment(base).value().kind == device_kind::host);
    ::setenv("COACCEL_DEVICE", "cuda:2", 1);
    CHECK(device_options_from_environment(base).value().ordinal == 2);
    ::setenv("COACCEL_DEVICE", "cuda:2,wroker", 1);
    const auto refused = device_options_from_environment(base);
    REQUIRE(refused.has_error());
    CHECK(refused.error().message().find("COACCEL_DEVICE") == 0);
    CHECK(refused.error().message().find("wroker") != std::string::npos);
    ::unsetenv("COACCEL_DEVICE");
}

TEST_SUITE_END();

} // namespace

} // namespace test_device_device_options_text
