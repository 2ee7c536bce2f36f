#include "core/escape_text.hpp"
#include "core/unit_text.hpp"
#include "server/config/config_lines.hpp"
#include "server/repository/file_content.hpp"
#include "server/repository/model_scan.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <sys/stat.h>
#include <system_error>

namespace coaccel::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view plan_name = "model.plan";
// More are a mistake, such as the root of a file system for a model folder, and reading them all takes long.
constexpr std::size_t most_entries = 10000;

/// The names in a folder, sorted, without those that begin with a dot.
std::vector<std::string> entries_of(const fs::path& folder, std::error_code& ec, bool& cut)
{
    std::vector<std::string> names;
    fs::directory_iterator at(folder, ec);
    for (; !ec && at != fs::directory_iterator(); at.increment(ec)) {
        auto name = at->path().filename().string();
        if (name.starts_with('.'))
            continue;
        cut = names.size() == most_entries;
        if (cut)
            break;
        names.push_back(std::move(name));
    }
    std::ranges::sort(names);
    return names;
}

/// The number of a version: a positive integer without leading zeros, so that each has one name.
std::optional<std::uint64_t> version_number(std::string_view name)
{
    if (name.starts_with('0'))
        return std::nullopt;
    return detail::number<std::uint64_t>(name);
}

class folder_scanner {
public:
    explicit folder_scanner(const std::string& folder) : folder_(folder) {}

    model_scan scan()
    {
        std::error_code ec;
        const auto names = list(folder_, ec);
        if (ec) {
            scan_.readable = false;
            return std::move(scan_);
        }
        for (const auto& name : names)
            model(name);
        return std::move(scan_);
    }

private:
    void report(const fs::path& what, const std::string& why)
    {
        scan_.problems.push_back(detail::escape_text(what.string()) + ": " + why);
    }

    std::vector<std::string> list(const fs::path& folder, std::error_code& ec)
    {
        bool cut = false;
        auto names = entries_of(folder, ec, cut);
        if (ec)
            report(folder, "the folder cannot be read: " + ec.message());
        else if (cut)
            report(folder,
                   "the folder has more than " + std::to_string(most_entries) + " entries; the rest is ignored");
        return names;
    }

    enum class kind : std::uint8_t { folder, other, unknown };

    /// Reports what is no folder.
    kind kind_of(const fs::path& path, const char* expected)
    {
        std::error_code ec;
        const auto status = fs::status(path, ec);
        switch (status.type()) {
        case fs::file_type::directory: return kind::folder;
        // A dangling link, or an entry that was removed after it was listed.
        case fs::file_type::not_found: report(path, "it leads nowhere"); return kind::other;
        case fs::file_type::none: report(path, "it cannot be read: " + ec.message()); return kind::unknown;
        default: report(path, expected); return kind::other;
        }
    }

    void model(const std::string& name)
    {
        const auto path = folder_ / name;
        if (!is_config_name(name))
            return report(path, "it is no name of a model: 1 to 128 letters, digits, dots, underscores and hyphens, "
                                "beginning with a letter or digit");
        const auto what = kind_of(path, "it is no folder; a model is a folder with versions");
        if (what == kind::other)
            return;
        auto& m = scan_.models[name];
        std::error_code ec;
        const auto names = what == kind::folder ? list(path, ec) : std::vector<std::string>();
        m.readable = what == kind::folder && !ec;
        for (const auto& v : names)
            version(path / v, v, m);
        if (m.versions.empty() && m.readable)
            report(path, "it has no version with a file");
    }

    void version(const fs::path& path, const std::string& name, scanned_model& m)
    {
        const auto number = version_number(name);
        if (!number)
            return report(path, "it is no version: a folder whose name is a number from 1");
        const auto what = kind_of(path, "it is no folder; a version is a folder with the file model.plan");
        if (what == kind::unknown)
            m.readable = false;
        if (what != kind::folder)
            return;
        const auto file = path / plan_name;
        struct stat status{};
        if (::stat(file.c_str(), &status) != 0) {
            if (errno == ENOENT)
                return report(file, "the file is missing");
            report(file, "the file cannot be read: " + std::system_category().message(errno));
            m.readable = false;
            return;
        }
        if (!S_ISREG(status.st_mode))
            return report(file, "it is not a regular file");
        if (status.st_size == 0)
            return report(file, "the file is empty");
        m.versions[*number] = identity_of(status);
    }

    fs::path folder_;
    model_scan scan_;
};

} // namespace

std::string model_path(const std::string& folder, const std::string& model, std::uint64_t version)
{
    return (fs::path(folder) / model / std::to_string(version) / plan_name).string();
}

model_scan scan_models(const std::string& folder)
{
    return folder_scanner(folder).scan();
}

} // namespace coaccel::server
