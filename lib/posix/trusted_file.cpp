#include "posix/trusted_file.hpp"

#include "posix/own_file.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace coaccel::detail {
namespace {

namespace fs = std::filesystem;

// The kernel's limit.
constexpr int most_links = 40;

std::string system_reason(int code)
{
    return std::generic_category().message(code);
}

template <class Id>
bool has(const std::vector<Id>& ids, Id wanted)
{
    return std::ranges::find(ids, wanted) != ids.end();
}

/// Whether the permission bits determine which users besides the owner can change the file. The bits of a link have no
/// meaning. In a sticky folder users can neither remove nor rename files of others.
bool has_writers(const struct stat& found)
{
    return !S_ISLNK(found.st_mode) && !(S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0);
}

/// Returns an empty string if only trusted users can change the file at this path.
std::string fault_of(const std::string& path, const struct stat& found, const trust& whom)
{
    if (whom.everybody)
        return {};
    if (!has(whom.owners, found.st_uid))
        return path + " belongs to another user (" + std::to_string(found.st_uid) + ")";
    if (!has_writers(found))
        return {};
    if ((found.st_mode & S_IWOTH) != 0)
        return path + " can be written by everybody";
    const bool private_group = whom.private_groups && found.st_gid == found.st_uid;
    if ((found.st_mode & S_IWGRP) != 0 && !private_group && !has(whom.groups, found.st_gid))
        return path + " can be written by its group (" + std::to_string(found.st_gid) + ")";
    return {};
}

void put_first(std::deque<std::string>& names, const fs::path& path)
{
    std::vector<std::string> parts;
    for (const auto& part : path.relative_path())
        if (!part.empty() && part != ".")
            parts.push_back(part.string());
    names.insert(names.begin(), parts.begin(), parts.end());
}

} // namespace

void trust::add_writers_of(const std::string& file)
{
    if (file.empty())
        return;
    struct stat found{};
    for (fs::path at = file;; at = at.parent_path()) {
        if (::stat(at.c_str(), &found) == 0) {
            owners.push_back(found.st_uid);
            if (has_writers(found) && (found.st_mode & S_IWGRP) != 0)
                groups.push_back(found.st_gid);
            if (has_writers(found) && (found.st_mode & S_IWOTH) != 0)
                everybody = true;
        }
        if (!at.has_relative_path())
            return;
    }
}

trust trust::of_process(rights with)
{
    trust whom{.owners = {0, ::geteuid()}, .private_groups = with == rights::same};
    if (with == rights::elevated)
        return whom;
    whom.add_writers_of(program_file());
    whom.add_writers_of(own_file());
    return whom;
}

checked_file check_file(const std::string& file, const trust& whom)
{
    std::deque<std::string> names;
    if (file.empty())
        return {{}, system_reason(ENOENT)};
    put_first(names, file);
    fs::path at = "/";
    struct stat found{};
    if (::lstat("/", &found) != 0)
        return {{}, "/: " + system_reason(errno)};
    int links = 0;
    for (;;) {
        if (auto why = fault_of(at.string(), found, whom); !why.empty())
            return {{}, why};
        if (names.empty())
            break;
        const auto name = names.front();
        names.pop_front();
        const auto next = name == ".." ? at.parent_path() : at / name;
        if (!S_ISDIR(found.st_mode))
            return {{}, system_reason(ENOTDIR)};
        if (::lstat(next.c_str(), &found) != 0)
            return {{}, system_reason(errno)};
        if (!S_ISLNK(found.st_mode)) {
            at = next;
            continue;
        }
        if (auto why = fault_of(next.string(), found, whom); !why.empty())
            return {{}, why};
        std::error_code failed;
        const auto target = fs::read_symlink(next, failed);
        if (failed || ++links > most_links)
            return {{}, failed ? failed.message() : system_reason(ELOOP)};
        put_first(names, target);
        if (target.is_absolute())
            at = "/";
        if (::lstat(at.c_str(), &found) != 0)
            return {{}, system_reason(errno)};
    }
    if (!S_ISREG(found.st_mode))
        return {{}, "not a regular file"};
    // With the effective user, as execve() does.
    if (::faccessat(AT_FDCWD, at.c_str(), X_OK, AT_EACCESS) != 0)
        return {{}, system_reason(errno)};
    return {at.string(), {}};
}

} // namespace coaccel::detail
