#include "server/model/served_model.hpp"
#include "server/repository/repository_state.hpp"

#include <doctest/doctest.h>

namespace test_server_repository_rollback {
namespace {

namespace server = coaccel::server;
using kind = server::repository_action::kind;
using phase = server::version_phase;
using server::repository_state;
using actions = repository_state::actions;
using reports = std::vector<server::version_report>;

server::model_scan files_of_m(std::map<std::uint64_t, int> versions)
{
    server::model_scan scan;
    scan.models["m"];
    for (const auto& [number, content] : versions)
        scan.models["m"].versions[number] = {100, content, 1};
    return scan;
}

constexpr auto assumed = repository_state::settling::assumed;

/// Version 2 has replaced version 1.
repository_state second_version()
{
    repository_state s;
    CHECK(s.scanned(files_of_m({{1, 1}}), assumed) == actions{{kind::load, "m", 1}});
    CHECK(s.load_ended("m", 1).empty());
    CHECK(s.scanned(files_of_m({{1, 1}, {2, 1}}), assumed) == actions{{kind::load, "m", 2}});
    CHECK(s.load_ended("m", 2) == actions{{kind::unload, "m", 1}});
    CHECK(s.unload_ended("m", 1).empty());
    return s;
}

} // namespace

TEST_SUITE_BEGIN("server repository rollback");

TEST_CASE("a version that was rolled back counts as one that could not be loaded")
{
    auto s = second_version();
    CHECK(s.rolled_back("m", 2, 1, "it fails").empty());
    CHECK(s.index() ==
          reports{{"m", 1, phase::ready, "not chosen by the version policy"}, {"m", 2, phase::idle, "it fails"}});
    CHECK(s.problem_of("m") == server::version_problem{2, "it fails"});
    CHECK(s.settled());
    CHECK(s.scanned(files_of_m({{1, 1}, {2, 1}})).empty());
    // Another content is tried, and replaces the earlier version.
    CHECK(s.scanned(files_of_m({{1, 1}, {2, 2}}), assumed) == actions{{kind::load, "m", 2}});
    CHECK(s.load_ended("m", 2) == actions{{kind::unload, "m", 1}});
    CHECK_FALSE(s.problem_of("m"));
}

TEST_CASE("a version without a file can come back, and goes when another one is loaded")
{
    auto s = second_version();
    CHECK(s.scanned(files_of_m({{2, 1}})).empty());
    CHECK(s.rolled_back("m", 2, 1, "it fails").empty());
    CHECK(s.index() == reports{{"m", 1, phase::ready, "the file has been removed"}, {"m", 2, phase::idle, "it fails"}});
    CHECK(s.load("m") == actions{{kind::load, "m", 2}});
    CHECK(s.load_ended("m", 2) == actions{{kind::unload, "m", 1}});
    CHECK(s.unload_ended("m", 1).empty());
    CHECK(s.index() == reports{{"m", 2, phase::ready, ""}});
}

TEST_CASE("the earlier content of a file can come back")
{
    auto s = second_version();
    CHECK(s.scanned(files_of_m({{1, 1}, {2, 2}}), assumed) == actions{{kind::reload, "m", 2}});
    CHECK(s.load_ended("m", 2).empty());
    CHECK(s.rolled_back("m", 2, 2, "it fails").empty());
    CHECK(s.index() ==
          reports{{"m", 1, phase::idle, "not chosen by the version policy"}, {"m", 2, phase::ready, "it fails"}});
    CHECK(s.scanned(files_of_m({{1, 1}, {2, 2}})).empty());
    CHECK(s.scanned(files_of_m({{1, 1}, {2, 3}}), assumed) == actions{{kind::reload, "m", 2}});
}

TEST_CASE("a rollback while other content is being loaded leaves the load alone")
{
    auto s = second_version();
    CHECK(s.scanned(files_of_m({{1, 1}, {2, 2}}), assumed) == actions{{kind::reload, "m", 2}});
    CHECK(s.rolled_back("m", 2, 1, "it fails").empty());
    CHECK(s.index()[1].phase == phase::loading);
    CHECK(s.load_ended("m", 2) == actions{{kind::unload, "m", 1}});
    CHECK(s.rolled_back("none", 2, 1, "it fails").empty());
}

TEST_CASE("only versions that the policy wants have problems, in every phase")
{
    auto s = second_version();
    // Version 1 is idle because of the policy.
    CHECK_FALSE(s.problem_of("m"));
    CHECK_FALSE(s.problem_of("none"));
    CHECK(s.scanned(files_of_m({{1, 1}, {2, 2}}), assumed) == actions{{kind::reload, "m", 2}});
    CHECK(s.load_ended("m", 2, "damaged").empty());
    CHECK(s.index()[1].phase == phase::ready);
    CHECK(s.problem_of("m") == server::version_problem{2, "damaged"});
    CHECK(s.load("m") == actions{{kind::reload, "m", 2}});
    CHECK_FALSE(s.problem_of("m"));
}

TEST_CASE("what clients and devices cause does not count against a version")
{
    using coaccel::errc;
    for (const auto e : {errc::deadline_exceeded, errc::queue_full, errc::invalid_argument, errc::wrong_dtype,
                         errc::length_mismatch, errc::device_failed})
        CHECK_FALSE(server::counts_against_version(e));
    CHECK_FALSE(server::counts_against_version(boost::asio::error::operation_aborted));
    CHECK(server::counts_against_version(errc::context_lost));
    CHECK(server::counts_against_version(errc::backend_error));
}

TEST_SUITE_END();

} // namespace test_server_repository_rollback
