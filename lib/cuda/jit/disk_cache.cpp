#include "cuda/jit/disk_cache.hpp"

#include "cuda/jit/pieces.hpp"
#include "posix/environment.hpp"
#include "posix/file.hpp"

#include <coaccel/core/op.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace coaccel::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "coaccel jit 1\n";
constexpr std::string_view suffix = ".kernel";
constexpr std::string_view temporary_suffix = ".part";
constexpr std::size_t name_digits = 32;
constexpr std::uint64_t max_file = std::uint64_t(512) << 20;
constexpr auto temporary_age = std::chrono::hours(1);

// Cached code is run without further checks, so ignore files that another user could have written.
bool is_ours(const struct stat& s) noexcept
{
    return S_ISREG(s.st_mode) && s.st_uid == ::geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0 && s.st_size >= 0 &&
           static_cast<std::uint64_t>(s.st_size) <= max_file;
}

std::optional<std::string> read_file(const std::string& path)
{
    const detail::unique_fd f(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat s = {};
    if (!f || ::fstat(f.get(), &s) != 0 || !is_ours(s))
        return std::nullopt;
    // Update the time of use: the least recently used files are removed first.
    (void)::futimens(f.get(), nullptr);
    return detail::read_all(f, max_file);
}

bool write_all(int descriptor, std::string_view text) noexcept
{
    while (!text.empty()) {
        const auto n = ::write(descriptor, text.data(), text.size());
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

bool make_private_folders(const fs::path& folder)
{
    fs::path so_far;
    for (const auto& part : folder) {
        so_far /= part;
        if (::mkdir(so_far.c_str(), 0700) != 0 && errno != EEXIST)
            return false;
    }
    std::error_code failed;
    return fs::is_directory(folder, failed);
}

// The time makes the name unique among machines that share the folder. O_EXCL detects a collision.
std::string temporary_name(const std::string& path)
{
    static std::atomic<unsigned> count{0};
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    return path + "." + std::to_string(::getpid()) + "." + std::to_string(count++) + "." + std::to_string(now) +
           std::string(temporary_suffix);
}

bool drop_suffix(std::string_view& name, std::string_view end) noexcept
{
    if (!name.ends_with(end))
        return false;
    name.remove_suffix(end.size());
    return true;
}

// Other programs may keep files in this folder too: remove only files with names made here.
bool is_entry(std::string_view name) noexcept
{
    return drop_suffix(name, suffix) && name.size() == name_digits &&
           name.find_first_not_of("0123456789abcdef") == name.npos;
}

// The name of an entry followed by three numbers.
bool is_temporary(std::string_view name) noexcept
{
    if (!drop_suffix(name, temporary_suffix))
        return false;
    for (int number = 0; number < 3; ++number) {
        const auto dot = name.rfind('.');
        if (dot == name.npos || dot + 1 == name.size() || name.find_first_not_of("0123456789", dot + 1) != name.npos)
            return false;
        name = name.substr(0, dot);
    }
    return is_entry(name);
}

std::string checksum(std::string_view text)
{
    const std::uint64_t sum = detail::hash(text);
    return std::string(reinterpret_cast<const char*>(&sum), sizeof(sum));
}

} // namespace

std::string disk_cache::default_folder()
{
    if (auto folder = detail::environment_value("COACCEL_CACHE_DIR"); !folder.empty())
        return folder;
    if (auto folder = detail::environment_value("XDG_CACHE_HOME"); folder.starts_with('/'))
        return folder + "/coaccel/jit";
    if (auto folder = detail::environment_value("HOME"); folder.starts_with('/'))
        return folder + "/.cache/coaccel/jit";
    return {};
}

std::string disk_cache::file_of(const std::string& key) const
{
    char name[name_digits + 1];
    (void)std::snprintf(name, sizeof(name), "%016llx%016llx", static_cast<unsigned long long>(detail::hash(key)),
                        static_cast<unsigned long long>(detail::hash(key, key.size())));
    return folder_ + "/" + name + std::string(suffix);
}

std::optional<jit::compiled_code> disk_cache::find(const std::string& key) const
{
    if (folder_.empty())
        return std::nullopt;
    const auto text = read_file(file_of(key));
    if (!text)
        return std::nullopt;
    std::string_view rest = *text;
    if (!rest.starts_with(magic))
        return std::nullopt;
    rest.remove_prefix(magic.size());
    const auto sum = take_piece(rest);
    if (!sum || *sum != checksum(rest))
        return std::nullopt;
    const auto its_key = take_piece(rest);
    const auto symbol = take_piece(rest);
    const auto log = take_piece(rest);
    const auto code = take_piece(rest);
    if (!its_key || !symbol || !log || !code || !rest.empty() || *its_key != key || symbol->empty() || code->empty())
        return std::nullopt;
    return jit::compiled_code{std::string(*symbol), std::string(*code), std::string(*log), true};
}

bool disk_cache::store(const std::string& key, const jit::compiled_code& code) const
{
    std::string body;
    for (const std::string_view piece : {std::string_view(key), std::string_view(code.symbol),
                                         std::string_view(code.log), std::string_view(code.code)})
        append_piece(body, piece);
    std::string head(magic);
    append_piece(head, checksum(body));
    const auto bytes = head.size() + body.size();
    if (folder_.empty() || bytes > limit_ || bytes > max_file || !make_private_folders(folder_))
        return false;
    make_room(bytes);

    const auto path = file_of(key);
    const auto temporary = temporary_name(path);
    detail::unique_fd f(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!f)
        return false;
    const bool written = write_all(f.get(), head) && write_all(f.get(), body);
    if (f.close() && written && ::rename(temporary.c_str(), path.c_str()) == 0)
        return true;
    (void)::unlink(temporary.c_str());
    return false;
}

void disk_cache::make_room(std::uint64_t bytes) const
{
    struct entry {
        fs::path path;
        std::uint64_t size;
        fs::file_time_type used;
    };
    std::vector<entry> entries;
    std::uint64_t total = bytes;
    std::error_code failed;
    const auto now = fs::file_time_type::clock::now();
    for (fs::directory_iterator i(folder_, failed), end; !failed && i != end; i.increment(failed)) {
        const auto name = i->path().filename().string();
        const bool temporary = is_temporary(name);
        // Errors of a single file: another process may be removing it.
        std::error_code gone;
        if ((!temporary && !is_entry(name)) || !i->is_regular_file(gone))
            continue;
        const auto size = i->file_size(gone);
        const auto used = gone ? now : i->last_write_time(gone);
        if (gone)
            continue;
        if (temporary && now - used > temporary_age)
            fs::remove(i->path(), gone);
        if (temporary)
            continue;
        entries.push_back({i->path(), size, used});
        total += size;
    }
    if (total <= limit_)
        return;
    std::ranges::sort(entries, {}, &entry::used);
    for (const auto& e : entries) {
        if (total <= limit_)
            break;
        std::error_code gone;
        fs::remove(e.path, gone);
        total -= e.size;
    }
}

} // namespace coaccel::cuda
