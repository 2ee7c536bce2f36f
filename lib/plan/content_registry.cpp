#include "plan/content_registry.hpp"

#include "posix/mapped_file.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace coaccel::detail {
namespace {

// With how many different contents of the same hash one is compared, and among how many it looks for them. More exist
// only if hashes are forged, which must not cause more work.
constexpr std::size_t most_comparisons = 4;
constexpr int look_ahead = 64;

class used_content;
/// By hash and length.
using content_map = std::multimap<std::pair<content_id, std::uint64_t>, used_content*>;

struct registry {
    std::mutex mutex;
    content_map all;
};

registry& get_registry()
{
    // Never destroyed: static objects may hold plans until the end of the process.
    static auto& only = *new registry;
    return only;
}

/// A content that plans use. It leaves the registry when the last of them does. Each content keeps its own memory:
/// one that used the memory of an equal content could keep much more than that alive, such as a whole file.
class used_content : public std::enable_shared_from_this<used_content> {
public:
    explicit used_content(const plan_content& c) : content(c) {}
    used_content(const used_content&) = delete;
    used_content& operator=(const used_content&) = delete;
    ~used_content()
    {
        if (!place)
            return;
        registry& r = get_registry();
        const std::scoped_lock lock(r.mutex);
        r.all.erase(*place);
    }

    plan_content content;
    /// Not set until it is in the registry.
    std::optional<content_map::iterator> place;
};

bool can_be_read(const plan_content& c)
{
    return !check_content(c, 0, c.bytes);
}

bool has_bytes_of(const plan_content& a, const plan_content& b)
{
    return a.data.get() == b.data.get() ||
           (can_be_read(a) && can_be_read(b) && std::memcmp(a.data.get(), b.data.get(), a.bytes) == 0);
}

/// A content of this hash and length whose identity is none of these; null if there is none.
std::shared_ptr<used_content> find_other(const content_map& all, const content_map::key_type& key,
                                         const std::vector<std::shared_ptr<used_content>>& different)
{
    auto at = all.lower_bound(key);
    for (int n = 0; n < look_ahead && at != all.end() && at->first == key; ++n, ++at) {
        const auto has_its_identity = [&](const auto& d) {
            return d->content.identity == at->second->content.identity;
        };
        if (std::ranges::any_of(different, has_its_identity))
            continue;
        // Null if the last plan with this content is being destroyed.
        if (auto found = at->second->weak_from_this().lock())
            return found;
    }
    return nullptr;
}

} // namespace

error_code check_content(const plan_content& c, std::uint64_t offset, std::uint64_t count)
{
    return c.file ? c.file->check({c.data.get() + offset, static_cast<std::size_t>(count)}) : error_code();
}

plan_content identify_content(const plan_content& c)
{
    registry& r = get_registry();
    // Declared before the mutex is locked, which their destructor locks too. Not from make_shared, whose memory would
    // last as long as a weak_ptr to it.
    const std::shared_ptr<used_content> own(new used_content(c));
    std::vector<std::shared_ptr<used_content>> different;
    own->content.identity = std::make_shared<char>();
    for (bool equal = false;;) {
        std::shared_ptr<used_content> other;
        {
            const std::scoped_lock lock(r.mutex);
            const content_map::key_type key(c.id, c.bytes);
            if (!equal && different.size() < most_comparisons)
                other = find_other(r.all, key, different);
            if (!other) {
                own->place = r.all.emplace(key, own.get());
                break;
            }
        }
        equal = has_bytes_of(other->content, c);
        if (equal)
            own->content.identity = other->content.identity;
        else
            different.push_back(std::move(other));
    }
    return {
        .data = {own, c.data.get()}, .bytes = c.bytes, .id = c.id, .identity = own->content.identity, .file = c.file};
}

std::size_t identified_contents()
{
    registry& r = get_registry();
    const std::scoped_lock lock(r.mutex);
    return r.all.size();
}

} // namespace coaccel::detail
