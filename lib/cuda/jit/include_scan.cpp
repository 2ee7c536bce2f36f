#include "cuda/jit/include_scan.hpp"

#include "cuda/jit/include_names.hpp"
#include "posix/file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <utility>

namespace coaccel::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_files = 4096;
constexpr std::uint64_t max_bytes = std::uint64_t(64) << 20;

enum class presence : std::uint8_t { absent, readable, unreadable };

// The compiler skips folders as well.
presence look_at(const std::string& path, std::uint64_t limit)
{
    struct stat s = {};
    if (::stat(path.c_str(), &s) != 0)
        return errno == ENOENT || errno == ENOTDIR ? presence::absent : presence::unreadable;
    if (S_ISDIR(s.st_mode))
        return presence::absent;
    const bool fits = s.st_size >= 0 && static_cast<std::uint64_t>(s.st_size) <= limit;
    return S_ISREG(s.st_mode) && fits ? presence::readable : presence::unreadable;
}

std::optional<std::string> read_file(const std::string& path, std::uint64_t limit)
{
    // O_NONBLOCK: the file may have been replaced by a pipe, and opening that would block.
    const detail::unique_fd f(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    return f ? detail::read_all(f, limit) : std::nullopt;
}

class scanner {
public:
    explicit scanner(const std::vector<std::string>& folders) : folders_(folders) {}

    /// Returns false if the included names cannot be determined.
    bool scan(std::string_view text, const fs::path& own_folder)
    {
        const auto names = included_names(text);
        if (!names)
            return false;
        for (const auto& name : *names) {
            if (!own_folder.empty() && !add(own_folder / name))
                return false;
            for (const auto& folder : folders_)
                if (!add(fs::path(folder) / name))
                    return false;
        }
        return true;
    }

    bool scan_found()
    {
        for (; next_ < found_.size(); ++next_) {
            const std::string text = found_[next_].text;
            if (!scan(text, fs::path(found_[next_].name).parent_path()))
                return false;
        }
        return true;
    }

    std::vector<jit::header> take() { return std::move(found_); }

private:
    /// Returns false for a file that exists but cannot be read or exceeds the limits.
    bool add(const fs::path& path)
    {
        auto name = path.lexically_normal().string();
        if (!seen_.insert(name).second)
            return true;
        const auto left = max_bytes - bytes_;
        const auto what = look_at(path.string(), left);
        if (what == presence::absent)
            return true;
        if (what == presence::unreadable || found_.size() == max_files)
            return false;
        auto text = read_file(path.string(), left);
        if (!text)
            return false;
        bytes_ += text->size();
        found_.push_back({std::move(name), std::move(*text)});
        return true;
    }

    const std::vector<std::string>& folders_;
    std::set<std::string> seen_;
    std::vector<jit::header> found_;
    std::size_t next_ = 0;
    std::uint64_t bytes_ = 0;
};

} // namespace

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
