#include "cuda/loader/library_search.hpp"

#include "posix/environment.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace coaccel::cuda {
namespace {

using strings = std::vector<std::string>;

bool is_decimal_digit(char c) noexcept
{
    return c >= '0' && c <= '9';
}

// Compares runs of digits as numbers, so that python3.13 is newer than python3.9.
bool is_newer(std::string_view a, std::string_view b) noexcept
{
    const auto run = [](std::string_view& text) {
        const auto end = std::find_if_not(text.begin(), text.end(), is_decimal_digit);
        std::string_view digits(text.data(), static_cast<std::size_t>(end - text.begin()));
        text.remove_prefix(digits.size());
        digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
        return digits;
    };
    while (!a.empty() && !b.empty()) {
        if (is_decimal_digit(a.front()) && is_decimal_digit(b.front())) {
            const auto x = run(a), y = run(b);
            if (x != y)
                return x.size() != y.size() ? x.size() > y.size() : x > y;
        } else if (a.front() != b.front()) {
            return a.front() > b.front();
        } else {
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
    }
    return a.size() > b.size();
}

strings matching(const search_world& world, const std::string& folder, std::string_view prefix)
{
    strings found = world.names(folder);
    std::erase_if(found, [&](const std::string& name) { return !std::string_view(name).starts_with(prefix); });
    std::sort(found.begin(), found.end(), is_newer);
    for (std::string& name : found)
        name = folder + '/' + name;
    return found;
}

void append(strings& to, const strings& more)
{
    to.insert(to.end(), more.begin(), more.end());
}

void append_value(strings& to, const search_world& world, const char* variable, std::string_view below = "")
{
    std::string value = world.variable(variable);
    while (value.size() > 1 && value.back() == '/')
        value.pop_back();
    if (!value.empty())
        to.push_back(value.append(below));
}

strings toolkit_folders(const search_world& world)
{
    strings toolkits;
    append_value(toolkits, world, "CUDA_HOME");
    append_value(toolkits, world, "CUDA_PATH");
    toolkits.push_back("/usr/local/cuda");
    append(toolkits, matching(world, "/usr/local", "cuda-"));

    strings folders;
    for (const std::string& toolkit : toolkits) {
        append(folders, {toolkit + "/lib64", toolkit + "/lib"});
        for (const std::string& target : matching(world, toolkit + "/targets", ""))
            folders.push_back(target + "/lib");
    }
    return folders;
}

strings wheel_folders(const char* own, const search_world& world)
{
    strings prefixes;
    append_value(prefixes, world, "VIRTUAL_ENV");
    append_value(prefixes, world, "CONDA_PREFIX");
    append_value(prefixes, world, "HOME", "/.local");
    append(prefixes, {"/usr/local", "/usr"});

    strings folders;
    for (const std::string& prefix : prefixes)
        for (const std::string& python : matching(world, prefix + "/lib", "python3"))
            for (const char* packages : {"/site-packages/nvidia/", "/dist-packages/nvidia/"})
                // The wheels of CUDA 13 share one folder.
                for (const char* wheel : {own, "cu13", "cu12"})
                    folders.push_back(python + packages + wheel + "/lib");
    return folders;
}

} // namespace

search_plan plan_search(const vendor_library_info& library, const std::string& chosen, const search_world& world)
{
    if (!chosen.empty())
        return {{chosen}, {}};
    if (std::string named = world.variable(variable_of(library.id).c_str()); !named.empty())
        return {{std::move(named)}, {}};

    search_plan plan;
    plan.candidates.assign(library.sonames.begin(), library.sonames.end());
    if (!library.wheel)
        return plan;

    strings folders = toolkit_folders(world);
    append(folders, wheel_folders(library.wheel, world));
    for (std::string& folder : folders) {
        if (std::find(plan.folders.begin(), plan.folders.end(), folder) != plan.folders.end() || !world.exists(folder))
            continue;
        for (const char* soname : library.sonames)
            if (std::string file = folder + '/' + soname; world.exists(file))
                plan.candidates.push_back(std::move(file));
        plan.folders.push_back(std::move(folder));
    }
    return plan;
}

search_world search_world::real()
{
    namespace fs = std::filesystem;
    search_world world;
    world.variable = &detail::environment_value;
    world.names = [](const std::string& folder) {
        strings names;
        std::error_code ec;
        for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec))
            names.push_back(at->path().filename().string());
        return names;
    };
    world.exists = [](const std::string& file) {
        std::error_code ec;
        return fs::exists(file, ec);
    };
    return world;
}

} // namespace coaccel::cuda
