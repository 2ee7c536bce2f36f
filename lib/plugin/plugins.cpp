#include "plugin/plugins.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <dlfcn.h>
#include <mutex>
#include <string_view>
#include <vector>

namespace coaccel::plugin {
namespace {

constexpr const char* entry_symbol = "coaccel_plugin_v1";

struct entry {
    loaded_function function;
    std::string file;
};

struct registry {
    std::mutex mutex;
    std::vector<void*> handles;
    boost::unordered_flat_map<std::string_view, entry> functions;
};

// Never destroyed: ops may still run during static destruction.
registry& instance()
{
    static registry& r = *new registry;
    return r;
}

error_code refuse(const std::string& file, const std::string& why)
{
    return make_error_with_message(errc::plugin_missing, "plug-in " + file + ": " + why);
}

/// The loader's message about `file`, without the name of the file at its beginning.
std::string last_error(const std::string& file)
{
    const char* const told = ::dlerror();
    const std::string_view text = told ? told : "cannot be loaded";
    const std::string name = file + ": ";
    return std::string(text.starts_with(name) ? text.substr(name.size()) : text);
}

bool is_sound(const function& f) noexcept
{
    return f.name && *f.name && f.target && f.call && f.parameter_count <= max_parameters &&
           (f.parameters || f.parameter_count == 0);
}

bool is_supported(const table& t) noexcept
{
    return t.version >= oldest_interface_version && t.version <= interface_version;
}

/// In a table of version 1 a function ends before its version.
std::uint32_t version_of(const table& t, const function& f) noexcept
{
    return t.version < 2 ? 1 : f.version;
}

/// Adds all functions or none.
error_code add(registry& r, const table& t, const std::string& file)
{
    std::vector<const function*> fresh;
    for (const function* f = t.first; f; f = f->next) {
        if (!is_sound(*f) || version_of(t, *f) == 0)
            return refuse(file, "its table makes no sense");
        const auto same = [f](const function* other) { return std::string_view(other->name) == f->name; };
        if (std::ranges::any_of(fresh, same))
            return refuse(file, std::string("it has two functions named ") + f->name);
        if (const auto known = r.functions.find(f->name); known != r.functions.end())
            return refuse(file, std::string("a function named ") + f->name + " is in " + known->second.file + " too");
        fresh.push_back(f);
    }
    for (const function* f : fresh)
        r.functions.emplace(f->name, entry{{f, version_of(t, *f)}, file});
    return {};
}

} // namespace

error_code load(const std::string& file)
{
    // Not under the lock: dlopen runs the plug-in's code, and calls would have to wait for it.
    void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return refuse(file, last_error(file));
    const auto tell = reinterpret_cast<const table* (*)()>(::dlsym(handle, entry_symbol));
    const table* told = tell ? tell() : nullptr;
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    if (std::ranges::find(r.handles, handle) != r.handles.end())
        return {};
    error_code ec;
    if (!tell)
        ec = refuse(file, std::string("it has no ") + entry_symbol + "; a plug-in uses COACCEL_PLUGIN_FUNCTION");
    else if (!told || !is_supported(*told))
        ec = refuse(file, "it is for another version of the interface");
    else
        ec = add(r, *told, file);
    if (ec)
        ::dlclose(handle);
    else
        r.handles.push_back(handle);
    return ec;
}

loaded_function find(std::string_view name) noexcept
{
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    const auto found = r.functions.find(name);
    return found == r.functions.end() ? loaded_function{} : found->second.function;
}

bool any_loaded() noexcept
{
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    return !r.handles.empty();
}

} // namespace coaccel::plugin
