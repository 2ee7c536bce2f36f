#include "server/config/config_lines.hpp"

#include "core/near_name.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::server {
namespace {

constexpr std::size_t most_line_errors = 50;
constexpr std::size_t most_line_bytes = 4096;
constexpr std::string_view blanks = " \t";

bool is_letter_or_digit(char c) noexcept
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The line without a comment: one begins at `#`, at the beginning of the line or after a blank, outside quotes.
std::string_view without_comment(std::string_view line) noexcept
{
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"')
            quoted = !quoted;
        else if (line[i] == '#' && !quoted && (i == 0 || blanks.find(line[i - 1]) != std::string_view::npos))
            return line.substr(0, i);
    }
    return line;
}

/// Takes quotes off a value. A value has quotes at both ends, or none at its beginning.
bool unquote(std::string_view& value, std::string& problem)
{
    if (!value.starts_with('"'))
        return true;
    const auto end = value.find('"', 1);
    if (end == std::string_view::npos)
        problem = "the quote at the beginning of the value has no second one";
    else if (end + 1 != value.size())
        problem = "there is something after the second quote";
    else
        value = value.substr(1, end - 1);
    return problem.empty();
}

class splitter {
public:
    explicit splitter(const std::string& file) : file_(file) {}

    config_lines split(std::string_view text)
    {
        if (text.starts_with("\xef\xbb\xbf"))
            text.remove_prefix(3); // a byte order mark, which some editors write
        while (!text.empty() && lines_.errors.size() < most_line_errors) {
            const auto end = std::min(text.find('\n'), text.size());
            ++line_;
            whole_ = text.substr(0, end);
            if (whole_.ends_with('\r'))
                whole_.remove_suffix(1);
            read();
            text.remove_prefix(std::min(end + 1, text.size()));
        }
        return std::move(lines_);
    }

private:
    void refuse(std::string message)
    {
        lines_.errors.push_back({file_, line_, std::string(whole_), std::move(message)});
    }

    void read()
    {
        if (whole_.size() > most_line_bytes)
            return refuse("the line has " + std::to_string(whole_.size()) + " bytes; at most " +
                          std::to_string(most_line_bytes) + " are allowed");
        const auto is_control = [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 127; };
        if (std::ranges::any_of(whole_, is_control))
            return refuse("the line has a control character");
        const auto line = without_blanks(without_comment(whole_));
        if (line.empty())
            return;
        if (line.starts_with('['))
            section(line);
        else
            entry(line);
    }

    void section(std::string_view line)
    {
        // Keys after a bad header are not errors of their own.
        skip_ = true;
        if (!line.ends_with(']'))
            return refuse("the section has no closing bracket");
        std::string problem;
        auto s = parse_section(line.substr(1, line.size() - 2), problem);
        if (!problem.empty())
            return refuse(std::move(problem));
        for (const auto& other : lines_.sections)
            if (other.kind == s.kind && other.name == s.name)
                return refuse("the section is already at line " + std::to_string(other.line));
        s.line = line_;
        lines_.sections.push_back(s);
        section_ = std::move(s);
        skip_ = false;
    }

    void entry(std::string_view line)
    {
        if (skip_)
            return;
        const auto equals = line.find('=');
        if (equals == std::string_view::npos)
            return refuse("it must be a section, such as [server], or a key with a value, such as io_threads = 4");
        const auto key = without_blanks(line.substr(0, equals));
        auto value = without_blanks(line.substr(equals + 1));
        if (key.empty())
            return refuse("there is no key before =");
        if (section_.line == 0)
            return refuse("it is before the first section; it may belong after a line [server]");
        std::string problem;
        if (!unquote(value, problem))
            return refuse(std::move(problem));
        lines_.entries.push_back({section_, std::string(key), std::string(value), line_});
    }

    const std::string& file_;
    config_lines lines_;
    config_section section_;
    std::string_view whole_;
    std::size_t line_ = 0;
    bool skip_ = false;
};

} // namespace

std::string_view without_blanks(std::string_view text) noexcept
{
    const auto from = text.find_first_not_of(blanks);
    if (from == std::string_view::npos)
        return {};
    return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

bool is_config_name(std::string_view text) noexcept
{
    return !text.empty() && text.size() <= 128 && is_letter_or_digit(text.front()) &&
           std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

config_section parse_section(std::string_view text, std::string& problem)
{
    static constexpr std::string_view kinds[] = {"server", "model", "tenant"};
    text = without_blanks(text);
    const auto space = std::min(text.find_first_of(blanks), text.size());
    const auto word = text.substr(0, space);
    const auto name = without_blanks(text.substr(space));
    const auto kind = std::ranges::find(kinds, word);
    if (kind == std::end(kinds)) {
        problem = "unknown section" + (word.size() <= 64 ? detail::suggestion(word, kinds) : std::string());
        if (problem.find('?') == std::string::npos)
            problem += "; known are [server], [model NAME] and [tenant NAME]";
        return {};
    }
    config_section s{static_cast<section_kind>(kind - std::begin(kinds)), std::string(name)};
    if (s.kind == section_kind::server) {
        if (!name.empty())
            problem = "[server] has no name";
    } else if (name.empty())
        problem = "the name is missing, as in [" + std::string(word) + " NAME]";
    else if (name != "*" && !is_config_name(name))
        problem =
            "a name has 1 to 128 letters, digits, dots, underscores and hyphens, and begins with a letter or digit";
    return s;
}

config_lines split_config(std::string_view text, const std::string& file)
{
    return splitter(file).split(text);
}

} // namespace coaccel::server
