#include "server/config/config_keys.hpp"

#include "core/near_name.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace coaccel::server {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();
constexpr double day = 86400;
constexpr auto srv = section_kind::server;
constexpr auto mod = section_kind::model;
constexpr auto ten = section_kind::tenant;

#define COACCEL_SERVER(path) [](const config_target& t) -> void* { return &t.server->path; }
#define COACCEL_MODEL(path) [](const config_target& t) -> void* { return &t.model->path; }
#define COACCEL_TENANT(path) [](const config_target& t) -> void* { return &t.tenant->path; }

void* whole_server(const config_target& t)
{
    return t.server;
}

// The order is that of the help text. clang-format off keeps each key in the same shape.
// clang-format off
constexpr config_key keys[] = {
    {srv, "listen", value_form::listen, 0, 0, whole_server,
     "The IP address and the port to listen on. Port 0 lets the system choose one."},
    {srv, "model_folder", value_form::path, 0, 0, COACCEL_SERVER(model_folder),
     "The folder with the models, each as NAME/VERSION/model.plan."},
    {srv, "device", value_form::devices, 0, 0, whole_server,
     "A device that runs models: cpu, cuda:0 or best, then further words of device options after commas. The key may be "
     "repeated. Devices run in a worker process unless the word in_process is there; standby=N keeps N processes ready."},
    {srv, "io_threads", value_form::whole, 0, 256, COACCEL_SERVER(io_threads),
     "Threads that serve connections. 0: one for each CPU, at most 8."},
    {srv, "poll_interval", value_form::time, 0, day, COACCEL_SERVER(poll_interval),
     "How often the model folder is scanned for changes. 0: only when a client asks for it. Otherwise at least 10ms."},
    {srv, "max_connections", value_form::large, 1, no_limit, COACCEL_SERVER(limits.max_connections),
     "Open connections. A further one replaces the one that has waited longest for a request, or is closed if none waits."},
    {srv, "max_body_bytes", value_form::bytes, 1024, 2147483648.0, COACCEL_SERVER(limits.max_body_bytes),
     "A longer body of a request is refused with status 413."},
    {srv, "max_total_body_bytes", value_form::bytes, 1024, no_limit, COACCEL_SERVER(limits.max_total_body_bytes),
     "What the bodies of all requests together may use; a request that exceeds it is refused with status 503."},
    {srv, "max_header_bytes", value_form::bytes, 256, 1048576, COACCEL_SERVER(limits.max_header_bytes),
     "A longer header of a request is refused with status 431."},
    {srv, "idle_timeout", value_form::time, 0.001, day, COACCEL_SERVER(limits.idle_timeout),
     "A connection without a request is closed after this time."},
    {srv, "header_timeout", value_form::time, 0.001, day, COACCEL_SERVER(limits.header_timeout),
     "A connection is closed if the header of a request is not complete this long after its first byte."},
    {srv, "transfer_timeout", value_form::time, 0.001, day, COACCEL_SERVER(limits.transfer_timeout),
     "A connection is closed if the body of a request, or the client's reading of a reply, makes no progress for this "
     "time."},
    {srv, "request_timeout", value_form::time, 0.001, day, COACCEL_SERVER(limits.request_timeout),
     "The deadline of a request that names none; then it gets status 504."},
    {srv, "max_request_timeout", value_form::time, 0.001, day, COACCEL_SERVER(limits.max_request_timeout),
     "The longest deadline that a request may name."},
    {srv, "drain_timeout", value_form::time, 0, day, COACCEL_SERVER(drain_timeout),
     "How long requests may take to end after SIGTERM before the program exits."},
    {srv, "anonymous", value_form::yes_no, 0, 0, COACCEL_SERVER(anonymous),
     "Whether requests without an API key are answered. Their limits are in the section [tenant *]."},
    {srv, "telemetry_token", value_form::token, 0, 0, COACCEL_SERVER(telemetry_token),
     "If it is set, the live page and the metrics need it, as Authorization: Bearer TOKEN."},
    {srv, "page_folder", value_form::path, 0, 0, COACCEL_SERVER(page_folder),
     "A folder with files that are served under /page/, such as a page that uses a model."},
    {srv, "access_log", value_form::log_path, 0, 0, COACCEL_SERVER(access_log),
     "A file to which a line is appended for each request; -: the standard output; off: none."},
    {srv, "log", value_form::level, 0, 0, COACCEL_SERVER(log),
     "Messages from this level upwards are written to the standard error."},

    {mod, "max_batch", value_form::count, 0, 4294967295.0, COACCEL_MODEL(max_batch),
     "The most rows of a batch. 0: as many as the largest plan of the model has."},
    {mod, "max_delay", value_form::time, 0, 3600, COACCEL_MODEL(max_delay),
     "How long a request waits at most for others that share its batch; one that finds the model idle is run at once."},
    {mod, "instances", value_form::whole, 1, 64, COACCEL_MODEL(instances),
     "Batches that run at the same time on each device."},
    {mod, "replicas", value_form::count, 0, 4294967295.0, COACCEL_MODEL(replicas),
     "How many of the devices serve the model, in the order of the file. 0: all."},
    {mod, "max_queued", value_form::large, 1, no_limit, COACCEL_MODEL(max_queued),
     "Requests that wait for a batch; further ones are refused with status 429."},
    {mod, "versions", value_form::versions, 0, 0, COACCEL_MODEL(versions),
     "The versions that are loaded: latest, latest 3 for the three with the highest numbers, all, or a list such as 1, 4."},

    {ten, "api_key", value_form::token, 0, 0, COACCEL_TENANT(api_key),
     "What clients send as X-API-Key: KEY, or Authorization: Bearer KEY. Each tenant needs one of its own."},
    {ten, "weight", value_form::count, 1, 1000000, COACCEL_TENANT(weight),
     "While several tenants have requests, each gets device time in proportion to its weight."},
    {ten, "minimum_share", value_form::fraction, 0, 0.9, COACCEL_TENANT(minimum_share),
     "The part of all device time that the tenant gets at least while it has requests; for all tenants together at most "
     "0.9."},
    {ten, "rate", value_form::large, 0, 1e12, COACCEL_TENANT(rate),
     "Requests for each second; more are refused with status 429. 0: no limit."},
    {ten, "burst", value_form::large, 0, 1e12, COACCEL_TENANT(burst),
     "Requests at once after a pause, before the rate applies. 0: as many as the rate."},
    {ten, "max_queued", value_form::large, 1, no_limit, COACCEL_TENANT(max_queued),
     "Requests that wait for their turn; further ones are refused with status 429."},
    {ten, "max_running", value_form::large, 0, no_limit, COACCEL_TENANT(max_running),
     "Requests that run at the same time. 0: no limit."},
};
// clang-format on

#undef COACCEL_SERVER
#undef COACCEL_MODEL
#undef COACCEL_TENANT

} // namespace

std::string_view section_header(section_kind section) noexcept
{
    switch (section) {
    case section_kind::server: return "[server]";
    case section_kind::model: return "[model NAME]";
    case section_kind::tenant: return "[tenant NAME]";
    }
    return {};
}

std::span<const config_key> config_keys() noexcept
{
    return keys;
}

const config_key* find_key(section_kind section, std::string_view name) noexcept
{
    const auto* found =
        std::ranges::find_if(keys, [&](const config_key& k) { return k.section == section && k.name == name; });
    return found == std::end(keys) ? nullptr : found;
}

std::string unknown_key(section_kind section, std::string_view name)
{
    std::vector<std::string_view> names;
    for (const config_key& k : keys) {
        if (k.name == name)
            return "the key belongs in a section " + std::string(section_header(k.section));
        if (k.section == section)
            names.push_back(k.name);
    }
    // Names from a file may be long, and the search for similar ones takes time in proportion.
    return "unknown key" + (name.size() <= 64 ? detail::suggestion(name, names) : std::string());
}

} // namespace coaccel::server
