#include "telemetry/http/routes.hpp"

#include <doctest/doctest.h>

#include <string>

namespace test_telemetry_routes {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

TEST_SUITE_BEGIN("http_route");

TEST_CASE("paths, methods and queries")
{
    struct {
        const char* method;
        const char* target;
        http_route route;
    } cases[] = {
        {"GET", "/", http_route::page},
        {"GET", "/?x=1", http_route::page},
        {"GET", "/metrics", http_route::metrics},
        {"HEAD", "/metrics", http_route::metrics},
        {"GET", "/metrics?a", http_route::metrics},
        {"GET", "/healthz", http_route::health},
        {"GET", "/readyz", http_route::ready},
        {"GET", "/trace", http_route::trace},
        {"GET", "/debug/state", http_route::state},
        {"GET", "/metrics/", http_route::unknown},
        {"GET", "/../etc/passwd", http_route::unknown},
        {"GET", "", http_route::unknown},
        {"GET", "*", http_route::unknown},
        {"POST", "/nothing", http_route::unknown},
        {"POST", "/metrics", http_route::wrong_method},
        {"get", "/metrics", http_route::wrong_method},
        {"DELETE", "/", http_route::wrong_method},
    };
    for (const auto& c : cases) {
        CAPTURE(c.target);
        CHECK(choose_route({c.method, c.target, {}}, {}) == c.route);
    }
}

TEST_CASE("the token is needed for all that tells about the program")
{
    for (const char* target : {"/metrics", "/readyz", "/trace", "/debug/state", "/nothing"}) {
        CAPTURE(target);
        CHECK(choose_route({"GET", target, {}}, "secret") == http_route::unauthorized);
        CHECK(choose_route({"GET", target, "Bearer wrong!"}, "secret") == http_route::unauthorized);
        CHECK(choose_route({"GET", target, "Bearer secret"}, "secret") != http_route::unauthorized);
    }
    CHECK(choose_route({"GET", "/", {}}, "secret") == http_route::page);
    CHECK(choose_route({"GET", "/healthz", {}}, "secret") == http_route::health);
}

TEST_CASE("a token is compared as a whole")
{
    CHECK(has_token("Bearer secret", "secret"));
    CHECK(has_token("bearer secret", "secret"));
    for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer secre", "Bearer secrett", "Bearer secretsecret",
                              "Bearer Secret", "Bearer  secret", "Basic secret", "secret", "Bearer xecret"}) {
        CAPTURE(wrong);
        CHECK_FALSE(has_token(wrong, "secret"));
    }
}

TEST_CASE("a device that cannot run ops makes the program not ready")
{
    CHECK(ready_reply({}).status == 200);
    struct {
        device_state state;
        unsigned status;
    } cases[] = {
        {device_state::starting, 503}, {device_state::ready, 200},      {device_state::busy, 200},
        {device_state::suspect, 503},  {device_state::rebuilding, 503}, {device_state::failed, 503},
        {device_state::stopping, 503}, {device_state::stopped, 503},
    };
    for (const auto& c : cases) {
        CAPTURE(to_string(c.state));
        CHECK(ready_reply({{"a", {c.state, 1, {}}, {}}}).status == c.status);
    }
    const auto reply = ready_reply({{"a", {device_state::ready, 1, {}}, {}},
                                    {"b\n\xff", {device_state::failed, 1, errc::device_lost}, {}},
                                    {"c", {device_state::rebuilding, 2, {}}, {}}});
    CHECK(reply.status == 503);
    CHECK(reply.body == "device \"b\n\xef\xbf\xbd\" is failed: " + error_code(errc::device_lost).message() +
                            "\ndevice \"c\" is rebuilding\n");
}

TEST_CASE("refusals have their status")
{
    CHECK(plain_reply(http_route::health).status == 200);
    CHECK(plain_reply(http_route::unknown).status == 404);
    CHECK(plain_reply(http_route::trace).status == 404);
    CHECK(plain_reply(http_route::wrong_method).status == 405);
    CHECK(plain_reply(http_route::unauthorized).status == 401);
}

TEST_CASE("hosts that need no DNS")
{
    for (const char* host : {"", "localhost", "LocalHost", "localhost:9464", "127.0.0.1", "127.0.0.1:80", "10.1.2.3",
                             "[::1]", "[::1]:9464", "[fe80::1]:1"}) {
        CAPTURE(host);
        CHECK(is_local_host(host));
    }
    for (const char* host : {"evil.example", "evil.example:9464", "localhost.evil.example", "localhost:x",
                             "localhost@evil", "127.0.0.1.evil.example", "127.0.0.1:80:80", "[::1", "[::1]evil",
                             "[127.0.0.1]", "::1", ":80", "[]", "1", "localhost "}) {
        CAPTURE(host);
        CHECK_FALSE(is_local_host(host));
    }
    CHECK_FALSE(is_local_host(std::string(1000, '1')));
}

TEST_SUITE_END();

} // namespace

} // namespace test_telemetry_routes
