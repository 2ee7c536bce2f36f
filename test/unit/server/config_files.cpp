#include "config_fixture.hpp"

#include <array>

namespace test_server_config_files {
namespace {

namespace server = coaccel::server;
using test::config_of;
using namespace std::chrono_literals;

template <std::size_t N>
server::command_line flags(const std::array<const char*, N>& words)
{
    return server::parse_command_line(words);
}

template <class... Words>
server::server_config with_flags(std::string_view text, Words... words)
{
    const auto line = flags(std::array<const char*, sizeof...(words)>{words...});
    CHECK_MESSAGE(line.errors.empty(), test::messages(line.errors));
    return server::make_config(text, "conf/server.conf", line.entries);
}

template <class... Words>
std::string flag_error(Words... words)
{
    const auto line = flags(std::array<const char*, sizeof...(words)>{words...});
    const auto config = server::load_config(line);
    CHECK_MESSAGE(config.errors.size() == 1, test::messages(config.errors));
    return config.errors.empty() ? std::string() : config.errors.front().text();
}

} // namespace

TEST_SUITE_BEGIN("server config files");

TEST_CASE("an empty configuration has the defaults")
{
    for (const std::string text : {"", "\n\n", "# comment", "[server]", "\xef\xbb\xbf[server]\r\n\r\n"}) {
        const auto config = config_of(text);
        CHECK_MESSAGE(config.errors.empty(), test::messages(config.errors));
        CHECK(server::config_text(config.options, server::secrets::shown) ==
              server::config_text({}, server::secrets::shown));
    }
}

TEST_CASE("comments, blanks and quotes")
{
    const auto config = config_of("  [ server ]  # the server\n\tio_threads\t=  3 # three\naccess_log=\"/a b #c\"#d\n"
                                  "telemetry_token = a#b\n#log = off\n");
    // Nothing but a comment may follow a value in quotes, and a comment begins after a blank.
    REQUIRE(config.errors.size() == 1);
    CHECK(config.errors[0].line == 3);
    const auto good = config_of("[server]\r\naccess_log = \"/a b #c\" #d\r\ntelemetry_token = a#b\r\n");
    CHECK_MESSAGE(good.errors.empty(), test::messages(good.errors));
    CHECK(good.options.access_log == "/a b #c");
    CHECK(good.options.telemetry_token == "a#b");
}

TEST_CASE("models begin with the defaults of all models, wherever these are")
{
    const auto config = config_of("[model a]\nmax_batch = 4\n[model *]\nmax_batch = 9\nmax_delay = 7ms\n[model b]\n");
    REQUIRE(config.errors.empty());
    const auto& o = config.options;
    CHECK(o.model("a").max_batch == 4);
    CHECK(o.model("a").max_delay == 7ms);
    CHECK(o.model("b") == o.model_defaults);
    CHECK(o.model("other").max_batch == 9);
}

TEST_CASE("relative paths of a file begin in its folder")
{
    const auto config = config_of("[server]\nmodel_folder = m\naccess_log = log/a\npage_folder = /p\n");
    CHECK(config.options.model_folder == "conf/m");
    CHECK(config.options.access_log == "conf/log/a");
    CHECK(config.options.page_folder == "/p");
    CHECK(config_of("[server]\naccess_log = -").options.access_log == "-");
    CHECK(config_of("[server]\naccess_log = off").options.access_log == "off");
    CHECK(with_flags("", "--model-folder", "m").options.model_folder == "m");
}

TEST_CASE("flags are stronger than the file")
{
    const auto config =
        with_flags("[server]\nio_threads = 2\ndevice = cuda:0\ndevice = cuda:1\n[model a.b]\nmax_batch = 2\n",
                   "--io-threads", "4", "--device=cpu", "--model.a.b.max_batch", "8", "--model.*.max-delay", "2ms",
                   "--tenant.t.api-key=secret", "--log", "off");
    REQUIRE_MESSAGE(config.errors.empty(), test::messages(config.errors));
    const auto& o = config.options;
    CHECK(o.io_threads == 4);
    REQUIRE(o.devices.size() == 1);
    CHECK(o.devices[0].kind == coaccel::device_kind::host);
    CHECK(o.model("a.b").max_batch == 8);
    CHECK(o.model("a.b").max_delay == 2ms);
    CHECK(o.model("x").max_delay == 2ms);
    CHECK(o.tenants.at("t").api_key == "secret");
}

TEST_CASE("what a command line asks for")
{
    using action = server::config_action;
    CHECK(flags(std::array<const char*, 0>{}).action == action::run);
    CHECK(flags(std::array{"--check-config", "--config", "f"}).action == action::check);
    CHECK(flags(std::array{"--check-config", "--config=f"}).file == "f");
    CHECK(flags(std::array{"--help", "--check-config"}).action == action::help);
    CHECK(flags(std::array{"-h"}).action == action::help);
    CHECK(flags(std::array{"--version"}).action == action::version);
}

TEST_CASE("errors of a command line name the flag")
{
    CHECK(flag_error("--io-treads", "3") == "command line: --io-treads: unknown key; did you mean io_threads?");
    CHECK(flag_error("--io-treads=3") == "command line: --io-treads=3: unknown key; did you mean io_threads?");
    CHECK(flag_error("--chek-config") == "command line: --chek-config: unknown flag; did you mean check-config?");
    CHECK(flag_error("--io-threads") == "command line: --io-threads: the value is missing");
    CHECK(flag_error("--io-threads", "--help") == "command line: --io-threads: the value is missing");
    CHECK(flag_error("--help=yes") == "command line: --help=yes: the flag has no value");
    CHECK(flag_error("server.conf") ==
          "command line: server.conf: it is not a flag; a configuration file is given as --config FILE");
    CHECK(flag_error("--") == "command line: --: it is not a flag; a configuration file is given as --config FILE");
    CHECK(flag_error("--model.digits", "1") ==
          "command line: --model.digits: it must have a name and a key, such as --model.digits.max_batch");
    CHECK(flag_error("--io-threads=x") ==
          "command line: --io-threads x: the value must be a whole number, from 0 to 256");
    CHECK(flag_error("--io-threads", "1", "--io-threads", "2") == "command line: --io-threads 2: given twice");
    CHECK(flag_error("--tenant.t.weight", "2") == "command line: [tenant t]: api_key is empty");
    CHECK(flag_error("--weight", "2") == "command line: --weight: the key belongs in a section [tenant NAME]");
}

TEST_CASE("a configuration is written and read again")
{
    const auto config =
        config_of("[server]\nmodel_folder = /m\nlisten = [::1]:1\ndevice = cpu,in_process\ndevice = cuda:2,standby=0\n"
                  "anonymous = no\ntelemetry_token = \"#x\"\naccess_log = \"/a b #c\"\nlog = error\n"
                  "[model *]\nversions = all\n[model m]\nversions = 1,3\nreplicas = 2\n"
                  "[tenant *]\nrate = 5\n[tenant t]\napi_key = k\nminimum_share = 0.125\n");
    REQUIRE_MESSAGE(config.errors.empty(), test::messages(config.errors));
    const auto text = server::config_text(config.options, server::secrets::shown);
    const auto again = config_of(text);
    CHECK_MESSAGE(again.errors.empty(), test::messages(again.errors));
    CHECK(server::config_text(again.options, server::secrets::shown) == text);
    CHECK(again.options.models == config.options.models);
    CHECK(again.options.tenants == config.options.tenants);
    CHECK(again.options.limits == config.options.limits);
    const auto hidden = server::config_text(config.options, server::secrets::hidden);
    CHECK(hidden.find("#x") == std::string::npos);
    CHECK(hidden.find("api_key = ********") != std::string::npos);
}

TEST_CASE("the help text and the reference have every key")
{
    const auto help = server::config_help("coaccel-serve");
    const auto reference = server::config_reference();
    for (const auto& key : server::config_keys()) {
        std::string flag(key.name);
        for (char& c : flag)
            c = c == '_' ? '-' : c;
        CHECK(help.find(flag + " ") != std::string::npos);
        CHECK(reference.find("| `" + std::string(key.name) + "` |") != std::string::npos);
        CHECK(reference.find(key.help) != std::string::npos);
    }
}

TEST_SUITE_END();

} // namespace test_server_config_files
