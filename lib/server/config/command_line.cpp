#include "core/near_name.hpp"
#include "server/config/config_keys.hpp"
#include "server/config/server_config.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace coaccel::server {
namespace {

constexpr std::string_view command_line_name = "command line";

class flag_reader {
public:
    explicit flag_reader(std::span<const char* const> arguments) : rest_(arguments) {}

    command_line read()
    {
        while (!rest_.empty()) {
            word_ = rest_.front();
            rest_ = rest_.subspan(1);
            flag();
        }
        return std::move(line_);
    }

private:
    void refuse(std::string message)
    {
        line_.errors.push_back({std::string(command_line_name), 0, std::string(word_), std::move(message)});
    }

    /// Refuses an unknown flag. The word after it is probably its value, and no error of its own.
    void refuse_flag(std::string message)
    {
        refuse(std::move(message));
        if (!value_ && !rest_.empty() && !std::string_view(rest_.front()).starts_with("-"))
            rest_ = rest_.subspan(1);
    }

    void flag()
    {
        if (word_ == "-h")
            word_ = "--help";
        if (!word_.starts_with("--") || word_.size() == 2)
            return refuse("it is not a flag; a configuration file is given as --config FILE");
        const auto equals = word_.find('=');
        name_ = word_.substr(2, std::min(equals, word_.size()) - 2);
        value_ = equals == std::string_view::npos ? std::nullopt : std::optional(word_.substr(equals + 1));
        if (name_ == "help")
            return set_action(config_action::help);
        if (name_ == "version")
            return set_action(config_action::version);
        if (name_ == "check-config")
            return set_action(config_action::check);
        if (name_ == "config")
            return set_file();
        option();
    }

    void set_action(config_action action)
    {
        if (value_)
            return refuse("the flag has no value");
        // Help is more helpful than a check of a command line that its user does not know.
        if (line_.action != config_action::help)
            line_.action = action;
    }

    bool take_value()
    {
        if (value_)
            return true;
        if (rest_.empty() || std::string_view(rest_.front()).starts_with("--")) {
            refuse("the value is missing");
            return false;
        }
        value_ = rest_.front();
        rest_ = rest_.subspan(1);
        return true;
    }

    void set_file()
    {
        if (!take_value())
            return;
        if (!line_.file.empty())
            return refuse("given twice");
        if (value_->empty())
            return refuse("the name of the file is empty");
        line_.file = *value_;
    }

    void option()
    {
        config_entry entry;
        std::string_view key = name_;
        for (const auto kind : {section_kind::model, section_kind::tenant}) {
            const std::string_view prefix = kind == section_kind::model ? "model." : "tenant.";
            if (!name_.starts_with(prefix))
                continue;
            const auto rest = name_.substr(prefix.size());
            const auto dot = rest.rfind('.');
            const auto name = rest.substr(0, std::min(dot, rest.size()));
            if (dot == std::string_view::npos || (name != "*" && !is_config_name(name)))
                return refuse_flag("it must have a name and a key, such as --model.digits.max_batch");
            entry.section = {kind, std::string(name)};
            key = rest.substr(dot + 1);
        }
        entry.key = key;
        std::ranges::replace(entry.key, '-', '_');
        if (!find_key(entry.section.kind, entry.key))
            return refuse_flag(unknown_flag(entry));
        if (!take_value())
            return;
        entry.value = *value_;
        line_.entries.push_back(std::move(entry));
    }

    static std::string unknown_flag(const config_entry& entry)
    {
        static constexpr std::string_view flags[] = {"check_config", "config", "help", "version"};
        const auto meant = entry.section.kind == section_kind::server && entry.key.size() <= 64
                               ? detail::suggestion(entry.key, flags)
                               : std::string();
        if (!meant.empty())
            return "unknown flag" +
                   (meant.find("check_config") == std::string::npos ? meant : "; did you mean check-config?");
        return unknown_key(entry.section.kind, entry.key);
    }

    std::span<const char* const> rest_;
    std::string_view word_;
    std::string_view name_;
    std::optional<std::string_view> value_;
    command_line line_;
};

} // namespace

command_line parse_command_line(std::span<const char* const> arguments)
{
    return flag_reader(arguments).read();
}

} // namespace coaccel::server
