#ifndef COACCEL_WORKER_FIND_PROGRAM_HPP
#define COACCEL_WORKER_FIND_PROGRAM_HPP

#include <coaccel/core/result.hpp>

#include <optional>
#include <string>
#include <vector>

namespace coaccel::worker {

/// Where the worker program may be when this library, or the program it is part of, is in `directory`; best first. The
/// last are the `configured` folders.
COACCEL_DECL std::vector<std::string> program_places(const std::string& directory,
                                                     const std::vector<std::string>& configured);

/// Where this build of coaccel was configured to be installed, if it was, and where it was built.
COACCEL_DECL std::vector<std::string> configured_folders();

/// A program that somebody asked for.
struct named_program {
    /// Absolute, so that it stays the same wherever the process goes.
    std::string file;
    /// Who asked for it, for error messages.
    const char* named_by = "";
};

/// `option`, else what COACCEL_WORKER names, else nothing.
COACCEL_DECL std::optional<named_program> name_program(const char* option);

/// The worker program: the named one, else the one that was installed or built with this library.
/// The path has no symbolic links in it, and nobody can put another file there that trust::of_process() does not name.
/// errc::worker_missing, with the places looked at and what is wrong with each, when there is none that can be run or
/// that others cannot change.
COACCEL_DECL result<std::string> find_program(const std::optional<named_program>& named);

inline result<std::string> find_program(const char* option)
{
    return find_program(name_program(option));
}

} // namespace coaccel::worker

#endif
