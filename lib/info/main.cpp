#include <coaccel/core/config.hpp>
#include <coaccel/device/system_info.hpp>

#include <cstdio>
#include <string_view>

namespace {

constexpr const char* usage = R"(usage: coaccel-info [--help | --version]

Says which devices and libraries coaccel finds on this machine, what is missing and what that disables.

The libraries are looked for in this order: the file named by the environment variable of the library
(COACCEL_LIBCUDA for libcuda, and so on), the loader's path, CUDA toolkits, Python wheels.
)";

} // namespace

int main(int argc, char** argv)
{
    const std::string_view option = argc > 1 ? argv[1] : "";
    if (argc > 2 || (argc == 2 && option != "--help" && option != "--version")) {
        std::fprintf(stderr, "coaccel-info: unexpected argument '%s'\n%s", argv[argc > 2 ? 2 : 1], usage);
        return 2;
    }
    if (option == "--help")
        std::fputs(usage, stdout);
    else if (option == "--version")
        std::puts("coaccel " COACCEL_VERSION_STRING);
    else
        std::fputs(coaccel::to_string(coaccel::inspect_system()).c_str(), stdout);
    return 0;
}
