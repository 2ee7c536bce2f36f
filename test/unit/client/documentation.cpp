#include "client/client_options.hpp"
#include "server/config/server_config.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string page_text()
{
    std::ifstream in(COACCEL_SERVER_CLIENT_PAGE);
    REQUIRE(in.is_open());
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The lines of docs/server_client.md between the marks.
std::string marked_text(const std::string& mark)
{
    const auto page = page_text();
    const auto begin = page.find("<!-- " + mark + " -->\n");
    REQUIRE(begin != std::string::npos);
    const auto from = page.find('\n', begin) + 1;
    const auto end = page.find("<!-- end -->", from);
    REQUIRE(end != std::string::npos);
    return page.substr(from, end - from);
}

} // namespace

TEST_SUITE_BEGIN("client documentation");

// The right text of a table that differs is in the message of the failure.
TEST_CASE("the page has the table of the client")
{
    CHECK(marked_text("client_reference") == coaccel::client::client_reference());
}

TEST_CASE("the configuration file on the page is valid")
{
    auto page = page_text();
    page.erase(0, page.find("    # comment\n"));
    page.erase(page.find("\n- "));
    const auto config = coaccel::server::make_config(page, "page", {});
    for (const auto& e : config.errors)
        FAIL_CHECK(e.text());
    CHECK(config.options.devices.size() == 2);
    CHECK(config.options.tenants.at("research").weight == 3);
}

TEST_SUITE_END();
