#include "server/config/config_keys.hpp"
#include "server/config/server_config.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

namespace coaccel::server {
namespace {

/// Applies the lines of a file, then the flags, and finds out which of them is to blame for a broken rule.
class config_maker {
public:
    config_maker(std::string_view text, const std::string& file, const std::vector<config_entry>& flags)
        : file_(file), lines_(split_config(text, file)), flags_(flags)
    {}

    server_config make()
    {
        made_.errors = lines_.errors;
        find_repeated(lines_.entries);
        find_repeated(flags_);
        // A flag replaces all devices of the file.
        if (std::ranges::any_of(flags_, is_device))
            std::erase_if(lines_.entries, is_device);
        // The defaults come first: the sections of models begin with them, wherever they are in the file.
        apply_all([](const config_section& s) { return s.kind == section_kind::model && s.name == "*"; });
        for (const auto& s : lines_.sections)
            add_section(s);
        apply_all([](const config_section& s) { return s.kind != section_kind::model || s.name != "*"; });
        if (made_.errors.empty())
            check();
        std::ranges::stable_sort(made_.errors, [](const config_error& a, const config_error& b) {
            return (a.line == 0 ? ~std::size_t(0) : a.line) < (b.line == 0 ? ~std::size_t(0) : b.line);
        });
        return std::move(made_);
    }

private:
    static bool is_device(const config_entry& e) { return e.section.kind == section_kind::server && e.key == "device"; }

    static std::string described(const config_entry& e)
    {
        const auto* known = find_key(e.section.kind, e.key);
        // Error messages end up in logs.
        const std::string value = known && known->form == value_form::token ? "********" : e.value;
        if (e.line != 0)
            return e.key + " = " + value;
        std::string flag = "--";
        if (e.section.kind != section_kind::server)
            flag += (e.section.kind == section_kind::model ? "model." : "tenant.") + e.section.name + ".";
        std::string key = e.key;
        std::ranges::replace(key, '_', '-');
        return flag + key + " " + value;
    }

    void refuse(const config_entry& e, std::string message)
    {
        made_.errors.push_back({e.line == 0 ? "command line" : file_, e.line, described(e), std::move(message)});
    }

    void find_repeated(const std::vector<config_entry>& entries)
    {
        using place = std::tuple<section_kind, std::string_view, std::string_view>;
        std::map<place, std::size_t> seen;
        for (const auto& e : entries) {
            const auto [first, is_new] = seen.emplace(place(e.section.kind, e.section.name, e.key), e.line);
            if (is_new || is_device(e))
                continue;
            refuse(e, e.line == 0 ? std::string("given twice")
                                  : "the key is already at line " + std::to_string(first->second));
        }
    }

    void add_section(const config_section& s)
    {
        if (s.name.empty() || s.name == "*")
            return;
        if (s.kind == section_kind::model)
            made_.options.models.try_emplace(s.name, made_.options.model_defaults);
        else
            made_.options.tenants.try_emplace(s.name);
    }

    config_target target(const config_section& s)
    {
        add_section(s);
        auto& o = made_.options;
        if (s.kind == section_kind::server)
            return {.server = &o};
        if (s.kind == section_kind::model)
            return {.model = s.name == "*" ? &o.model_defaults : &o.models.find(s.name)->second};
        return {.tenant = s.name == "*" ? &o.anonymous_limits : &o.tenants.find(s.name)->second};
    }

    template <class Filter>
    void apply_all(Filter wanted)
    {
        for (const auto* entries : {&std::as_const(lines_.entries), &flags_})
            for (const auto& e : *entries)
                if (wanted(e.section))
                    apply(e);
    }

    void apply(const config_entry& e)
    {
        const auto* key = find_key(e.section.kind, e.key);
        if (!key)
            return refuse(e, unknown_key(e.section.kind, e.key));
        if (auto problem = set_value(*key, target(e.section), located(*key, e)); !problem.empty())
            refuse(e, std::move(problem));
    }

    /// The value; a relative path in a file becomes one relative to the folder of the file.
    std::string located(const config_key& key, const config_entry& e) const
    {
        const bool is_path =
            key.form == value_form::path || (key.form == value_form::log_path && e.value != "-" && e.value != "off");
        if (!is_path || e.line == 0 || e.value.empty())
            return e.value;
        return (std::filesystem::path(file_).parent_path() / e.value).string();
    }

    /// Rules between options, which no single value breaks. Such a rule is broken by the last line that names its key.
    void check()
    {
        const auto ec = made_.options.check();
        if (!ec)
            return;
        auto message = ec.message();
        config_section section;
        for (const auto kind : {section_kind::model, section_kind::tenant}) {
            const std::string_view word = kind == section_kind::model ? "model " : "tenant ";
            const auto colon = message.find(": ");
            if (!message.starts_with(word) || colon == std::string::npos)
                continue;
            section = {kind, message.substr(word.size(), colon - word.size())};
            message.erase(0, colon + 2);
        }
        const auto key = message.substr(0, message.find(' '));
        const auto* blamed = find_blamed(section, key);
        if (blamed)
            return refuse(*blamed, message);
        for (const auto& s : lines_.sections)
            if (s.kind == section.kind && s.name == section.name && s.kind != section_kind::server)
                return made_.errors.push_back({file_, s.line, header(s), message});
        // Only keys of the command line have made the section.
        made_.errors.push_back({flags_.empty() ? file_ : "command line", 0,
                                section.kind == section_kind::server ? std::string() : header(section), message});
    }

    static std::string header(const config_section& s)
    {
        return (s.kind == section_kind::model ? "[model " : "[tenant ") + s.name + "]";
    }

    const config_entry* find_blamed(const config_section& section, const std::string& key) const
    {
        const config_entry* blamed = nullptr;
        for (const auto* entries : {&lines_.entries, &flags_})
            for (const auto& e : *entries) {
                // The sum of a key over all sections is not the fault of a certain one.
                const bool same = e.section.kind == section.kind && e.section.name == section.name;
                if (e.key == key && (same || section.kind == section_kind::server))
                    blamed = &e;
            }
        return blamed;
    }

    const std::string& file_;
    config_lines lines_;
    const std::vector<config_entry>& flags_;
    server_config made_;
};

} // namespace

server_config make_config(std::string_view text, const std::string& file, const std::vector<config_entry>& flags)
{
    return config_maker(text, file, flags).make();
}

} // namespace coaccel::server
