#include <coaccel/core/error.hpp>

#include <boost/asio/error.hpp>
#include <doctest/doctest.h>

#include <set>
#include <string>

namespace test_core_error {

namespace {

using namespace coaccel;

struct row {
    errc code;
    fault condition;
};

constexpr row rows[] = {
    {errc::invalid_argument, fault::caller},
    {errc::size_overflow, fault::caller},
    {errc::leading_dimension, fault::caller},
    {errc::out_of_bounds, fault::caller},
    {errc::wrong_device, fault::caller},
    {errc::stale_ref, fault::context_lost},
    {errc::released_ref, fault::caller},
    {errc::wrong_dtype, fault::caller},
    {errc::overlap, fault::caller},
    {errc::length_mismatch, fault::caller},
    {errc::unsupported_op, fault::caller},
    {errc::invalid_option, fault::caller},
    {errc::already_waiting, fault::caller},
    {errc::out_of_memory, fault::busy},
    {errc::queue_full, fault::busy},
    {errc::deadline_exceeded, fault::busy},
    {errc::closed, fault::stopped},
    {errc::no_reply, fault::stopped},
    {errc::actor_failed, fault::stopped},
    {errc::device_stopped, fault::stopped},
    {errc::device_failed, fault::device_lost},
    {errc::backend_unavailable, fault::device_lost},
    {errc::start_failed, fault::busy},
    {errc::context_lost, fault::context_lost},
    {errc::device_lost, fault::device_lost},
    {errc::no_value, fault::caller},
    {errc::backend_error, fault::library},
    {errc::user_exception, fault::caller},
    {errc::library_missing, fault::library},
    {errc::library_too_old, fault::library},
    {errc::no_device, fault::device_lost},
    {errc::compile_failed, fault::caller},
    {errc::argument_mismatch, fault::caller},
    {errc::invalid_launch, fault::caller},
    {errc::not_isolatable, fault::caller},
    {errc::worker_missing, fault::device_lost},
    {errc::worker_mismatch, fault::device_lost},
    {errc::worker_exited, fault::context_lost},
    {errc::worker_killed, fault::context_lost},
    {errc::worker_hung, fault::context_lost},
    {errc::worker_late, fault::context_lost},
    {errc::worker_corrupted, fault::context_lost},
    {errc::plugin_missing, fault::device_lost},
    {errc::function_missing, fault::caller},
    {errc::actor_stopped, fault::stopped},
    {errc::file_failed, fault::caller},
    {errc::file_invalid, fault::caller},
    {errc::file_version, fault::caller},
    {errc::not_savable, fault::caller},
    {errc::plan_quarantined, fault::stopped},
    {errc::buffer_suspect, fault::stopped},
    {errc::function_version, fault::caller},
};

constexpr fault faults[] = {fault::caller,       fault::busy,        fault::library,
                            fault::context_lost, fault::device_lost, fault::stopped};

constexpr int last = static_cast<int>(errc::function_version);
static_assert(std::size(rows) == last, "the table has one row for each errc, in order");

} // namespace

TEST_SUITE_BEGIN("error");

TEST_CASE("each errc maps to exactly one fault")
{
    int value = 0;
    for (const row& r : rows) {
        const error_code ec = r.code;
        CAPTURE(ec.message());
        CHECK(ec.value() == ++value);
        CHECK(ec.category() == coaccel_category());
        CHECK(ec.failed());
        CHECK(ec == r.code);
        for (const fault f : faults)
            CHECK((ec == f) == (f == r.condition));
        CHECK(is_caller_error(ec) == (r.condition == fault::caller));
        CHECK(is_busy(ec) == (r.condition == fault::busy));
        CHECK(is_context_lost(ec) == (r.condition == fault::context_lost));
        CHECK(is_device_lost(ec) == (r.condition == fault::device_lost));
    }
}

TEST_CASE("messages are not empty, and each is unique")
{
    std::set<std::string> seen;
    for (const row& r : rows) {
        const std::string message = make_error_code(r.code).message();
        CHECK_FALSE(message.empty());
        CHECK(seen.insert(message).second);
    }
    CHECK(seen.insert(error_code(last + 1, coaccel_category()).message()).second);

    seen.clear();
    for (const fault f : faults) {
        const std::string message = make_error_condition(f).message();
        CHECK_FALSE(message.empty());
        CHECK(seen.insert(message).second);
    }
    CHECK(seen.insert(fault_category().message(99)).second);
}

TEST_CASE("each category has a unique name and one instance")
{
    CHECK(std::string(coaccel_category().name()) == "coaccel");
    CHECK(std::string(fault_category().name()) == "coaccel.fault");
    CHECK(&coaccel_category() == &coaccel_category());
    CHECK(coaccel_category() != fault_category());
}

TEST_CASE("success and values outside the enumeration map to no fault")
{
    for (const error_code& ec : {error_code(), error_code(0, coaccel_category()), error_code(-1, coaccel_category()),
                                 error_code(last + 1, coaccel_category())}) {
        CAPTURE(ec.value());
        for (const fault f : faults)
            CHECK_FALSE(ec == f);
    }
}

TEST_CASE("errors of other categories match no errc and no fault")
{
    for (const error_code& ec : {error_code(asio::error::operation_aborted), error_code(asio::error::eof),
                                 error_code(1, boost::system::generic_category())}) {
        CHECK_FALSE(is_caller_error(ec));
        CHECK_FALSE(is_busy(ec));
        CHECK_FALSE(is_context_lost(ec));
        CHECK_FALSE(is_device_lost(ec));
        CHECK_FALSE(ec == errc::invalid_argument);
    }
}

TEST_CASE("an error with a message has that message and compares equal to its errc")
{
    const error_code ec = make_error_with_message(errc::library_missing, "libthing.so: no such file");
    CHECK(ec.message() == "libthing.so: no such file");
    CHECK(ec.category().name() == std::string("coaccel"));
    CHECK(ec == errc::library_missing);
    CHECK(errc::library_missing == ec);
    CHECK(ec != errc::no_device);
    CHECK(ec != make_error_code(errc::library_missing));
    CHECK(errc_of(ec) == errc::library_missing);
    CHECK(ec == fault::library);
    CHECK(make_error_with_message(errc::library_missing, "libthing.so: no such file") == ec);
    CHECK(make_error_with_message(errc::library_missing, "another") != ec);
    CHECK(make_error_with_message(errc::no_device, "libthing.so: no such file") != ec);
}

TEST_CASE("an error code of another category has no errc")
{
    CHECK(errc_of(boost::asio::error::eof) == errc{});
    CHECK(errc_of(error_code()) == errc{});
    CHECK(errc_of(errc::overlap) == errc::overlap);
}

TEST_CASE("an old error with a message keeps its errc and loses its message")
{
    const error_code old = make_error_with_message(errc::compile_failed, "the oldest");
    for (int i = 0; i < 300; ++i)
        (void)make_error_with_message(errc::compile_failed, "log " + std::to_string(i));
    CHECK(old == errc::compile_failed);
    CHECK(old.message() == make_error_code(errc::compile_failed).message());
    CHECK(is_caller_error(old));
}

TEST_CASE("hundreds of refused requests do not evict a compiler log or the reason of a worker's end")
{
    const error_code log = make_error_with_message(errc::compile_failed, "the log");
    const error_code killed = make_error_with_message(errc::worker_killed, "worker 1 was ended by signal 9");
    for (const errc what : {errc::invalid_argument, errc::stale_ref, errc::out_of_memory})
        for (int i = 0; i < 300; ++i)
            (void)make_error_with_message(what, "refused " + std::to_string(i));
    CHECK(log.message() == "the log");
    CHECK(killed.message() == "worker 1 was ended by signal 9");
}

TEST_CASE("a message that is stored again lives as long as a new one")
{
    (void)make_error_with_message(errc::compile_failed, "again");
    for (int round = 0; round < 5; ++round) {
        const error_code ec = make_error_with_message(errc::compile_failed, "again");
        for (int i = 0; i < 127; ++i)
            (void)make_error_with_message(errc::compile_failed, "other " + std::to_string(127 * round + i));
        CHECK(ec.message() == "again");
    }
}

TEST_SUITE_END();

} // namespace test_core_error
