#ifndef COACCEL_WORKER_TRUSTED_FILE_HPP
#define COACCEL_WORKER_TRUSTED_FILE_HPP

#include "core/environment.hpp"

#include <coaccel/core/config.hpp>

#include <string>
#include <sys/types.h>
#include <vector>

namespace coaccel::worker {

/// Whose files a process may run.
struct trust {
    /// These users may own the program and the folders on the way to it.
    std::vector<::uid_t> owners;
    /// Whether the group of a file may write to it where it has the number of the owner, as the private groups of users
    /// have.
    bool private_groups = true;
    /// These groups may write to the program and the folders on the way to it.
    std::vector<::gid_t> groups{};
    /// Everybody may write to them.
    bool everybody = false;

    /// Adds the users and groups that can replace `file`: the owners of it and of the folders it is in, and those that
    /// these let write. `file` is absolute and has no symbolic links in it.
    COACCEL_DECL void add_writers_of(const std::string& file);

    /// That of this process: root and the effective user. With rights that are not elevated also the users and groups
    /// that can replace the running program or the shared library that contains this code: they can already make this
    /// process run any code, and gain nothing by replacing the worker program.
    COACCEL_DECL static trust of_process(detail::rights with);
};

struct checked_file {
    /// Absolute and without symbolic links. Nobody else can change what is there.
    std::string path;
    /// Why the file is refused, with the path that is the cause; empty: it is not.
    std::string why;
};

/// Follows an absolute path to a regular file that can be run, and refuses it when somebody that is not trusted could
/// put another file in its place: by writing to the file, to a folder on the way to it or on the way to a symbolic
/// link, or as the owner of one of them. A folder that anybody may write to is fine when it has the sticky bit, as /tmp
/// has.
COACCEL_DECL checked_file check_file(const std::string& file, const trust& whom);

} // namespace coaccel::worker

#endif
