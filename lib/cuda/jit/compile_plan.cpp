#include "cuda/jit/compile_plan.hpp"

#include "cuda/jit/include_scan.hpp"
#include "cuda/jit/pieces.hpp"
#include "cuda/jit/toolkit_headers.hpp"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>

namespace coaccel::cuda {
namespace {

constexpr std::string_view key_format = "coaccel jit key 1";

// NVRTC trims each option and the value after "-I" in the same way.
std::string_view trim(std::string_view text)
{
    while (text.starts_with(' '))
        text.remove_prefix(1);
    while (text.ends_with(' '))
        text.remove_suffix(1);
    return text;
}

/// The values of options with these names, as in "-I x", "-Ix", "--include-path=x".
std::vector<std::string> values_of(const std::vector<std::string>& options,
                                   std::initializer_list<std::string_view> names, std::string_view glued = {})
{
    std::vector<std::string> values;
    for (std::size_t i = 0; i < options.size(); ++i) {
        const std::string_view o = trim(options[i]);
        const bool is_last = i + 1 == options.size();
        for (const auto name : names) {
            if (o == name && !is_last)
                values.emplace_back(trim(options[i + 1]));
            else if (o.starts_with(name) && o.substr(name.size()).starts_with('='))
                values.emplace_back(o.substr(name.size() + 1));
        }
        if (!glued.empty() && o.starts_with(glued) && o.size() > glued.size() && o[glued.size()] != '=')
            values.emplace_back(trim(o.substr(glued.size())));
    }
    return values;
}

bool uses_precompiled_header(const std::vector<std::string>& options)
{
    return std::ranges::any_of(options, [](std::string_view o) {
        o = trim(o);
        if (!o.starts_with('-'))
            return false;
        o.remove_prefix(std::min(o.size(), o.find_first_not_of('-')));
        return o.starts_with("pch") || o.starts_with("use-pch") || o.starts_with("create-pch");
    });
}

bool is_folder(const std::string& path)
{
    std::error_code failed;
    return std::filesystem::is_directory(path, failed);
}

constexpr int first_with_cache = 12090;

result<std::string> choose_architecture(int wanted, const std::vector<int>& supported)
{
    const auto name = [](const char* prefix, int a) { return prefix + std::to_string(a); };
    if (supported.empty())
        return name(wanted == 0 ? "compute_" : "sm_", wanted == 0 ? 75 : wanted);
    if (wanted == 0)
        return name("compute_", *std::ranges::min_element(supported));
    if (std::ranges::find(supported, wanted) != supported.end())
        return name("sm_", wanted);
    int best = 0;
    for (const int a : supported)
        if (a < wanted)
            best = std::max(best, a);
    if (best == 0)
        return make_error_with_message(errc::invalid_argument, "NVRTC does not support architecture " +
                                                                   std::to_string(wanted) + ", nor an older one");
    return name("compute_", best);
}

} // namespace

result<compile_plan> plan_compilation(const jit::compile_options& options, int architecture,
                                      const compiler_facts& nvrtc)
{
    compile_plan plan;
    const auto& given = options.options();
    const auto given_architecture = values_of(given, {"--gpu-architecture", "-arch"});
    std::string chosen;
    if (given_architecture.empty()) {
        BOOST_OUTCOME_TRY(chosen, choose_architecture(architecture, nvrtc.architectures));
        plan.options.push_back("--gpu-architecture=" + chosen);
    } else {
        chosen = given_architecture.back();
    }
    plan.kind = chosen.starts_with("sm_") ? code_kind::cubin : code_kind::ptx;
    if (values_of(given, {"--std", "-std"}).empty())
        plan.options.emplace_back("--std=c++17");
    // NVRTC's own cache would duplicate ours. NVRTC also initialises the driver for it, which a process whose devices
    // are all isolated otherwise never does.
    if (nvrtc.version >= first_with_cache)
        plan.options.emplace_back("--no-cache");
    plan.options.insert(plan.options.end(), given.begin(), given.end());

    plan.folders = options.include_folders();
    for (const auto& folder : plan.folders)
        plan.options.push_back("--include-path=" + folder);
    const auto more = values_of(given, {"--include-path", "-I"}, "-I");
    plan.folders.insert(plan.folders.end(), more.begin(), more.end());
    // NVRTC searches the folder of the source, which is the working directory of the process.
    plan.folders.emplace_back(".");

    const auto toolkit = find_toolkit_headers(nvrtc.path);
    // The many files of the toolkit itself are not scanned; its identity stands for them.
    std::erase_if(plan.folders, [&](const std::string& folder) {
        return std::ranges::any_of(toolkit.folders, [&](const std::string& t) {
            std::error_code failed;
            return std::filesystem::equivalent(folder, t, failed);
        });
    });
    for (const auto& folder : toolkit.folders)
        plan.options.push_back("--include-path=" + folder);
    plan.toolkit = toolkit.identity + " " + nvrtc.build;
    return plan;
}

std::optional<std::string> make_key(const std::string& source, const jit::compile_options& options,
                                    const compile_plan& plan, int nvrtc_version, int driver_version)
{
    // The contents of a precompiled header are unknown, and NVRTC may parse a path that is not a folder in another way.
    if (uses_precompiled_header(options.options()) || !std::ranges::all_of(plan.folders, is_folder))
        return std::nullopt;
    std::string text;
    for (const auto& file : values_of(options.options(), {"--pre-include", "-include"}))
        text += "#include \"" + file + "\"\n";
    text += source;
    const auto files = reachable_files(text, options.headers(), plan.folders);
    if (!files)
        return std::nullopt;

    std::string key;
    const auto add = [&key](std::string_view piece) { append_piece(key, piece); };
    const auto add_headers = [&](const std::vector<jit::header>& headers) {
        add(std::to_string(headers.size()));
        for (const auto& h : headers) {
            add(h.name);
            add(h.text);
        }
    };
    add(key_format);
    add(std::to_string(nvrtc_version));
    add(std::to_string(driver_version));
    add(plan.toolkit);
    add(options.name());
    add(std::to_string(plan.options.size()));
    for (const auto& o : plan.options)
        add(o);
    add_headers(options.headers());
    add_headers(*files);
    add(source);
    return key;
}

} // namespace coaccel::cuda
