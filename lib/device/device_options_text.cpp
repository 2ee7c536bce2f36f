#include "core/near_name.hpp"
#include "core/unit_text.hpp"

#include <coaccel/device/device_options_text.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace coaccel {
namespace {

using detail::byte_units;
using detail::number;
using detail::suggestion;
using detail::time_units;
using detail::with_unit;
using std::string_view;

enum class form : std::uint8_t { whole, count, bytes, time, fraction, choice, lanes };

/// One field of device_options that has a text form.
struct text_field {
    string_view key;
    form how;
    void* (*at)(device_options&) noexcept;
    /// For a choice: the names in the order of its enumerators.
    std::span<const string_view> names{};
};

constexpr string_view kinds[] = {"best", "host", "cuda"};
constexpr string_view isolations[] = {"in_process", "worker"};
constexpr string_view completions[] = {"adaptive", "host_fn", "polled", "sync"};
constexpr string_view host_modes[] = {"pool", "inline"};
constexpr string_view blas_modes[] = {"deterministic", "fast"};
constexpr string_view switches[] = {"off", "on"};

// A choice is read and written as the underlying byte of its enumeration.
static_assert(sizeof(completion) == 1 && sizeof(host_mode) == 1 && sizeof(blas_mode) == 1 && sizeof(bool) == 1);
static_assert(std::is_same_v<restart_policy::duration, std::chrono::nanoseconds>);

#define COACCEL_AT(path) [](device_options& o) noexcept -> void* { return &o.path; }

constexpr text_field fields[] = {
    {"standby", form::whole, COACCEL_AT(standby)},
    {"queue.max_in_flight", form::count, COACCEL_AT(queue.max_in_flight)},
    {"queue.max_bytes_in_flight", form::bytes, COACCEL_AT(queue.max_bytes_in_flight)},
    {"queue.max_queued", form::count, COACCEL_AT(queue.max_queued)},
    {"context.lanes", form::lanes, COACCEL_AT(context.lanes)},
    {"context.completion", form::choice, COACCEL_AT(context.completion), completions},
    {"context.spin_budget", form::time, COACCEL_AT(context.spin_budget)},
    {"context.monitor_interval", form::time, COACCEL_AT(context.monitor_interval)},
    {"context.hang_timeout", form::time, COACCEL_AT(context.hang_timeout)},
    {"restart.max_restarts", form::whole, COACCEL_AT(restart.max_restarts)},
    {"restart.window", form::time, COACCEL_AT(restart.window)},
    {"restart.initial_backoff", form::time, COACCEL_AT(restart.initial_backoff)},
    {"restart.max_backoff", form::time, COACCEL_AT(restart.max_backoff)},
    {"restart.multiplier", form::fraction, COACCEL_AT(restart.multiplier)},
    {"restart.jitter", form::fraction, COACCEL_AT(restart.jitter)},
    {"host.mode", form::choice, COACCEL_AT(host.mode), host_modes},
    {"host.threads", form::whole, COACCEL_AT(host.threads)},
    {"host.memory_limit", form::bytes, COACCEL_AT(host.memory_limit)},
    {"host.pinned_limit", form::bytes, COACCEL_AT(host.pinned_limit)},
    {"host.timed_runs", form::whole, COACCEL_AT(host.timed_runs)},
    {"cuda.memory_limit", form::bytes, COACCEL_AT(cuda.memory_limit)},
    {"cuda.release_threshold", form::bytes, COACCEL_AT(cuda.release_threshold)},
    {"cuda.pinned_limit", form::bytes, COACCEL_AT(cuda.pinned_limit)},
    {"cuda.helper_threads", form::whole, COACCEL_AT(cuda.helper_threads)},
    {"cuda.blas", form::choice, COACCEL_AT(cuda.blas), blas_modes},
    {"cuda.blas_workspace", form::bytes, COACCEL_AT(cuda.blas_workspace)},
    {"cuda.nvtx", form::choice, COACCEL_AT(cuda.nvtx), switches},
    {"cuda.timed_runs", form::whole, COACCEL_AT(cuda.timed_runs)},
    {"worker.staging_bytes", form::bytes, COACCEL_AT(worker.staging_bytes)},
    {"worker.start_timeout", form::time, COACCEL_AT(worker.start_timeout)},
    {"worker.heartbeat", form::time, COACCEL_AT(worker.heartbeat)},
    {"worker.spin", form::time, COACCEL_AT(worker.spin)},
    {"worker.max_data_bytes", form::bytes, COACCEL_AT(worker.max_data_bytes)},
    {"worker.core_dumps", form::choice, COACCEL_AT(worker.core_dumps), switches},
};

#undef COACCEL_AT

// Fields without a text form: pointers, functions, injected faults, and the strategy, which a device does not use.
constexpr string_view fields_without_text[] = {
    "plugin",      "trace",         "restart.strategy", "restart.decider",
    "host.faults", "host.injector", "worker.program",   "worker.log",
};

std::optional<std::uint8_t> choice(string_view text, std::span<const string_view> names)
{
    const auto found = std::ranges::find(names, text);
    if (found == names.end())
        return std::nullopt;
    return static_cast<std::uint8_t>(found - names.begin());
}

std::optional<lane_policy> lanes(string_view text)
{
    if (text == "per_library")
        return lane_policy::per_library();
    if (text == "single")
        return lane_policy::single();
    for (const auto how : {lane_policy::kind::chained, lane_policy::kind::pooled}) {
        const string_view name = how == lane_policy::kind::chained ? "chained:" : "pooled:";
        if (!text.starts_with(name))
            continue;
        const auto n = number<int>(text.substr(name.size()));
        return n ? std::optional(lane_policy{how, *n}) : std::nullopt;
    }
    return std::nullopt;
}

std::string text_of(const lane_policy& p)
{
    switch (p.how) {
    case lane_policy::kind::per_library: return "per_library";
    case lane_policy::kind::single: return "single";
    case lane_policy::kind::pooled: return "pooled:" + std::to_string(p.count);
    case lane_policy::kind::chained: break;
    }
    return "chained:" + std::to_string(p.count);
}

template <class T>
bool assign(void* at, const std::optional<T>& value)
{
    if (value)
        *static_cast<T*>(at) = *value;
    return value.has_value();
}

bool read(const text_field& f, device_options& o, string_view value)
{
    void* const at = f.at(o);
    switch (f.how) {
    case form::whole: return assign(at, number<int>(value));
    case form::count: return assign(at, number<std::uint64_t>(value));
    case form::bytes: return assign(at, with_unit(value, byte_units));
    case form::fraction: return assign(at, number<double>(value));
    case form::choice: return assign(at, choice(value, f.names));
    case form::lanes: return assign(at, lanes(value));
    case form::time: {
        // Zero needs no unit.
        const auto time = value == "0" ? std::optional<std::uint64_t>(0) : with_unit(value, time_units);
        if (!time || *time > static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count()))
            return false;
        *static_cast<std::chrono::nanoseconds*>(at) = std::chrono::nanoseconds(*time);
        return true;
    }
    }
    return false;
}

std::string write(const text_field& f, device_options o)
{
    void* const at = f.at(o);
    switch (f.how) {
    case form::whole: return std::to_string(*static_cast<int*>(at));
    case form::count: return std::to_string(*static_cast<std::uint64_t*>(at));
    case form::bytes: return with_unit(*static_cast<std::uint64_t*>(at), byte_units);
    case form::choice: {
        const auto chosen = *static_cast<std::uint8_t*>(at);
        return chosen < f.names.size() ? std::string(f.names[chosen]) : std::to_string(chosen);
    }
    case form::lanes: return text_of(*static_cast<lane_policy*>(at));
    case form::time:
        return with_unit(static_cast<std::uint64_t>(static_cast<std::chrono::nanoseconds*>(at)->count()), time_units);
    case form::fraction: {
        std::array<char, 32> room{};
        const auto end = std::to_chars(room.data(), room.data() + room.size(), *static_cast<double*>(at)).ptr;
        return {room.data(), end};
    }
    }
    return {};
}

std::string expected(const text_field& f)
{
    switch (f.how) {
    case form::whole:
    case form::count: return "a whole number";
    case form::bytes: return "a number of bytes, such as 4096, 64M or 2G";
    case form::time: return "a time, such as 20us, 5ms, 30s or 0";
    case form::fraction: return "a number";
    case form::lanes: return "chained:n, per_library, single or pooled:n";
    case form::choice: break;
    }
    std::string all;
    for (const string_view name : f.names)
        all += (all.empty() ? "" : name == f.names.back() ? " or " : ", ") + std::string(name);
    return all;
}

std::string unknown_field(string_view key)
{
    const std::string name(key);
    if (key == "kind" || key == "ordinal")
        return name + " is set by a word: best, host, cuda or, with an ordinal, cuda:1";
    if (key == "isolation")
        return "isolation is set by a word: in_process or worker";
    const auto is_named = [key](string_view field) {
        return key == field || (key.starts_with(field) && key[field.size()] == '.');
    };
    if (std::ranges::any_of(fields_without_text, is_named))
        return name + " cannot be set by text";
    std::vector<string_view> names;
    for (const text_field& f : fields)
        names.push_back(f.key);
    return "unknown field " + name + suggestion(key, names);
}

std::string unknown_word(string_view word)
{
    static constexpr string_view words[] = {"best", "host", "cuda", "worker", "in_process"};
    const auto meant = suggestion(word, words);
    return "unknown word" + (meant.empty()
                                 ? "; known are best, host, cuda, cuda:n, worker, in_process and fields as in "
                                   "standby=1"
                                 : meant);
}

class parser {
public:
    parser(string_view text, const device_options& base) : text_(text), options_(base) {}

    result<device_options> parse()
    {
        if (text_.find_first_not_of(blank) == string_view::npos)
            return checked();
        for (std::size_t from = 0; from <= text_.size();) {
            const std::size_t end = std::min(text_.find(',', from), text_.size());
            if (const error_code ec = word(from, end))
                return ec;
            from = end + 1;
        }
        return checked();
    }

private:
    static constexpr string_view blank = " \t\n";
    static constexpr std::size_t kind_seen = std::size(fields);
    static constexpr std::size_t isolation_seen = kind_seen + 1;

    result<device_options> checked() const
    {
        if (const error_code ec = options_.check())
            return make_error_with_message(errc::invalid_option, begin() + ec.message());
        return options_;
    }

    error_code word(std::size_t from, std::size_t end)
    {
        while (from < end && blank.find(text_[from]) != string_view::npos)
            ++from;
        while (from < end && blank.find(text_[end - 1]) != string_view::npos)
            --end;
        at_ = from;
        word_ = text_.substr(from, end - from);
        if (word_.empty())
            return refuse("a word is missing");
        if (const auto equals = word_.find('='); equals != string_view::npos)
            return field(word_.substr(0, equals), word_.substr(equals + 1));
        if (const auto chosen = choice(word_, isolations))
            return once(isolation_seen, "another word for the isolation was given before",
                        [&] { options_.isolation = static_cast<isolation>(*chosen); });
        const auto colon = std::min(word_.find(':'), word_.size());
        const auto kind = choice(word_.substr(0, colon), kinds);
        if (!kind)
            return refuse(std::ranges::find(fields, word_, &text_field::key) == std::end(fields)
                              ? unknown_word(word_)
                              : "needs a value, as in standby=1");
        const auto ordinal = colon < word_.size() ? number<int>(word_.substr(colon + 1)) : std::optional<int>(0);
        if (colon < word_.size() && static_cast<device_kind>(*kind) == device_kind::host)
            return refuse("host takes no ordinal");
        if (!ordinal)
            return refuse("the ordinal after the colon must be a whole number, as in cuda:1");
        return once(kind_seen, "another word for the kind was given before", [&] {
            options_.kind = static_cast<device_kind>(*kind);
            if (colon < word_.size())
                options_.ordinal = *ordinal;
        });
    }

    error_code field(string_view key, string_view value)
    {
        const auto* f = std::ranges::find(fields, key, &text_field::key);
        if (f == std::end(fields))
            return refuse(unknown_field(key));
        error_code ec;
        const error_code twice = once(static_cast<std::size_t>(f - fields), "given twice", [&] {
            if (!read(*f, options_, value))
                ec = refuse("the value must be " + expected(*f));
        });
        return twice ? twice : ec;
    }

    template <class Function>
    error_code once(std::size_t what, const char* again, Function set)
    {
        if (seen_.test(what))
            return refuse(again);
        seen_.set(what);
        set();
        return {};
    }

    std::string begin() const { return "device options \"" + std::string(text_) + "\": "; }

    error_code refuse(const std::string& why) const
    {
        return make_error_with_message(errc::invalid_option, begin() + "\"" + std::string(word_) + "\" at position " +
                                                                 std::to_string(at_ + 1) + ": " + why);
    }

    string_view text_;
    device_options options_;
    string_view word_;
    std::size_t at_ = 0;
    std::bitset<std::size(fields) + 2> seen_;
};

} // namespace

result<device_options> parse_device_options(std::string_view text, const device_options& base)
{
    return parser(text, base).parse();
}

result<device_options> device_options_from_environment(const device_options& base)
{
    const char* text = ::secure_getenv("COACCEL_DEVICE");
    auto parsed = parse_device_options(text ? text : "", base);
    if (!parsed)
        return make_error_with_message(errc::invalid_option, "COACCEL_DEVICE, " + parsed.error().message());
    return parsed;
}

std::string to_string(const device_options& options)
{
    const auto kind = static_cast<std::size_t>(options.kind);
    std::string text(kind < std::size(kinds) ? kinds[kind] : "?");
    if (options.ordinal != 0 && options.kind != device_kind::host)
        text += ':' + std::to_string(options.ordinal);
    if (options.isolation == isolation::worker)
        text += ",worker";
    const device_options defaults;
    for (const text_field& f : fields)
        if (const auto value = write(f, options); value != write(f, defaults))
            text += ',' + std::string(f.key) + '=' + value;
    return text;
}

} // namespace coaccel
