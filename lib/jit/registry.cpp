#include "jit/registry.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

namespace coaccel::jit {
namespace {

struct registry {
    std::mutex mutex;
    std::uint64_t last_id = 0;
    std::uint64_t from_cache = 0;
    boost::unordered_flat_map<std::uint64_t, std::weak_ptr<const image>> images;
    std::vector<host_function> host_functions;
};

// Never destroyed, because kernels in static storage of other files may outlive it.
registry& instance()
{
    static registry& r = *new registry;
    return r;
}

/// An image that this thread found recently, so that not every launch takes the lock. Ids are never reused: a cached
/// image is either the right one or expired.
struct found_before {
    std::uint64_t id = 0;
    std::weak_ptr<const image> what;
};

/// Destructors of static objects may still launch after the thread's thread_local objects are destroyed.
thread_local bool over = false;

struct memory_of_thread {
    ~memory_of_thread() { over = true; }
    std::array<found_before, 8> entries;
};

thread_local memory_of_thread recent;

std::shared_ptr<const image> find_in_registry(std::uint64_t id) noexcept
{
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    const auto found = r.images.find(id);
    return found == r.images.end() ? nullptr : found->second.lock();
}

} // namespace

image::~image()
{
    if (id == 0)
        return;
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    r.images.erase(id);
}

std::shared_ptr<const image> register_image(std::shared_ptr<image> made)
{
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    made->id = ++r.last_id;
    r.images.emplace(made->id, made);
    r.from_cache += made->from_cache ? 1 : 0;
    return made;
}

image_counts count_images() noexcept
{
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    return {r.images.size(), r.last_id - r.from_cache, r.from_cache};
}

std::shared_ptr<const image> find_image(std::uint64_t id) noexcept
{
    if (over)
        return find_in_registry(id);
    found_before& here = recent.entries[id % recent.entries.size()];
    if (here.id == id)
        return here.what.lock();
    auto found = find_in_registry(id);
    if (found)
        here = {id, found};
    return found;
}

std::shared_ptr<const void> keep_image(std::uint64_t id) noexcept
{
    return find_image(id);
}

std::uint32_t register_host_function(const host_function& f)
{
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    const auto found = std::ranges::find_if(r.host_functions, [&](const host_function& known) {
        return known.function == f.function && known.invoke == f.invoke;
    });
    if (found == r.host_functions.end()) {
        r.host_functions.push_back(f);
        return static_cast<std::uint32_t>(r.host_functions.size());
    }
    return static_cast<std::uint32_t>(found - r.host_functions.begin()) + 1;
}

host_function find_host_function(std::uint32_t number) noexcept
{
    auto& r = instance();
    const std::scoped_lock lock(r.mutex);
    return number == 0 || number > r.host_functions.size() ? host_function{} : r.host_functions[number - 1];
}

} // namespace coaccel::jit
