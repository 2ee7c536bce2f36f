#include "config_fixture.hpp"

#include <coaccel/device/device_options_text.hpp>

#include <chrono>
#include <map>
#include <set>

namespace test_server_config_keys {
namespace {

namespace server = coaccel::server;
using namespace std::chrono_literals;
using server::section_kind;
using test::config_of;
using test::error_of;

std::string section_text(section_kind section)
{
    switch (section) {
    case section_kind::server: return "[server]\n";
    case section_kind::model: return "[model m]\n";
    case section_kind::tenant: return "[tenant *]\n";
    }
    return {};
}

/// Good values of a form that are no default of any key, as they are written again.
std::vector<std::string> good_values(const server::config_key& key)
{
    switch (key.form) {
    case server::value_form::text: return {"a b"};
    case server::value_form::path:
    case server::value_form::log_path: return {"/x/y"};
    case server::value_form::token: return {"s3cret#!"};
    case server::value_form::listen: return {"0.0.0.0:0", "[::1]:65535", "10.0.0.1:1234"};
    case server::value_form::devices: return {"host,in_process", "cuda:3,worker,standby=2", "best,worker,standby=0"};
    case server::value_form::whole: return {"7", "64"};
    case server::value_form::count: return {"9", "1000000"};
    case server::value_form::large: return {"1", "999999999999"};
    case server::value_form::bytes: return {"1K", "1M", "1234"};
    case server::value_form::time: return {"15ms", "7s", "3min", "999999us"};
    case server::value_form::fraction: return {"0.25", "0.9"};
    case server::value_form::yes_no: return {"no", "yes"};
    case server::value_form::versions: return {"all", "latest 3", "1, 7, 12"};
    case server::value_form::level: return {"debug", "info", "warning", "error", "off"};
    }
    return {};
}

} // namespace

TEST_SUITE_BEGIN("server config keys");

TEST_CASE("every key is set by its line and written again")
{
    for (const auto& key : server::config_keys())
        for (const auto& value : good_values(key)) {
            // An API key belongs to a tenant with a name.
            const bool is_key = key.name == "api_key";
            const auto section = is_key ? std::string("[tenant t]\n") : section_text(key.section);
            // A burst needs a rate, and a server without anonymous requests a tenant.
            const std::string others = key.name == "burst" ? "rate = 5\n" : "";
            const std::string more = key.name == "anonymous" ? "[tenant t]\napi_key = k\n" : "";
            const auto line = section + others + std::string(key.name) + " = " + value + '\n' + more;
            // Rules between keys have tests of their own.
            if (key.name == "replicas" || (key.name == "max_request_timeout" && value != "3min"))
                continue;
            auto config = config_of(line);
            CAPTURE(line);
            REQUIRE_MESSAGE(config.errors.empty(), test::messages(config.errors));
            auto& o = config.options;
            const server::config_target target{&o, key.section == section_kind::model ? &o.models.at("m") : nullptr,
                                               key.section != section_kind::tenant ? nullptr
                                               : is_key                            ? &o.tenants.at("t")
                                                                                   : &o.anonymous_limits};
            CHECK(server::value_text(key, target) == value);
        }
}

TEST_CASE("every key but a text refuses a value of another form, and says what it expects")
{
    for (const auto& key : server::config_keys()) {
        if (key.form == server::value_form::path || key.form == server::value_form::log_path ||
            key.form == server::value_form::devices)
            continue;
        for (const std::string bad : {"a b", "", "-1", "1x", "99999999999999999999999", "nan", "inf"}) {
            if (key.form == server::value_form::token && bad != "a b" && !bad.empty())
                continue;
            CAPTURE(key.name);
            const auto text = error_of(section_text(key.section) + std::string(key.name) + " = " + bad + "\n");
            const auto shown = key.form == server::value_form::token ? "********" : bad;
            CHECK(text == "conf/server.conf:2: " + std::string(key.name) + " = " + shown + ": the value must be " +
                              server::expected_value(key));
        }
    }
}

TEST_CASE("numbers outside the limits of a key are refused")
{
    CHECK(error_of("[server]\nio_threads = 257") ==
          "conf/server.conf:2: io_threads = 257: the value must be a whole number, from 0 to 256");
    CHECK(error_of("[server]\nmax_body_bytes = 3G") ==
          "conf/server.conf:2: max_body_bytes = 3G: the value must be a number of bytes, such as 4096, 64M or 2G, from "
          "1K to 2G");
    CHECK(error_of("[server]\nidle_timeout = 0") ==
          "conf/server.conf:2: idle_timeout = 0: the value must be a time, such as 20us, 5ms, 30s or 2min, from 1ms to "
          "1440min");
    CHECK(error_of("[server]\nmax_connections = 0") ==
          "conf/server.conf:2: max_connections = 0: the value must be a whole number, from 1");
    CHECK(error_of("[tenant *]\nminimum_share = 0.91") ==
          "conf/server.conf:2: minimum_share = 0.91: the value must be a number, from 0 to 0.9");
    CHECK(error_of("[model m]\ninstances = 65") ==
          "conf/server.conf:2: instances = 65: the value must be a whole number, from 1 to 64");
}

TEST_CASE("versions")
{
    using rule = server::version_policy::rule;
    const std::map<std::string, server::version_policy> good{
        {"latest", {rule::latest, 1, {}}},
        {"latest 2", {rule::latest, 2, {}}},
        {"latest\t 30", {rule::latest, 30, {}}},
        {"all", {rule::all, 1, {}}},
        {"7", {rule::listed, 1, {7}}},
        {"3,1 , 2", {rule::listed, 1, {1, 2, 3}}},
        {"18446744073709551615", {rule::listed, 1, {18446744073709551615u}}},
    };
    for (const auto& pair : good) {
        CAPTURE(pair.first);
        const auto config = config_of("[model m]\nversions = " + pair.first);
        CHECK(config.errors.empty());
        CHECK(config.options.models.at("m").versions == pair.second);
    }
    for (const std::string bad : {"latest 0", "latest2", "latest -1", "latest x", "1,,2", "1,", ",1", "0", "1, 1",
                                  "newest", "18446744073709551616", "all 2", "latest 4294967296"})
        CHECK(error_of("[model m]\nversions = " + bad).find("the value must be latest, latest N, all, or") !=
              std::string::npos);
}

TEST_CASE("the address to listen on")
{
    const auto listen = [](const std::string& text) {
        const auto config = config_of("[server]\nlisten = " + text);
        if (!config.errors.empty())
            return std::string("refused");
        return config.options.address + " " + std::to_string(config.options.port);
    };
    CHECK(listen("0.0.0.0:80") == "0.0.0.0 80");
    CHECK(listen("[::]:8080") == ":: 8080");
    CHECK(listen("10.1.2.3") == "10.1.2.3 8000");
    for (const std::string bad :
         {"localhost:80", "1.2.3:80", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1", ":80", "::1", "::1:80", "[::1]",
          "[1.2.3.4]:80", "[::1]80", "[]:1", "[", "]", "80", "1.2.3.4:80:80"}) {
        CAPTURE(bad);
        CHECK(listen(bad) == "refused");
    }
}

TEST_CASE("devices")
{
    const auto config = config_of("[server]\ndevice = cpu\ndevice = cuda:1,in_process\ndevice = cpu,standby=2\n");
    REQUIRE(config.errors.empty());
    REQUIRE(config.options.devices.size() == 3);
    CHECK(config.options.devices[0].kind == coaccel::device_kind::host);
    CHECK(config.options.devices[0].isolation == coaccel::isolation::worker);
    CHECK(config.options.devices[0].standby == 1);
    CHECK(config.options.devices[1].ordinal == 1);
    CHECK(config.options.devices[1].isolation == coaccel::isolation::in_process);
    CHECK(config.options.devices[1].standby == 0);
    CHECK(config.options.devices[2].standby == 2);
    CHECK(error_of("[server]\ndevice = cuba") == "conf/server.conf:2: device = cuba: device options \"cuba\": \"cuba\" "
                                                 "at position 1: unknown word; did you mean cuda?");
}

TEST_CASE("each key has a name of its own in its section, and a help text")
{
    std::set<std::pair<section_kind, std::string_view>> names;
    for (const auto& key : server::config_keys()) {
        CHECK(names.emplace(key.section, key.name).second);
        CHECK(key.help.ends_with('.'));
        CHECK(server::find_key(key.section, key.name) == &key);
    }
    CHECK(server::find_key(section_kind::server, "weight") == nullptr);
}

TEST_SUITE_END();

} // namespace test_server_config_keys
