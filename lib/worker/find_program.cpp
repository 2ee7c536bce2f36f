#include "worker/find_program.hpp"

#include "worker/trusted_file.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
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

// The directory of the shared library this code is in, or else of the program.
std::string own_directory()
{
    static const char anchor = 0;
    Dl_info info{};
    link_map* map = nullptr;
    std::error_code ignored;
    // The program itself has no name in the list of loaded objects; what dladdr tells is its argv[0], which may lie.
    if (::dladdr1(&anchor, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 && map && map->l_name &&
        map->l_name[0] == '/') {
        const auto file = fs::canonical(map->l_name, ignored);
        return (ignored ? fs::path(map->l_name) : file).parent_path().string();
    }
    return fs::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

} // namespace

std::vector<std::string> program_places(const std::string& directory, const std::vector<std::string>& configured)
{
    // The last ones are those of build trees; the pairs with two steps up are for libraries in lib/<architecture>/.
    static constexpr const char* folders[] = {
        ".",      "../libexec/coaccel", "../bin",      "../lib/coaccel", "../../libexec/coaccel", "../../bin",
        "../lib", "../../lib",          "../../../lib"};
    std::vector<std::string> places;
    for (const auto* folder : folders)
        places.push_back((fs::path(directory) / folder / program_name).lexically_normal().string());
    // A program that is linked statically may be anywhere. Last, because one that was installed elsewhere has this path
    // in it too.
    for (const auto& folder : configured)
        places.push_back((fs::path(folder) / program_name).string());
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
    // A program with more rights than its user must not run what the user names.
    if (const auto* variable = ::secure_getenv("COACCEL_WORKER"); variable && *variable)
        return named_program{absolute(variable), "named by COACCEL_WORKER"};
    return std::nullopt;
}

result<std::string> find_program(const std::optional<named_program>& named)
{
    const auto whom = trust::of_process(detail::rights_of_process());
    if (named) {
        auto checked = check_file(named->file, whom);
        if (checked.why.empty())
            return std::move(checked.path);
        return note_error(errc::worker_missing,
                          "the worker program " + named->file + " (" + named->named_by + "): " + checked.why);
    }
    std::string message = "no worker program that can be run: neither worker.program nor COACCEL_WORKER names one, nor "
                          "is there one in any of the usual places:";
    for (const auto& place : program_places(own_directory(), configured_folders())) {
        auto checked = check_file(place, whom);
        if (checked.why.empty())
            return std::move(checked.path);
        message += "\n  " + place + ": " + checked.why;
    }
    return note_error(errc::worker_missing, std::move(message));
}

} // namespace coaccel::worker
