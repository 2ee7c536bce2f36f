#include "cuda/jit/include_scan.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace coaccel::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_files = 4096;
constexpr std::uint64_t max_bytes = std::uint64_t(64) << 20;

bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Blanks, comments and spliced lines may stand between the parts of a directive.
void skip_blanks(std::string_view& text)
{
    for (;;) {
        if (text.starts_with(' ') || text.starts_with('\t'))
            text.remove_prefix(1);
        else if (text.starts_with("\\\n"))
            text.remove_prefix(2);
        else if (text.starts_with("\\\r\n"))
            text.remove_prefix(3);
        else if (text.starts_with("/*"))
            text.remove_prefix(
                std::min(text.size(), text.find("*/", 2) == text.npos ? text.size() : text.find("*/", 2) + 2));
        else
            return;
    }
}

bool take_word(std::string_view& text, std::string_view word)
{
    if (!text.starts_with(word) || (text.size() > word.size() && is_word(text[word.size()])))
        return false;
    text.remove_prefix(word.size());
    return true;
}

// The name in quotes or angle brackets; empty for anything else.
std::string_view quoted_name(std::string_view text)
{
    if (!text.starts_with('"') && !text.starts_with('<'))
        return {};
    const auto end = text.find(text.front() == '"' ? '"' : '>', 1);
    const auto name = text.substr(1, end == text.npos ? 0 : end - 1);
    return name.find('\n') == name.npos ? name : std::string_view();
}

/// What follows "#" or "%:" if it is some kind of #include; false when the name is not in the text.
bool scan_directive(std::string_view text, std::vector<std::string>& names)
{
    skip_blanks(text);
    if (!take_word(text, "include") && !take_word(text, "include_next") && !take_word(text, "import"))
        return true;
    skip_blanks(text);
    const auto name = quoted_name(text);
    if (!name.empty())
        names.emplace_back(name);
    else if (!text.empty() && is_word(text.front()))
        return false;
    return true;
}

std::optional<std::string> read_file(const fs::path& path)
{
    std::error_code failed;
    if (!fs::is_regular_file(path, failed))
        return std::nullopt;
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(stream), {});
}

class scanner {
public:
    explicit scanner(const std::vector<std::string>& folders) : folders_(folders) {}

    /// False when it cannot be told what the text includes.
    bool scan(std::string_view text, const fs::path& own_folder)
    {
        const auto names = included_names(text);
        if (!names)
            return false;
        for (const auto& name : *names) {
            if (!own_folder.empty())
                add(own_folder / name);
            for (const auto& folder : folders_)
                add(fs::path(folder) / name);
        }
        return true;
    }

    bool scan_found()
    {
        for (; next_ < found_.size(); ++next_) {
            const std::string text = found_[next_].text;
            if (found_.size() > max_files || bytes_ > max_bytes ||
                !scan(text, fs::path(found_[next_].name).parent_path()))
                return false;
        }
        return true;
    }

    std::vector<jit::header> take() { return std::move(found_); }

private:
    void add(const fs::path& path)
    {
        auto name = path.lexically_normal().string();
        if (found_.size() > max_files || !seen_.insert(name).second)
            return;
        if (auto text = read_file(path)) {
            bytes_ += text->size();
            found_.push_back({std::move(name), std::move(*text)});
        }
    }

    const std::vector<std::string>& folders_;
    std::set<std::string> seen_;
    std::vector<jit::header> found_;
    std::size_t next_ = 0;
    std::uint64_t bytes_ = 0;
};

} // namespace

std::optional<std::vector<std::string>> included_names(std::string_view text)
{
    std::vector<std::string> names;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_digraph = text[i] == '%' && i + 1 < text.size() && text[i + 1] == ':';
        if ((text[i] == '#' || is_digraph) && !scan_directive(text.substr(i + (is_digraph ? 2 : 1)), names))
            return std::nullopt;
        constexpr std::string_view query = "__has_include";
        if (text[i] == '_' && text.substr(i).starts_with(query)) {
            auto rest = text.substr(i + query.size());
            rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of("_next (\t")));
            if (const auto name = quoted_name(rest); !name.empty())
                names.emplace_back(name);
        }
    }
    return names;
}

std::optional<std::vector<jit::header>> reachable_files(std::string_view source,
                                                        const std::vector<jit::header>& in_memory,
                                                        const std::vector<std::string>& folders)
{
    scanner s(folders);
    if (!s.scan(source, {}))
        return std::nullopt;
    for (const auto& h : in_memory)
        if (!s.scan(h.text, fs::path(h.name).parent_path()))
            return std::nullopt;
    if (!s.scan_found())
        return std::nullopt;
    return s.take();
}

} // namespace coaccel::cuda
