#include "cuda/jit/include_names.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace coaccel::cuda {
namespace {

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Bytes above 127 belong to non-ASCII letters.
bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           static_cast<unsigned char>(c) > 127;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words)
{
    return std::ranges::find(words, word) != words.end();
}

// NVRTC joins lines everywhere, also in raw strings.
std::string join_spliced_lines(std::string_view text)
{
    std::string joined;
    joined.reserve(text.size());
    while (!text.empty()) {
        const auto plain = std::min(text.size(), text.find('\\'));
        joined += text.substr(0, plain);
        text.remove_prefix(plain);
        const std::size_t splice = text.starts_with("\\\n") ? 2 : text.starts_with("\\\r\n") ? 3 : 0;
        if (splice == 0)
            joined += text.substr(0, 1);
        text.remove_prefix(std::min(text.size(), std::max<std::size_t>(splice, 1)));
    }
    return joined;
}

/// Scans the tokens of a text whose lines are joined.
class name_finder {
public:
    explicit name_finder(std::string_view text) : rest_(text) {}

    /// Returns false if some name cannot be determined.
    bool run()
    {
        while (!rest_.empty())
            if (!step())
                return false;
        return true;
    }

    std::vector<std::string> take() { return std::move(names_); }

private:
    bool step()
    {
        if (take("\n")) {
            begins_line_ = true;
            last_word_ = {};
            return true;
        }
        if (skip_blank())
            return true;
        const bool is_first = std::exchange(begins_line_, false);
        if (take("#") || take("%:"))
            return !is_first || directive();
        if (is_digit(rest_.front()))
            skip_number();
        else if (is_word(rest_.front()))
            return word();
        else if (rest_.front() == '"' || rest_.front() == '\'')
            skip_literal();
        else
            skip(1);
        return true;
    }

    bool directive()
    {
        skip_blanks();
        last_word_ = take_word();
        if (!is_one_of(last_word_, {"include", "include_next", "import"}))
            return true;
        skip_blanks();
        // An #include without a name, or with an unclosed one, is an error whatever macros are defined.
        return take_name() || rest_.empty() || rest_.front() == '\n' || rest_.front() == '"';
    }

    bool word()
    {
        const auto previous = std::exchange(last_word_, take_word());
        if (rest_.starts_with('"') && is_one_of(last_word_, {"R", "LR", "uR", "UR", "u8R"}))
            skip_raw_string();
        if (!is_one_of(last_word_, {"__has_include", "__has_include_next"}))
            return true;
        // __has_include is only tested for, or defined for compilers without it.
        if (is_one_of(previous, {"defined", "ifdef", "ifndef", "elifdef", "elifndef", "define", "undef"}))
            return true;
        skip_blanks();
        if (!take("("))
            return false;
        skip_blanks();
        return take_name();
    }

    /// Takes a file name in quotes or angle brackets.
    bool take_name()
    {
        if (!rest_.starts_with('"') && !rest_.starts_with('<'))
            return false;
        const auto line = rest_.substr(0, rest_.find('\n'));
        const auto end = line.find(line.front() == '"' ? '"' : '>', 1);
        if (end == line.npos || end == 1)
            return false;
        names_.emplace_back(line.substr(1, end - 1));
        skip(end + 1);
        return true;
    }

    std::string_view take_word()
    {
        const auto end = std::ranges::find_if_not(rest_, is_word);
        const auto found = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
        skip(found.size());
        return found;
    }

    // An apostrophe between digits does not start a character literal.
    void skip_number()
    {
        while (!rest_.empty() && (is_word(rest_.front()) || rest_.front() == '.' ||
                                  (rest_.front() == '\'' && rest_.size() > 1 && is_word(rest_[1]))))
            skip(1);
    }

    // An unclosed literal ends with its line: the text of inactive code may contain apostrophes.
    void skip_literal()
    {
        const char quote = rest_.front();
        skip(1);
        while (!rest_.empty() && rest_.front() != '\n') {
            const char c = rest_.front();
            skip(c == '\\' && rest_.size() > 1 && rest_[1] != '\n' ? 2 : 1);
            if (c == quote)
                return;
        }
    }

    void skip_raw_string()
    {
        const auto opening = rest_.find('(');
        if (opening == rest_.npos)
            return skip_literal();
        const auto delimiter = rest_.substr(1, opening - 1);
        const auto closing = std::string(")").append(delimiter).append("\"");
        const auto end = rest_.find(closing, opening);
        // Before C++11 there are no raw strings, and this is a plain one.
        if (delimiter.size() > 16 || delimiter.find_first_of(" \t\n\\)\"") != delimiter.npos || end == rest_.npos)
            return skip_literal();
        skip(end + closing.size());
    }

    bool skip_blank()
    {
        if (rest_.starts_with("//"))
            skip(rest_.find('\n'));
        else if (rest_.starts_with("/*"))
            skip_comment();
        else if (std::string_view(" \t\v\f\r").find(rest_.front()) != std::string_view::npos)
            skip(1);
        else
            return false;
        return true;
    }

    void skip_blanks()
    {
        while (!rest_.empty() && skip_blank()) {
        }
    }

    void skip_comment()
    {
        const auto end = rest_.find("*/", 2);
        skip(end == rest_.npos ? end : end + 2);
    }

    bool take(std::string_view token)
    {
        if (!rest_.starts_with(token))
            return false;
        skip(token.size());
        return true;
    }

    void skip(std::size_t n) { rest_.remove_prefix(std::min(n, rest_.size())); }

    std::string_view rest_;
    std::vector<std::string> names_;
    std::string_view last_word_;
    bool begins_line_ = true;
};

} // namespace

std::optional<std::vector<std::string>> included_names(std::string_view text)
{
    // Trigraphs for "#" and "\", in standards before C++17.
    if (text.find("?\?=") != text.npos || text.find("?\?/") != text.npos)
        return std::nullopt;
    const auto joined = join_spliced_lines(text);
    name_finder finder(joined);
    if (!finder.run())
        return std::nullopt;
    return finder.take();
}

} // namespace coaccel::cuda
