#include <coaccel/core/config.hpp>
#include <coaccel/device/system_info.hpp>
#include <coaccel/device/warm_kernels.hpp>

#include <cinttypes>
#include <cstdio>
#include <string_view>

namespace {

constexpr const char* usage = R"(usage: coaccel-info [-h | --help | --version | --warm]

Says which devices and libraries coaccel finds on this machine, what is missing and what that disables.

The libraries are looked for in this order: the file named by the environment variable of the library
(COACCEL_LIBCUDA for libcuda, and so on), the loader's path, CUDA toolkits, Python wheels.

--warm compiles all kernels of the library prim for the GPUs of this machine, so that no program waits for them later.
This takes minutes. The kernels are stored in the folder COACCEL_CACHE_DIR, or in coaccel/jit of the user's cache folder:
run it as the user who runs the programs. The exit status is 0 if all kernels are stored;
GPUs that NVRTC does not support are left out.
)";

int warm()
{
    const auto made = coaccel::warm_kernels([](std::uint64_t done, std::uint64_t total) {
        constexpr std::uint64_t each = 25;
        if (done % each == 0 || done == total) {
            std::printf("%" PRIu64 " of %" PRIu64 " kernels\n", done, total);
            std::fflush(stdout);
        }
    });
    if (made)
        return 0;
    std::fprintf(stderr, "coaccel-info: cannot compile the kernels of prim: %s\n", made.error().message().c_str());
    return 1;
}

} // namespace

int main(int argc, char** argv)
{
    const std::string_view option = argc > 1 ? argv[1] : "";
    if (argc > 2 ||
        (argc == 2 && option != "--help" && option != "-h" && option != "--version" && option != "--warm")) {
        std::fprintf(stderr, "coaccel-info: unexpected argument '%s'\n%s", argv[argc > 2 ? 2 : 1], usage);
        return 2;
    }
    if (option == "--warm")
        return warm();
    if (option == "--help" || option == "-h")
        std::fputs(usage, stdout);
    else if (option == "--version")
        std::puts("coaccel " COACCEL_VERSION_STRING);
    else
        std::fputs(coaccel::to_string(coaccel::inspect_system()).c_str(), stdout);
    return 0;
}
