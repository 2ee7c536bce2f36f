#include "core/unit_text.hpp"
#include "server/config/config_keys.hpp"

#include <coaccel/device/device_options_text.hpp>

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

namespace coaccel::server {
namespace {

using std::chrono::nanoseconds;

constexpr log_level levels[] = {log_level::debug, log_level::info, log_level::warning, log_level::error,
                                log_level::off};

template <class T>
T& option(const config_key& key, const config_target& target)
{
    return *static_cast<T*>(key.at(target));
}

std::string fraction_text(double value)
{
    std::array<char, 32> room{};
    return {room.data(), std::to_chars(room.data(), room.data() + room.size(), value).ptr};
}

std::string time_text(nanoseconds value)
{
    return value.count() == 0 ? "0" : detail::with_unit(static_cast<std::uint64_t>(value.count()), detail::time_units);
}

/// A limit of the table, as it is written in a file.
std::string limit_text(const config_key& key, double limit)
{
    switch (key.form) {
    case value_form::time: return time_text(nanoseconds(std::llround(limit * 1e9)));
    case value_form::bytes: return detail::with_unit(static_cast<std::uint64_t>(limit), detail::byte_units);
    case value_form::fraction: return fraction_text(limit);
    default: return std::to_string(static_cast<std::uint64_t>(limit));
    }
}

template <class T>
bool assign_within(const config_key& key, const config_target& target, std::optional<T> value)
{
    // Written so that NaN is refused.
    if (!value || !(static_cast<double>(*value) >= key.least && static_cast<double>(*value) <= key.most))
        return false;
    option<T>(key, target) = *value;
    return true;
}

bool set_time(const config_key& key, const config_target& target, std::string_view value)
{
    // Zero needs no unit.
    const auto time = value == "0" ? std::optional<std::uint64_t>(0) : detail::with_unit(value, detail::time_units);
    if (!time || static_cast<double>(*time) < key.least * 1e9 || static_cast<double>(*time) > key.most * 1e9)
        return false;
    option<nanoseconds>(key, target) = nanoseconds(*time);
    return true;
}

bool set_listen(server_options& o, std::string_view value)
{
    const auto colon = value.rfind(':');
    auto address = value.substr(0, std::min(colon, value.size()));
    // Without brackets, the last part of an IPv6 address could be a port.
    const bool bracketed = address.starts_with('[') && address.ends_with(']');
    if (bracketed)
        address = address.substr(1, address.size() - 2);
    const auto port = colon == std::string_view::npos ? std::optional(o.port)
                                                      : detail::number<std::uint16_t>(value.substr(colon + 1));
    error_code bad;
    const auto ip = asio::ip::make_address(std::string(address), bad);
    if (bad || !port || (ip.is_v6() != bracketed))
        return false;
    o.address = address;
    o.port = *port;
    return true;
}

/// The words of device options, with "cpu" for the kind that they call "host".
std::string add_device(server_options& o, std::string_view value)
{
    std::string words(value);
    if (value == "cpu" || value.starts_with("cpu,"))
        words.replace(0, 3, "host");
    device_options base = default_device();
    // A standby needs a worker process.
    if (value.find("in_process") != std::string_view::npos)
        base.standby = 0;
    const auto parsed = parse_device_options(words, base);
    if (!parsed)
        return parsed.error().message();
    o.devices.push_back(parsed.value());
    return {};
}

bool set_versions(version_policy& policy, std::string_view value)
{
    version_policy made;
    if (value == "all")
        made.how = version_policy::rule::all;
    else if (value.starts_with("latest")) {
        const auto count = without_blanks(value.substr(6));
        const auto n = count.empty() ? std::optional<std::uint32_t>(1) : detail::number<std::uint32_t>(count);
        if (!n || *n == 0 || (!count.empty() && count.size() + 6 == value.size()))
            return false;
        made.count = *n;
    } else {
        made.how = version_policy::rule::listed;
        for (std::size_t from = 0; from <= value.size();) {
            const auto end = std::min(value.find(',', from), value.size());
            const auto n = detail::number<std::uint64_t>(without_blanks(value.substr(from, end - from)));
            if (!n || *n == 0 || std::ranges::find(made.list, *n) != made.list.end())
                return false;
            made.list.push_back(*n);
            from = end + 1;
        }
        std::ranges::sort(made.list);
    }
    policy = std::move(made);
    return true;
}

std::string versions_text(const version_policy& policy)
{
    switch (policy.how) {
    case version_policy::rule::all: return "all";
    case version_policy::rule::latest: return "latest " + std::to_string(policy.count);
    case version_policy::rule::listed: break;
    }
    std::string all;
    for (const auto n : policy.list)
        all += (all.empty() ? "" : ", ") + std::to_string(n);
    return all;
}

bool set_level(log_level& level, std::string_view value)
{
    const auto* found = std::ranges::find_if(levels, [value](log_level l) { return to_string(l) == value; });
    if (found == std::end(levels))
        return false;
    level = *found;
    return true;
}

bool set_token(std::string& token, std::string_view value)
{
    if (value.empty() || !std::ranges::all_of(value, [](char c) { return c > ' ' && c <= '~'; }))
        return false;
    token = value;
    return true;
}

bool set_plain(const config_key& key, const config_target& target, std::string_view value)
{
    switch (key.form) {
    case value_form::text:
    case value_form::path:
    case value_form::log_path:
        option<std::string>(key, target) = value;
        return !value.empty() && value.find('\0') == std::string_view::npos;
    case value_form::token: return set_token(option<std::string>(key, target), value);
    case value_form::listen: return set_listen(*target.server, value);
    case value_form::whole: return assign_within(key, target, detail::number<int>(value));
    case value_form::count: return assign_within(key, target, detail::number<std::uint32_t>(value));
    case value_form::large: return assign_within(key, target, detail::number<std::uint64_t>(value));
    case value_form::bytes: return assign_within(key, target, detail::with_unit(value, detail::byte_units));
    case value_form::fraction: return assign_within(key, target, detail::number<double>(value));
    case value_form::time: return set_time(key, target, value);
    case value_form::versions: return set_versions(option<version_policy>(key, target), value);
    case value_form::level: return set_level(option<log_level>(key, target), value);
    case value_form::yes_no: option<bool>(key, target) = value == "yes"; return value == "yes" || value == "no";
    case value_form::devices: break;
    }
    return false;
}

std::string form_text(value_form form)
{
    switch (form) {
    case value_form::text: return "a text";
    case value_form::path: return "a path";
    case value_form::log_path: return "a path, - or off";
    case value_form::token: return "printable ASCII characters without spaces";
    case value_form::listen: return "an IP address and a port, such as 127.0.0.1:8000 or [::1]:8000";
    case value_form::devices: return "device options, such as cpu, cuda:0 or cuda:1,in_process";
    case value_form::whole:
    case value_form::count:
    case value_form::large: return "a whole number";
    case value_form::bytes: return "a number of bytes, such as 4096, 64M or 2G";
    case value_form::time: return "a time, such as 20us, 5ms, 30s or 2min";
    case value_form::fraction: return "a number";
    case value_form::yes_no: return "yes or no";
    case value_form::versions: return "latest, latest N, all, or different numbers from 1 with commas between them";
    case value_form::level: return "debug, info, warning, error or off";
    }
    return {};
}

} // namespace

std::string device_text(const device_options& device)
{
    auto text = to_string(device);
    // Differences from the defaults of a server, which are not those of a device.
    if (device.isolation == isolation::in_process)
        text += ",in_process";
    else if (device.standby == 0)
        text += ",standby=0";
    return text;
}

std::string expected_value(const config_key& key)
{
    auto text = form_text(key.form);
    if (key.most == 0)
        return text;
    if (key.least > 0 || std::isfinite(key.most))
        text += ", from " + limit_text(key, key.least);
    // The limits of the type itself tell nothing.
    if (std::isfinite(key.most) && key.most != 4294967295.0)
        text += " to " + limit_text(key, key.most);
    return text;
}

std::string set_value(const config_key& key, const config_target& target, std::string_view value)
{
    if (key.form == value_form::devices)
        return add_device(*target.server, value);
    return set_plain(key, target, value) ? std::string() : "the value must be " + expected_value(key);
}

std::string value_text(const config_key& key, const config_target& target)
{
    switch (key.form) {
    case value_form::text:
    case value_form::path:
    case value_form::log_path:
    case value_form::token: return option<std::string>(key, target);
    case value_form::listen: {
        const auto& o = *target.server;
        const bool v6 = o.address.find(':') != std::string::npos;
        return (v6 ? "[" + o.address + "]" : o.address) + ":" + std::to_string(o.port);
    }
    case value_form::whole: return std::to_string(option<int>(key, target));
    case value_form::count: return std::to_string(option<std::uint32_t>(key, target));
    case value_form::large: return std::to_string(option<std::uint64_t>(key, target));
    case value_form::bytes: return detail::with_unit(option<std::uint64_t>(key, target), detail::byte_units);
    case value_form::time: return time_text(option<nanoseconds>(key, target));
    case value_form::fraction: return fraction_text(option<double>(key, target));
    case value_form::yes_no: return option<bool>(key, target) ? "yes" : "no";
    case value_form::versions: return versions_text(option<version_policy>(key, target));
    case value_form::level: return std::string(to_string(option<log_level>(key, target)));
    case value_form::devices: break;
    }
    const auto& o = *target.server;
    return o.devices.empty() ? device_text(default_device()) : device_text(o.devices.front());
}

} // namespace coaccel::server
