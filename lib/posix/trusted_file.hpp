#ifndef COACCEL_POSIX_TRUSTED_FILE_HPP
#define COACCEL_POSIX_TRUSTED_FILE_HPP

#include "posix/environment.hpp"

#include <coaccel/core/config.hpp>

#include <string>
#include <sys/types.h>
#include <vector>

namespace coaccel::detail {

/// The users whose files a process may run.
struct trust {
    /// These users may own the program and the folders on the path to it.
    std::vector<::uid_t> owners;
    /// Whether the group of a file may write to it if its gid equals the owner's uid, as in private groups of users.
    bool private_groups = true;
    /// These groups may write to the program and the folders on the path to it.
    std::vector<::gid_t> groups{};
    /// All users may write to them.
    bool everybody = false;

    /// Adds the users and groups that can replace `file`: the owners of it and of its parent folders, and the users and
    /// groups with write permission. `file` is absolute and contains no symbolic links.
    COACCEL_DECL void add_writers_of(const std::string& file);

    /// The trust of this process: root and the effective user. Without elevated rights also the users and groups that
    /// can replace the running program or the shared library that contains this code: they can already make this
    /// process run any code, and gain nothing by replacing the worker program.
    COACCEL_DECL static trust of_process(rights with);
};

struct checked_file {
    /// Absolute and without symbolic links. Only trusted users can change the file there.
    std::string path;
    /// Why the file is refused, with the path that is the cause; empty if it is accepted.
    std::string why;
};

/// Follows an absolute path to a regular executable file, and refuses it if a user that is not trusted could replace
/// it: by writing to the file, to a folder on the path to it or to a symbolic link, or as the owner of one of them. A
/// folder that all users may write to is accepted if it has the sticky bit, like /tmp.
COACCEL_DECL checked_file check_file(const std::string& file, const trust& whom);

} // namespace coaccel::detail

#endif
