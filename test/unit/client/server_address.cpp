#include "client/server_address.hpp"

#include "client/server_connection.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using coaccel::client::parse_address;
using coaccel::client::server_address;

} // namespace

TEST_SUITE_BEGIN("client server address");

TEST_CASE("addresses")
{
    CHECK(parse_address("http://10.1.2.3:80").value() == server_address{"10.1.2.3", "80", ""});
    CHECK(parse_address("localhost").value() == server_address{"localhost", "8000", ""});
    CHECK(parse_address("gpu7:9000/").value() == server_address{"gpu7", "9000", ""});
    CHECK(parse_address("http://proxy/models/a//").value() == server_address{"proxy", "8000", "/models/a"});
    CHECK(parse_address("[::1]:81").value() == server_address{"::1", "81", ""});
    CHECK(parse_address("http://[fe80::1]").value() == server_address{"fe80::1", "8000", ""});
    CHECK(parse_address("[::1]:81").value().text() == "[::1]:81");
    CHECK(server_address().text() == "127.0.0.1:8000");
}

TEST_CASE("addresses that are none")
{
    for (const char* bad : {"",    "http://", "https://x", "ftp://x",  "x:",  "x:0", "x:65536",      "x:80a",
                            "::1", "[::1",    "[]",        "[::1]80",  ":80", "a b", "x\r\nHost: y", "user@x",
                            "x?y", "x/#y",    "x/a?b",     "h\xc3\xa9"}) {
        CAPTURE(bad);
        const auto parsed = parse_address(bad);
        REQUIRE(!parsed);
        CHECK(parsed.error() == coaccel::errc::invalid_argument);
        CHECK(parsed.error().message().find('\n') == std::string::npos);
    }
    CHECK(parse_address("https://x").error().message() == "the address 'https://x': only http is supported");
}

TEST_CASE("names become parts of paths")
{
    CHECK(coaccel::client::encoded_name("digits-2.0_a~") == "digits-2.0_a~");
    CHECK(coaccel::client::encoded_name("a/b c?\xff\r\n") == "a%2Fb%20c%3F%FF%0D%0A");
}

TEST_SUITE_END();
