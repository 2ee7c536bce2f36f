#include "posix/environment.hpp"

#include <mutex>
#include <string_view>
#include <sys/auxv.h>
#include <unistd.h>
#include <utility>

namespace coaccel::detail {
namespace {

struct latest_copy {
    std::mutex mutex;
    std::shared_ptr<const environment> copy;
};

latest_copy& latest()
{
    // Never destroyed: threads of the library may outlive main().
    static auto* const kept = new latest_copy;
    return *kept;
}

// These variables only choose among the GPUs that the user can use anyway.
bool names_no_file(std::string_view variable)
{
    return variable.starts_with("CUDA_VISIBLE_DEVICES=") || variable.starts_with("CUDA_DEVICE_ORDER=");
}

} // namespace

rights rights_of_process() noexcept
{
    return ::getauxval(AT_SECURE) != 0 ? rights::elevated : rights::same;
}

environment copy_variables(const char* const* variables, rights with)
{
    environment copy;
    for (; variables && *variables; ++variables)
        if (with == rights::same || names_no_file(*variables))
            copy.emplace_back(*variables);
    return copy;
}

std::shared_ptr<const environment> copy_environment()
{
    auto copy = std::make_shared<const environment>(copy_variables(environ, rights_of_process()));
    auto& l = latest();
    const std::scoped_lock lock(l.mutex);
    l.copy = copy;
    return copy;
}

std::string environment_value(const char* name)
{
    std::shared_ptr<const environment> copy;
    {
        auto& l = latest();
        const std::scoped_lock lock(l.mutex);
        copy = l.copy;
    }
    if (!copy)
        copy = copy_environment();
    const std::string_view wanted(name);
    for (const std::string_view entry : *copy)
        if (entry.size() > wanted.size() && entry.starts_with(wanted) && entry[wanted.size()] == '=')
            return std::string(entry.substr(wanted.size() + 1));
    return {};
}

} // namespace coaccel::detail
