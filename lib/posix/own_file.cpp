#include "posix/own_file.hpp"

#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <system_error>

namespace coaccel::detail {

namespace fs = std::filesystem;

std::string program_file()
{
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).string();
}

std::string own_file()
{
    static const char anchor = 0;
    Dl_info info{};
    link_map* map = nullptr;
    // The program itself has no name in the list of loaded objects; dladdr reports its argv[0], which may be wrong.
    if (::dladdr1(&anchor, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map || !map->l_name ||
        map->l_name[0] != '/')
        return program_file();
    std::error_code failed;
    const auto file = fs::canonical(map->l_name, failed);
    return failed ? map->l_name : file.string();
}

} // namespace coaccel::detail
