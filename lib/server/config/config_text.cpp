#include "server/config/config_keys.hpp"
#include "server/config/server_config.hpp"

#include <algorithm>
#include <array>

namespace coaccel::server {
namespace {

constexpr std::array all_sections{section_kind::server, section_kind::model, section_kind::tenant};

std::string_view meaning_of(section_kind section) noexcept
{
    switch (section) {
    case section_kind::server: return "The server itself.";
    case section_kind::model:
        return "One model. The section [model *] has the defaults of all models, also of those with a section.";
    case section_kind::tenant:
        return "Clients with the same API key. The section [tenant *] is for requests without an API key.";
    }
    return {};
}

std::string value_name(value_form form)
{
    switch (form) {
    case value_form::text: return "TEXT";
    case value_form::path:
    case value_form::log_path: return "PATH";
    case value_form::token: return "TOKEN";
    case value_form::listen: return "ADDRESS:PORT";
    case value_form::devices: return "DEVICE";
    case value_form::whole:
    case value_form::count:
    case value_form::large: return "N";
    case value_form::bytes: return "BYTES";
    case value_form::time: return "TIME";
    case value_form::fraction: return "FRACTION";
    case value_form::yes_no: return "yes|no";
    case value_form::versions: return "VERSIONS";
    case value_form::level: return "LEVEL";
    }
    return {};
}

/// The defaults of all sections.
struct default_options {
    server_options server;
    model_options model;
    tenant_limits tenant;

    config_target target() { return {&server, &model, &tenant}; }
};

std::string flag_name(std::string_view key)
{
    std::string flag(key);
    std::ranges::replace(flag, '_', '-');
    return flag;
}

/// Breaks the text into lines of at most 96 characters, each with `indent` spaces before it.
std::string wrapped(std::string_view text, std::size_t indent)
{
    std::string all;
    std::size_t column = 0;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        if (column == 0 || column + 1 + end > 96) {
            all += column == 0 ? "" : "\n";
            all.append(indent, ' ');
            column = indent;
        } else {
            all += ' ';
            ++column;
        }
        all += text.substr(0, end);
        column += end;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return all + '\n';
}

std::string quoted(const std::string& value)
{
    const bool plain = !value.empty() && value.front() != '"' && value.front() != ' ' && value.back() != ' ' &&
                       value.find(" #") == std::string::npos && value.front() != '#';
    return plain ? value : '"' + value + '"';
}

void append_section(std::string& all, section_kind kind, const config_target& target, secrets show)
{
    for (const auto& key : config_keys()) {
        if (key.section != kind)
            continue;
        if (key.form == value_form::devices) {
            const std::vector<device_options> usual{default_device()};
            for (const auto& device : target.server->devices.empty() ? usual : target.server->devices)
                all += std::string(key.name) + " = " + device_text(device) + '\n';
            continue;
        }
        auto value = value_text(key, target);
        // An empty text has no written form: it stands for an option that is not set.
        if (value.empty())
            continue;
        if (key.form == value_form::token && show == secrets::hidden)
            value = "********";
        all += std::string(key.name) + " = " + quoted(value) + '\n';
    }
}

} // namespace

std::string config_text(const server_options& options, secrets show)
{
    server_options o = options;
    std::string all = "[server]\n";
    append_section(all, section_kind::server, {.server = &o}, show);
    all += "\n[model *]\n";
    append_section(all, section_kind::model, {.model = &o.model_defaults}, show);
    for (auto& [name, model] : o.models) {
        all += "\n[model " + name + "]\n";
        append_section(all, section_kind::model, {.model = &model}, show);
    }
    all += "\n[tenant *]\n";
    append_section(all, section_kind::tenant, {.tenant = &o.anonymous_limits}, show);
    for (auto& [name, tenant] : o.tenants) {
        all += "\n[tenant " + name + "]\n";
        append_section(all, section_kind::tenant, {.tenant = &tenant}, show);
    }
    return all;
}

std::string config_help(std::string_view program)
{
    const std::string name(program);
    std::string all = name + " [--config FILE] [--check-config] [--KEY VALUE]...\n" +
                      wrapped("Serves models over HTTP with the Open Inference Protocol.", 2) + "\n" +
                      "  --config FILE     the configuration file: lines KEY = VALUE in the sections below\n"
                      "  --check-config    check the configuration, print it with all defaults, and exit\n"
                      "  --version         print the version and exit\n"
                      "  --help            print this text and exit\n\n" +
                      wrapped("Flags are stronger than the file. Relative paths in a file begin in its folder.", 2);
    default_options defaults;
    for (const auto section : all_sections) {
        all += "\n" + std::string(section_header(section)) + "\n" + wrapped(meaning_of(section), 2);
        const std::string_view prefix = section == section_kind::server  ? "--"
                                        : section == section_kind::model ? "--model.NAME."
                                                                         : "--tenant.NAME.";
        for (const auto& key : config_keys()) {
            if (key.section != section)
                continue;
            const auto value = value_text(key, defaults.target());
            all += "  " + std::string(prefix) + flag_name(key.name) + " " + value_name(key.form) +
                   (value.empty() ? "" : "   (default " + value + ")") + "\n" + wrapped(key.help, 6);
        }
    }
    return all;
}

std::string config_reference()
{
    std::string all;
    default_options defaults;
    for (const auto section : all_sections) {
        all += "### " + std::string(section_header(section)) + "\n\n" + std::string(meaning_of(section)) +
               "\n\n| key | default | value | meaning |\n|---|---|---|---|\n";
        for (const auto& key : config_keys()) {
            if (key.section != section)
                continue;
            const auto value = value_text(key, defaults.target());
            all += "| `" + std::string(key.name) + "` | " + (value.empty() ? "" : "`" + value + "`") + " | " +
                   expected_value(key) + " | " + std::string(key.help) + " |\n";
        }
        all += "\n";
    }
    return all;
}

} // namespace coaccel::server
