#include "worker/process/find_program.hpp"

#include "posix/own_file.hpp"
#include "posix/trusted_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

namespace coaccel::worker {
namespace {

namespace fs = std::filesystem;

constexpr const char* program_name = "coaccel-worker";

std::string absolute(const char* file)
{
    std::error_code failed;
    const auto whole = fs::absolute(file, failed);
    return failed ? file : whole.string();
}

} // namespace

std::vector<std::string> program_places(const std::string& directory, const std::vector<std::string>& configured)
{
    // The entries with two steps up are for libraries in lib/<architecture>/.
    static constexpr const char* installed[] = {
        ".", "../libexec/coaccel", "../bin", "../lib/coaccel", "../../libexec/coaccel", "../../bin"};
    static constexpr const char* built[] = {"../lib", "../../lib", "../../../lib"};
    std::vector<std::string> places;
    const auto add = [&](const char* folder) {
        places.push_back((fs::path(directory) / folder / program_name).lexically_normal().string());
    };
    std::ranges::for_each(installed, add);
    // A statically linked program may be anywhere. After the installed places, because a program that was installed
    // elsewhere contains these paths too.
    for (const auto& folder : configured)
        places.push_back((fs::path(folder) / program_name).string());
    // Guesses, tried last: in a build tree inside another build tree they would find the worker of the outer one.
    std::ranges::for_each(built, add);
    return places;
}

std::vector<std::string> configured_folders()
{
    return {
#ifdef COACCEL_WORKER_FOLDER
        COACCEL_WORKER_FOLDER,
#endif
#ifdef COACCEL_WORKER_BUILD_FOLDER
        COACCEL_WORKER_BUILD_FOLDER,
#endif
    };
}

std::optional<named_program> name_program(const char* option)
{
    if (option)
        return named_program{absolute(option), "named by the options"};
    // A program with more rights than its user must not run a file that the user names.
    if (const auto* variable = ::secure_getenv("COACCEL_WORKER"); variable && *variable)
        return named_program{absolute(variable), "named by COACCEL_WORKER"};
    return std::nullopt;
}

result<std::string> find_program(const std::optional<named_program>& named)
{
    const auto whom = detail::trust::of_process(detail::rights_of_process());
    if (named) {
        auto checked = detail::check_file(named->file, whom);
        if (checked.why.empty())
            return std::move(checked.path);
        return make_error_with_message(errc::worker_missing, "the worker program " + named->file + " (" +
                                                                 named->named_by + "): " + checked.why);
    }
    // A program that exists but was refused is the most likely cause, so it is reported first.
    std::string refused, absent;
    for (const auto& place :
         program_places(fs::path(detail::own_file()).parent_path().string(), configured_folders())) {
        auto checked = detail::check_file(place, whom);
        if (checked.why.empty())
            return std::move(checked.path);
        std::error_code ignored;
        (fs::exists(place, ignored) ? refused : absent) += "; " + place + ": " + checked.why;
    }
    return make_error_with_message(errc::worker_missing,
                                   "no worker program that can be run: neither worker.program nor "
                                   "COACCEL_WORKER names one, nor is there one in any of the usual places: " +
                                       (refused + absent).substr(2));
}

} // namespace coaccel::worker
