#include "client/server_address.hpp"

#include "core/escape_text.hpp"
#include "core/unit_text.hpp"

#include <algorithm>
#include <cstdint>

namespace coaccel::client {

std::string server_address::text() const
{
    return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

result<server_address> parse_address(std::string_view url)
{
    const auto refuse = [url](const std::string& why) {
        return make_error_with_message(errc::invalid_argument,
                                       "the address '" + detail::escape_text(url.substr(0, 200)) + "': " + why);
    };
    // Such characters could end a line of a request.
    if (std::ranges::any_of(url, [](char c) { return c <= ' ' || c > '~'; }))
        return refuse("it has a space or a character that is not printable ASCII");
    server_address made;
    auto rest = url;
    if (const auto scheme = rest.find("://"); scheme != std::string_view::npos) {
        if (rest.substr(0, scheme) != "http")
            return refuse("only http is supported");
        rest.remove_prefix(scheme + 3);
    }
    const auto slash = std::min(rest.find('/'), rest.size());
    made.path = rest.substr(slash);
    while (made.path.ends_with('/'))
        made.path.pop_back();
    rest = rest.substr(0, slash);
    if (made.path.find_first_of("?#") != std::string::npos || rest.find_first_of("?#@") != std::string_view::npos)
        return refuse("it must be http://HOST:PORT, with a path if need be");
    if (rest.starts_with('[')) {
        const auto end = rest.find(']');
        if (end == std::string_view::npos)
            return refuse("the bracket is not closed");
        made.host = rest.substr(1, end - 1);
        rest.remove_prefix(end + 1);
    } else {
        const auto colon = std::min(rest.find(':'), rest.size());
        made.host = rest.substr(0, colon);
        rest.remove_prefix(colon);
    }
    if (made.host.empty())
        return refuse("the host is missing");
    if (!rest.empty()) {
        const auto port = detail::number<std::uint16_t>(rest.substr(1));
        if (rest.front() != ':' || !port || *port == 0)
            return refuse("the port must be a number from 1 to 65535; an IPv6 address needs brackets");
        made.port = std::to_string(*port);
    }
    return made;
}

} // namespace coaccel::client
