#include "core/escape_text.hpp"

#include <coaccel/core/trace.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <exception>
#include <mutex>
#include <sys/random.h>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace coaccel {
namespace {

using event_words = std::array<std::uint64_t, 8>;

static_assert(sizeof(trace_event) == sizeof(event_words) && std::is_trivially_copyable_v<trace_event>);

constexpr std::string_view other = "other";

/// Numbers of texts are used again after this many, so that an event whose text was replaced does not get the new one.
/// A multiple of the number of texts that are kept.
constexpr std::uint32_t text_numbers = 63 * trace_buffer::most_texts;

static_assert(text_numbers < 65536);

std::string shortened(std::string_view text)
{
    if (text.size() > trace_buffer::longest_text) {
        text = text.substr(0, trace_buffer::longest_text);
        text = text.substr(0, detail::whole_characters(text));
    }
    return std::string(text);
}

std::uint64_t random_number() noexcept
{
    std::uint64_t n = 0;
    if (::getrandom(&n, sizeof(n), GRND_NONBLOCK) != static_cast<ssize_t>(sizeof(n)))
        n = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
    return n;
}

/// The finaliser of SplitMix64: different numbers have different results.
std::uint64_t mixed(std::uint64_t n) noexcept
{
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9ull;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebull;
    return n ^ (n >> 31);
}

/// Big-endian, as in the text of a traceparent.
std::uint64_t half_of(const std::array<std::uint8_t, 16>& id, std::size_t first) noexcept
{
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < 8; ++i)
        n = (n << 8) | id[first + i];
    return n;
}

struct alignas(64) event_slot {
    std::array<std::atomic<std::uint64_t>, 8> words;
};

// The version of the slot of event number n: odd while the event is written.
constexpr std::uint64_t version_of(std::uint64_t n) noexcept
{
    return 2 * (n + 1);
}

/// The number of the event that a slot of this version has, or gets; zero also if it has none.
constexpr std::uint64_t number_of(std::uint64_t version) noexcept
{
    return version == 0 ? 0 : (version + 1) / 2 - 1;
}

constexpr std::uint64_t overwritten(std::uint64_t added, std::size_t capacity) noexcept
{
    return added > capacity ? added - capacity : 0;
}

} // namespace

struct trace_buffer::state {
    explicit state(std::size_t n)
        : capacity(std::bit_ceil(std::clamp<std::size_t>(n, 2, most_events))),
          versions(std::make_unique<std::atomic<std::uint64_t>[]>(capacity)),
          slots(std::make_unique<event_slot[]>(capacity)), next_id(random_number())
    {
        names.emplace_back(other);
        tracks.emplace_back(other);
        numbers.emplace(std::string(other), std::uint16_t(0));
    }

    std::atomic<std::uint64_t>& version(std::uint64_t n) const noexcept { return versions[n & (capacity - 1)]; }
    event_slot& slot(std::uint64_t n) const noexcept { return slots[n & (capacity - 1)]; }

    /// The number after the latest event.
    std::uint64_t end() const noexcept
    {
        std::uint64_t latest = 0;
        for (std::size_t i = 0; i < capacity; ++i)
            latest = std::max(latest, versions[i].load(std::memory_order_relaxed));
        return (latest + 1) / 2;
    }

    const std::size_t capacity;
    /// Apart from the slots, so that a slot is one cache line.
    const std::unique_ptr<std::atomic<std::uint64_t>[]> versions;
    const std::unique_ptr<event_slot[]> slots;
    const trace_event::clock::time_point start = trace_event::clock::now();
    const std::chrono::system_clock::time_point system_start = std::chrono::system_clock::now();
    /// Where to look for the next slot. A writer that was interrupted may have set it back.
    alignas(64) std::atomic<std::uint64_t> next{0};
    alignas(64) std::atomic<std::uint64_t> next_id;
    /// Events for which no slot was free.
    std::atomic<std::uint64_t> dropped{0};

    std::mutex mutex;
    std::vector<std::string> names;
    std::vector<std::string> tracks;
    std::unordered_map<std::string, std::uint16_t> numbers;
    struct numbered_text {
        std::uint32_t number = 0;
        std::string text;
    };
    std::vector<numbered_text> texts;
    std::uint32_t last_text = 0;
};

std::shared_ptr<trace_buffer> trace_buffer::create(std::size_t capacity)
{
    return std::make_shared<trace_buffer>(detail::trace_buffer_key(), capacity);
}

trace_buffer::trace_buffer(detail::trace_buffer_key, std::size_t capacity) : state_(std::make_unique<state>(capacity))
{}

trace_buffer::~trace_buffer() = default;

std::size_t trace_buffer::capacity() const noexcept
{
    return state_->capacity;
}

// A sequence lock for each slot. The words are stored with release and loaded with acquire, so that a reader that sees
// a word of a later event also sees the odd version that was stored before it; fences, which do the same, are unknown
// to ThreadSanitizer.
//
// The next number is only a hint: a writer takes the first slot from there on whose version it can change. This costs
// one atomic read-modify-write operation, which is most of the time of a call; a counter would be a second one.
void trace_buffer::add(const trace_event& e) noexcept
{
    state& s = *state_;
    std::uint64_t n = s.next.load(std::memory_order_relaxed);
    for (std::size_t tries = 0;; ++tries, ++n) {
        // Other threads are writing to all slots, and may not run before this one is done.
        if (tries > capacity()) {
            s.dropped.fetch_add(1, std::memory_order_relaxed);
            return;
        }
        auto& version = s.version(n);
        std::uint64_t before = version.load(std::memory_order_relaxed);
        // Odd, and of an earlier round: its writer was overtaken by a whole round of others. It keeps the slot.
        if (before % 2 == 0 && before < version_of(n) &&
            version.compare_exchange_strong(before, version_of(n) - 1, std::memory_order_acquire,
                                            std::memory_order_relaxed))
            break;
        n = std::max(n, number_of(before));
    }
    if (s.next.load(std::memory_order_relaxed) <= n)
        s.next.store(n + 1, std::memory_order_relaxed);
    const auto words = std::bit_cast<event_words>(e);
    auto& slot = s.slot(n);
    for (std::size_t i = 0; i < words.size(); ++i)
        slot.words[i].store(words[i], std::memory_order_release);
    s.version(n).store(version_of(n), std::memory_order_release);
}

std::uint64_t trace_buffer::new_id() noexcept
{
    for (;;)
        if (const auto id = mixed(state_->next_id.fetch_add(1, std::memory_order_relaxed)))
            return id;
}

void trace_buffer::add_traceparent(std::uint64_t id, const traceparent& parent) noexcept
{
    add({.begin = trace_event::clock::now(),
         .id = id,
         .parent = parent.parent_id,
         .leads_to = half_of(parent.trace_id, 0),
         .value = half_of(parent.trace_id, 8),
         .kind = trace_kind::traceparent,
         .text = parent.flags});
}

trace_name trace_buffer::intern(std::string_view text) noexcept
try {
    auto stored = shortened(text);
    state& s = *state_;
    const std::scoped_lock lock(s.mutex);
    if (const auto found = s.numbers.find(stored); found != s.numbers.end())
        return {found->second};
    if (s.names.size() >= most_names)
        return {};
    const auto number = static_cast<std::uint16_t>(s.names.size());
    s.names.push_back(stored);
    try {
        s.numbers.emplace(std::move(stored), number);
    } catch (const std::exception&) {
        s.names.pop_back();
        return {};
    }
    return {number};
} catch (const std::exception&) {
    return {};
}

trace_track trace_buffer::add_track(std::string_view name) noexcept
try {
    state& s = *state_;
    auto stored = shortened(name);
    const std::scoped_lock lock(s.mutex);
    if (s.tracks.size() >= most_tracks)
        return {};
    s.tracks.push_back(std::move(stored));
    return {static_cast<std::uint16_t>(s.tracks.size() - 1)};
} catch (const std::exception&) {
    return {};
}

std::uint16_t trace_buffer::add_text(std::string_view text) noexcept
try {
    auto stored = shortened(text);
    state& s = *state_;
    const std::scoped_lock lock(s.mutex);
    const std::uint32_t number = s.last_text % text_numbers + 1;
    const std::size_t at = (number - 1) % most_texts;
    if (at >= s.texts.size())
        s.texts.resize(at + 1);
    s.texts[at] = {number, std::move(stored)};
    s.last_text = number;
    return static_cast<std::uint16_t>(number);
} catch (const std::exception&) {
    return 0;
}

std::uint64_t trace_buffer::added() const noexcept
{
    return state_->end() + state_->dropped.load(std::memory_order_relaxed);
}

std::uint64_t trace_buffer::lost() const noexcept
{
    return overwritten(state_->end(), capacity()) + state_->dropped.load(std::memory_order_relaxed);
}

trace_snapshot trace_buffer::snapshot() const
{
    state& s = *state_;
    trace_snapshot out;
    const std::uint64_t end = s.end();
    out.added = end + s.dropped.load(std::memory_order_relaxed);
    out.start = s.start;
    out.system_start = s.system_start;
    out.events.reserve(std::min<std::uint64_t>(end, s.capacity));
    for (auto n = overwritten(end, s.capacity); n < end; ++n) {
        const auto& version = s.version(n);
        if (version.load(std::memory_order_acquire) != version_of(n))
            continue;
        event_words words{};
        for (std::size_t i = 0; i < words.size(); ++i)
            words[i] = s.slot(n).words[i].load(std::memory_order_acquire);
        if (version.load(std::memory_order_relaxed) == version_of(n))
            out.events.push_back(std::bit_cast<trace_event>(words));
    }
    out.lost = out.added - out.events.size();
    // After the events, so that the names of all of them exist.
    const std::scoped_lock lock(s.mutex);
    out.names = s.names;
    out.tracks = s.tracks;
    for (const auto& t : s.texts)
        out.texts.emplace(static_cast<std::uint16_t>(t.number), t.text);
    return out;
}

std::string_view to_string(trace_kind kind) noexcept
{
    switch (kind) {
    case trace_kind::request: return "request";
    case trace_kind::batch: return "batch";
    case trace_kind::run: return "run";
    case trace_kind::op: return "op";
    case trace_kind::transfer: return "transfer";
    case trace_kind::fault: return "fault";
    case trace_kind::conviction: return "conviction";
    case trace_kind::restart: return "restart";
    case trace_kind::quarantine: return "quarantine";
    case trace_kind::traceparent: return "traceparent";
    case trace_kind::measured: return "measured";
    case trace_kind::span: return "span";
    case trace_kind::mark: return "mark";
    }
    return "unknown";
}

std::string_view to_string(trace_outcome outcome) noexcept
{
    switch (outcome) {
    case trace_outcome::succeeded: return "succeeded";
    case trace_outcome::failed: return "failed";
    case trace_outcome::cancelled: return "cancelled";
    case trace_outcome::expired: return "expired";
    case trace_outcome::lost: return "lost";
    }
    return "unknown";
}

} // namespace coaccel
