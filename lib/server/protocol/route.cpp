#include "server/protocol/route.hpp"

#include <array>

namespace coaccel::server {
namespace {

constexpr std::string_view readers = "GET, HEAD";
constexpr std::string_view writers = "POST";

int hex_value(char c) noexcept
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// The parts of a path between slashes; more than the longest path of the protocol has do not matter.
struct path_parts {
    std::array<std::string_view, 8> part{};
    std::size_t count = 0;

    explicit path_parts(std::string_view path) noexcept
    {
        while (count < part.size()) {
            const auto slash = path.find('/');
            part[count++] = path.substr(0, slash);
            if (slash == path.npos)
                return;
            path.remove_prefix(slash + 1);
        }
    }

    bool is(std::size_t index, std::string_view text) const noexcept { return index < count && part[index] == text; }
};

struct found_endpoint {
    endpoint where = endpoint::telemetry;
    std::string_view allowed = readers;
};

/// What follows /v2/models/NAME or /v2/models/NAME/versions/VERSION.
found_endpoint of_model(const path_parts& p, std::size_t from) noexcept
{
    if (p.count == from)
        return {endpoint::model_metadata, readers};
    if (p.count != from + 1)
        return {};
    if (p.is(from, "infer"))
        return {endpoint::infer, writers};
    if (p.is(from, "ready"))
        return {endpoint::model_ready, readers};
    if (p.is(from, "stats"))
        return {endpoint::model_stats, readers};
    if (p.is(from, "config"))
        return {endpoint::model_config, readers};
    return {};
}

found_endpoint find(const path_parts& p, std::string_view& model, std::string_view& version) noexcept
{
    // part[0] is "v2".
    if (p.count == 1 || (p.count == 2 && p.part[1].empty()))
        return {endpoint::server_metadata, readers};
    if (p.is(1, "health") && p.count == 3) {
        if (p.is(2, "live"))
            return {endpoint::server_live, readers};
        if (p.is(2, "ready"))
            return {endpoint::server_ready, readers};
        return {};
    }
    if (p.is(1, "repository")) {
        if (p.count == 3 && p.is(2, "index"))
            return {endpoint::repository_index, writers};
        if (p.count != 5 || !p.is(2, "models") || p.part[3].empty())
            return {};
        model = p.part[3];
        if (p.is(4, "load"))
            return {endpoint::repository_load, writers};
        return p.is(4, "unload") ? found_endpoint{endpoint::repository_unload, writers} : found_endpoint{};
    }
    if (!p.is(1, "models") || p.count < 3 || p.part[2].empty())
        return {};
    if (p.count == 3 && p.is(2, "stats"))
        return {endpoint::model_stats, readers};
    model = p.part[2];
    if (!p.is(3, "versions"))
        return of_model(p, 3);
    if (p.count < 5 || p.part[4].empty())
        return {};
    version = p.part[4];
    return of_model(p, 5);
}

} // namespace

bool decode_percent(std::string_view text, std::string& out)
{
    out.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size())
            return false;
        const int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return false;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return true;
}

route choose_endpoint(std::string_view method, std::string_view target)
{
    route chosen;
    const auto path = target.substr(0, target.find('?'));
    std::string_view model, version;
    found_endpoint found;
    constexpr std::string_view pages = "/page/";
    if (path.starts_with(pages)) {
        found = {endpoint::page_file, readers};
        model = path.substr(pages.size());
    } else if (path == "/v2" || path.starts_with("/v2/")) {
        found = find(path_parts(path.substr(1)), model, version);
    }
    chosen.where = found.where;
    if (found.where == endpoint::telemetry)
        return chosen;
    const bool allowed = found.allowed == writers ? method == "POST"
                                                  : method == "GET" || method == "HEAD" ||
                                                        // Clients ask for these with either method.
                                                        (found.where == endpoint::model_stats && method == "POST");
    if (!allowed && !(found.where == endpoint::repository_index && method == "GET")) {
        chosen.where = endpoint::wrong_method;
        chosen.allowed = found.allowed;
        return chosen;
    }
    if (!decode_percent(model, chosen.model) || !decode_percent(version, chosen.version))
        chosen.where = endpoint::bad_path;
    return chosen;
}

} // namespace coaccel::server
