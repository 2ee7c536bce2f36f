#include "worker/find_program.hpp"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace coaccel::worker {
namespace {

namespace fs = std::filesystem;

constexpr const char* program_name = "coaccel-worker";

// Empty when the file can be run.
std::string obstacle(const std::string& file)
{
    struct stat found;
    if (::stat(file.c_str(), &found) != 0)
        return std::generic_category().message(errno);
    if (!S_ISREG(found.st_mode))
        return "not a regular file";
    if (::access(file.c_str(), X_OK) != 0)
        return std::generic_category().message(errno);
    return {};
}

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

std::vector<std::string> program_places(const std::string& directory)
{
    // The last ones are those of build trees; the pairs with two steps up are for libraries in lib/<architecture>/.
    static constexpr const char* folders[] = {
        ".",      "../libexec/coaccel", "../bin",      "../lib/coaccel", "../../libexec/coaccel", "../../bin",
        "../lib", "../../lib",          "../../../lib"};
    std::vector<std::string> places;
#ifdef COACCEL_WORKER_BUILD_FOLDER
    // Before any that another build may have left.
    places.push_back((fs::path(COACCEL_WORKER_BUILD_FOLDER) / program_name).string());
#endif
    for (const auto* folder : folders)
        places.push_back((fs::path(directory) / folder / program_name).lexically_normal().string());
#ifdef COACCEL_WORKER_FOLDER
    // A program that is linked statically may be anywhere.
    places.push_back((fs::path(COACCEL_WORKER_FOLDER) / program_name).string());
#endif
    return places;
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
    if (named) {
        const auto why = obstacle(named->file);
        if (why.empty())
            return named->file;
        return note_error(errc::worker_missing,
                          "the worker program " + named->file + " (" + named->named_by + "): " + why);
    }
    std::string message = "no worker program that can be run: neither worker.program nor COACCEL_WORKER names one, nor "
                          "is there one in any of the usual places:";
    for (const auto& place : program_places(own_directory())) {
        const auto why = obstacle(place);
        if (why.empty())
            return place;
        message += "\n  " + place + ": " + why;
    }
    return note_error(errc::worker_missing, std::move(message));
}

} // namespace coaccel::worker
