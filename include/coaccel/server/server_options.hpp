#ifndef COACCEL_SERVER_SERVER_OPTIONS_HPP
#define COACCEL_SERVER_SERVER_OPTIONS_HPP

#include <coaccel/core/error.hpp>
#include <coaccel/core/log.hpp>
#include <coaccel/device/device_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace coaccel::server {

/// Which versions of a model are loaded.
struct version_policy {
    /// The rule that chooses versions.
    enum class rule : std::uint8_t {
        latest, ///< Those with the `count` highest numbers.
        all,    ///< All.
        listed, ///< Those of `list`.
    };

    rule how = rule::latest;         ///< The rule that chooses versions.
    std::uint32_t count = 1;         ///< For rule::latest: how many. At least 1.
    std::vector<std::uint64_t> list; ///< For rule::listed: the numbers, ascending, each from 1 and once; at least one.

    friend bool operator==(const version_policy&, const version_policy&) = default;
};

/// How a model is served.
struct model_options {
    /// The most rows of a batch. 0: as many as the largest plan of the model has.
    std::uint32_t max_batch = 0;
    /// How long a request waits at most for others that share its batch. It waits only while requests come faster than
    /// batches end: one that finds the model idle is run at once.
    std::chrono::nanoseconds max_delay = std::chrono::milliseconds(1);
    /// Batches that run at the same time on each device. From 1 to 64.
    int instances = 4;
    /// How many of the devices serve the model, in the order of server_options::devices. 0: all.
    std::uint32_t replicas = 0;
    /// Requests that wait for a batch; further ones are refused with status 429. At least 1.
    std::uint64_t max_queued = 4096;
    /// The versions that are loaded.
    version_policy versions{};

    friend bool operator==(const model_options&, const model_options&) = default;
};

/// A group of clients with the same API key, which gets a share of the device time.
struct tenant_limits {
    /// What clients send in the header field `X-API-Key`, or as `Authorization: Bearer KEY`. Printable ASCII characters
    /// without spaces; different for each tenant. Empty only for server_options::anonymous_limits.
    std::string api_key;
    /// While several tenants have requests, each gets device time in proportion to its weight. From 1 to 1,000,000.
    std::uint32_t weight = 1;
    /// The part of all device time that the tenant gets at least while it has requests. From 0 to 0.9, and at most 0.9
    /// for all tenants together.
    double minimum_share = 0;
    /// Requests for each second; more are refused with status 429. 0: no limit.
    std::uint64_t rate = 0;
    /// Requests at once after a pause, before `rate` applies. 0: as many as `rate`.
    std::uint64_t burst = 0;
    /// Requests that wait for their turn; further ones are refused with status 429. At least 1.
    std::uint64_t max_queued = 1024;
    /// Requests that run at the same time. 0: no limit.
    std::uint64_t max_running = 0;

    friend bool operator==(const tenant_limits&, const tenant_limits&) = default;
};

/// What one connection, and all of them together, may use.
struct connection_limits {
    /// Open connections. A further one replaces the one that has waited longest for a request; if none waits, it is
    /// closed at once. At least 1. Fewer if the system gives the process fewer descriptors; some are kept for workers
    /// and files.
    std::size_t max_connections = 16384;
    /// A longer body of a request is refused with status 413. From 1 KiB to 2 GiB.
    std::size_t max_body_bytes = std::size_t(64) << 20;
    /// What the bodies of all requests together may use. A request that exceeds it is refused with status 503. At least
    /// 1 KiB.
    std::size_t max_total_body_bytes = std::size_t(1) << 30;
    /// A longer header of a request is refused with status 431. From 256 bytes to 1 MiB.
    std::size_t max_header_bytes = 16384;
    /// A connection without a request is closed after this time.
    std::chrono::nanoseconds idle_timeout = std::chrono::minutes(5);
    /// A connection is closed if the header of a request is not complete this long after its first byte.
    std::chrono::nanoseconds header_timeout = std::chrono::seconds(10);
    /// A connection is closed if the body of a request, or the client's reading of a reply, makes no progress for this
    /// time.
    std::chrono::nanoseconds transfer_timeout = std::chrono::seconds(30);
    /// The deadline of a request that names none. It then gets status 504.
    std::chrono::nanoseconds request_timeout = std::chrono::seconds(30);
    /// The longest deadline that a request may name; a longer one is shortened to it.
    std::chrono::nanoseconds max_request_timeout = std::chrono::minutes(5);

    friend bool operator==(const connection_limits&, const connection_limits&) = default;
};

/// The device that a server uses if its options name none: the best of the machine, in a worker process, with a
/// standby process that takes over when it faults.
inline device_options default_device() noexcept
{
    device_options d;
    d.isolation = isolation::worker;
    d.standby = 1;
    return d;
}

/// The options of an inference server. The configuration file of `coaccel-serve` has a key for each of them.
///
/// Exceptions: check() does not throw; copying throws std::bad_alloc.
struct server_options {
    /// The IP address to listen on. By default only programs on this machine can connect.
    std::string address = "127.0.0.1";
    std::uint16_t port = 8000; ///< The port; 0 lets the system choose one.
    /// The folder with the models, each as NAME/VERSION/model.plan.
    std::string model_folder = "models";
    /// The devices that run models. Empty: default_device().
    std::vector<device_options> devices;
    /// Threads that serve connections. 0: one for each CPU, at most 8. At most 256.
    int io_threads = 0;
    connection_limits limits{}; ///< What connections may use.
    /// A file to which a line is appended for each request; "-": the standard output; "off": none.
    std::string access_log = "off";
    /// How long requests may take to end after SIGTERM. Then the program exits all the same.
    std::chrono::nanoseconds drain_timeout = std::chrono::seconds(30);
    /// How often the model folder is scanned for changes. 0: only when a client asks for it. Otherwise at least 10 ms.
    std::chrono::nanoseconds poll_interval = std::chrono::seconds(1);
    /// Whether requests without an API key are answered.
    bool anonymous = true;
    /// The limits of all requests without an API key together.
    tenant_limits anonymous_limits{};
    /// The tenants, by name.
    std::map<std::string, tenant_limits, std::less<>> tenants{};
    /// How models are served that have no options of their own.
    model_options model_defaults{};
    /// How certain models are served, by name.
    std::map<std::string, model_options, std::less<>> models{};
    /// If it is not empty, the live page and the metrics need it, as `Authorization: Bearer TOKEN`. Printable ASCII
    /// characters without spaces.
    std::string telemetry_token;
    /// A folder with files that are served under `/page/`, such as a page that uses a model. Empty: none.
    std::string page_folder;
    /// coaccel-serve writes messages from this level upwards to the standard error. Other programs call set_log_sink.
    log_level log = log_level::info;

    /// How the model of this name is served.
    const model_options& model(std::string_view name) const noexcept
    {
        const auto found = models.find(name);
        return found == models.end() ? model_defaults : found->second;
    }

    /// errc::invalid_option if an option is out of range, or contradicts another; the message names it.
    [[nodiscard]] COACCEL_DECL error_code check() const noexcept;
};

} // namespace coaccel::server

#endif
