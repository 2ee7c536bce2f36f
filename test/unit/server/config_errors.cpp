#include "config_fixture.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>
#include <random>

namespace test_server_config_errors {
namespace {

namespace server = coaccel::server;
using test::config_of;
using test::error_of;

} // namespace

TEST_SUITE_BEGIN("server config errors");

TEST_CASE("an unknown key names the nearest one")
{
    CHECK(error_of("[server]\nmax_bodybytes = 1M") ==
          "conf/server.conf:2: max_bodybytes = 1M: unknown key; did you mean max_body_bytes?");
    CHECK(error_of("\n# x\n[tenant a]\napi_key = k\nwieght = 3\n") ==
          "conf/server.conf:5: wieght = 3: unknown key; did you mean weight?");
    CHECK(error_of("[server]\nsomething_else_entirely = 1") ==
          "conf/server.conf:2: something_else_entirely = 1: unknown key");
    CHECK(error_of("[server]\nmax_batch = 1") ==
          "conf/server.conf:2: max_batch = 1: the key belongs in a section [model NAME]");
    CHECK(error_of("[model m]\nweight = 1") ==
          "conf/server.conf:2: weight = 1: the key belongs in a section [tenant NAME]");
}

TEST_CASE("lines that are no lines of a configuration")
{
    CHECK(error_of("io_threads = 2") == "conf/server.conf:1: io_threads = 2: it is before the first section; it may "
                                        "belong after a line [server]");
    CHECK(error_of("[server]\nio_threads\n") ==
          "conf/server.conf:2: io_threads: it must be a section, such as [server], or a key with a value, such as "
          "io_threads = 4");
    CHECK(error_of("[server]\n = 2\n") == "conf/server.conf:2:  = 2: there is no key before =");
    CHECK(error_of("[server\n") == "conf/server.conf:1: [server: the section has no closing bracket");
    CHECK(error_of("[sever]\n") == "conf/server.conf:1: [sever]: unknown section; did you mean server?");
    CHECK(error_of("[]\n") ==
          "conf/server.conf:1: []: unknown section; known are [server], [model NAME] and [tenant NAME]");
    CHECK(error_of("[server x]\n") == "conf/server.conf:1: [server x]: [server] has no name");
    CHECK(error_of("[model]\n") == "conf/server.conf:1: [model]: the name is missing, as in [model NAME]");
    CHECK(error_of("[tenant a/b]\n").find("a name has 1 to 128 letters") != std::string::npos);
    CHECK(error_of("[tenant ..]\n").find("a name has 1 to 128 letters") != std::string::npos);
    CHECK(error_of("[server]\naccess_log = \"x\n") ==
          "conf/server.conf:2: access_log = \"x: the quote at the beginning of the value has no second one");
    CHECK(error_of("[server]\naccess_log = \"x\" y\n") ==
          "conf/server.conf:2: access_log = \"x\" y: there is something after the second quote");
}

TEST_CASE("keys and sections are given once")
{
    CHECK(error_of("[server]\nio_threads = 1\n\nio_threads = 2\n") ==
          "conf/server.conf:4: io_threads = 2: the key is already at line 2");
    CHECK(error_of("[server]\n[model a]\n[server]\nio_threads = 1") ==
          "conf/server.conf:3: [server]: the section is already at line 1");
    CHECK(config_of("[model a]\nmax_batch = 1\n[model b]\nmax_batch = 1").errors.empty());
}

TEST_CASE("rules between keys name the line that breaks them")
{
    CHECK(error_of("[server]\nmax_request_timeout = 10s\n") ==
          "conf/server.conf:2: max_request_timeout = 10s: max_request_timeout is 10 s; it must not be below "
          "request_timeout");
    CHECK(error_of("[server]\npoll_interval = 1ms\n") ==
          "conf/server.conf:2: poll_interval = 1ms: poll_interval is 1 ms; it must be 0 or at least 10 ms");
    CHECK(error_of("[server]\n\n[tenant a]\nweight = 2\n") == "conf/server.conf:3: [tenant a]: api_key is empty");
    CHECK(error_of("[tenant a]\napi_key = same\n[tenant b]\napi_key = same\n") ==
          "conf/server.conf:4: api_key = ********: api_key is the same as that of tenant a");
    CHECK(error_of("[tenant *]\napi_key = k\n") ==
          "conf/server.conf:2: api_key = ********: api_key is not empty; it is for requests without one");
    CHECK(error_of("[tenant a]\napi_key = a\nburst = 4\n") ==
          "conf/server.conf:3: burst = 4: burst is 4; it has no meaning without rate");
    CHECK(error_of("[tenant a]\napi_key = a\nminimum_share = 0.5\n[tenant b]\napi_key = b\nminimum_share = 0.5\n") ==
          "conf/server.conf:6: minimum_share = 0.5: minimum_share is 1; for all tenants together it must be at most "
          "0.9");
    CHECK(error_of("[model *]\nreplicas = 2\n") ==
          "conf/server.conf:2: replicas = 2: replicas is 2; there are fewer devices");
    CHECK(error_of("[server]\ndevice = cpu\n[model m]\nreplicas = 2\n") ==
          "conf/server.conf:4: replicas = 2: replicas is 2; there are fewer devices");
}

TEST_CASE("all errors are reported, in the order of the lines")
{
    const auto config =
        config_of("[server]\nxyzzy = 1\nlog = loud\nno line\n[modle m]\nmax_batch = x\n[tenant t]\nrate = r\n");
    REQUIRE(config.errors.size() == 5);
    const std::size_t lines[] = {2, 3, 4, 5, 8};
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(config.errors[i].line == lines[i]);
}

TEST_CASE("a message is one line of printable text, and not longer than useful")
{
    const auto text = error_of("[server]\n" + std::string(300, 'k') + " = 1");
    CHECK(text.size() < 200);
    CHECK(error_of("[server]\nlog = \x1b[31mred") ==
          "conf/server.conf:2: log = \\x1b[31mred: the line has a control character");
    CHECK(error_of("[server]\nlog = \xff\xfe").find("log = \\xff\\xfe: the value must be") != std::string::npos);
    using namespace std::string_literals;
    CHECK(error_of("[server]\nlog = a\0b"s).find("the line has a control character") != std::string::npos);
    CHECK(error_of("[server]\n# " + std::string(5000, 'x')).find("the line has 5002 bytes") != std::string::npos);
}

TEST_CASE("files that cannot be read")
{
    const test::temporary_folder folder;
    const auto load = [](const std::string& file) {
        return test::messages(server::load_config({.file = file}).errors);
    };
    CHECK(load(folder / "none") == (folder / "none") + ": the file cannot be opened: No such file or directory\n");
    CHECK(load(folder.path()) == folder.path() + ": it is not a regular file\n");
    CHECK(load("/dev/zero") == "/dev/zero: it is not a regular file\n");
    std::ofstream(folder / "large") << std::string((1 << 20) + 1, '\n');
    CHECK(load(folder / "large") == (folder / "large") + ": the file has more than 1048576 bytes\n");
    std::ofstream(folder / "good") << "[server]\nio_threads = 3\nmodel_folder = m\n";
    const auto config = server::load_config({.file = folder / "good"});
    CHECK(config.errors.empty());
    CHECK(config.options.io_threads == 3);
    CHECK(config.options.model_folder == folder / "m");
}

TEST_CASE("random bytes and changed files give options or errors, never both")
{
    std::mt19937 random(18);
    const std::string good =
        "[server]\nlisten = 127.0.0.1:80\ndevice = cpu\n\n[model *]\nversions = latest 2\n[model m]\n"
        "max_delay = 5ms # delay\n[tenant t]\napi_key = \"a b\"\nrate = 10\nburst = 20\n";
    const std::string_view pieces[] = {"[",
                                       "]",
                                       "=",
                                       "\"",
                                       "#",
                                       "\n",
                                       "\r\n",
                                       " ",
                                       "*",
                                       ".",
                                       "-1",
                                       "999999999999999999999",
                                       std::string_view("\0", 1),
                                       "\xff",
                                       "[tenant x]\n",
                                       "versions=1,",
                                       "device = "};
    for (int round = 0; round < 20000; ++round) {
        auto text = good;
        for (auto changes = random() % 8; changes > 0; --changes) {
            const auto at = random() % (text.size() + 1);
            switch (random() % 3) {
            case 0: text.insert(at, pieces[random() % std::size(pieces)]); break;
            case 1: text.erase(at, random() % 9); break;
            default: text.insert(at, 1, static_cast<char>(random() % 256));
            }
        }
        const auto config = config_of(text);
        if (config.errors.empty())
            CHECK(!config.options.check());
        for (const auto& e : config.errors) {
            CHECK(!e.message.empty());
            CHECK(e.text().find('\n') == std::string::npos);
        }
    }
}

TEST_CASE("the number of errors of a file is limited")
{
    std::string text;
    for (int i = 0; i < 10000; ++i)
        text += "nonsense\n";
    CHECK(config_of(text).errors.size() == 50);
}

TEST_SUITE_END();

} // namespace test_server_config_errors
