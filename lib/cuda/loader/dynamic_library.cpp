#include "cuda/loader/dynamic_library.hpp"

#include "cuda/loader/library_search.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <link.h>
#include <string_view>
#include <utility>
#include <vector>

namespace coaccel::cuda {
namespace {

constexpr std::size_t most_listed = 8;
constexpr std::size_t most_reason = 160;

std::string last_reason(const std::string& candidate)
{
    const char* text = ::dlerror();
    std::string reason = text ? text : "no reason given";
    if (const std::string prefix = candidate + ": "; reason.starts_with(prefix))
        reason.erase(0, prefix.size());
    if (reason.size() > most_reason)
        reason.replace(most_reason, std::string::npos, "...");
    return reason;
}

std::string listed(const std::vector<std::string>& items)
{
    std::string text;
    const std::size_t shown = std::min(items.size(), most_listed);
    for (std::size_t i = 0; i < shown; ++i)
        text.append(i == 0 ? "" : ", ").append(items[i]);
    if (items.size() > shown)
        text.append(" and ").append(std::to_string(items.size() - shown)).append(" more");
    return text;
}

std::string path_of(void* handle, const std::string& otherwise)
{
    link_map* map = nullptr;
    if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name || !*map->l_name)
        return otherwise;
    return map->l_name;
}

} // namespace

result<dynamic_library> dynamic_library::open(const vendor_library_info& library)
{
    const search_plan plan = plan_search(library, chosen_path(library.id), search_world::real());
    std::vector<std::string> failures;
    for (const std::string& candidate : plan.candidates) {
        if (void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL))
            return dynamic_library(handle, path_of(handle, candidate));
        failures.push_back(candidate + " (" + last_reason(candidate) + ")");
    }

    std::string message(to_string(library.id));
    message.append(": tried ").append(listed(failures));
    if (!plan.folders.empty())
        message.append("; looked in ").append(listed(plan.folders));
    return make_error_with_message(errc::library_missing, std::move(message));
}

result<void*> dynamic_library::find(const char* symbol) const
{
    if (void* found = ::dlsym(handle_, symbol))
        return found;
    return make_error_with_message(errc::library_too_old, path_ + ": no symbol " + symbol);
}

} // namespace coaccel::cuda
