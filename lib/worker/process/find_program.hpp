#ifndef COACCEL_WORKER_PROCESS_FIND_PROGRAM_HPP
#define COACCEL_WORKER_PROCESS_FIND_PROGRAM_HPP

#include <coaccel/core/result.hpp>

#include <optional>
#include <string>
#include <vector>

namespace coaccel::worker {

/// Where the worker program may be when this library, or the program that contains it, is in `directory`; best first.
/// The `configured` folders come after the installed places and before the guesses for build trees.
COACCEL_DECL std::vector<std::string> program_places(const std::string& directory,
                                                     const std::vector<std::string>& configured);

/// The folder in which this build of coaccel was configured to be installed, if any, and the folder in which it was
/// built.
COACCEL_DECL std::vector<std::string> configured_folders();

/// A program named by the options or the environment.
struct named_program {
    /// Absolute, so that a change of the current directory does not affect it.
    std::string file;
    /// The source of the name, for error messages.
    const char* named_by = "";
};

/// `option`, else the value of COACCEL_WORKER, else nothing.
COACCEL_DECL std::optional<named_program> name_program(const char* option);

/// The worker program: the named one, else the one that was installed or built with this library.
/// The path contains no symbolic links, and only the users that trust::of_process() names can replace the file.
/// errc::worker_missing, with the places searched and the problem of each, if there is no program that can be run and
/// that other users cannot change.
COACCEL_DECL result<std::string> find_program(const std::optional<named_program>& named);

inline result<std::string> find_program(const char* option)
{
    return find_program(name_program(option));
}

} // namespace coaccel::worker

#endif
