#ifndef COACCEL_SERVER_SERVER_COUNTERS_HPP
#define COACCEL_SERVER_SERVER_COUNTERS_HPP

#include <coaccel/telemetry/histogram.hpp>
#include <coaccel/telemetry/metric_writer.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace coaccel::server {

/// What the server has done. Thread safety: any thread.
class server_counters {
public:
    void ended(unsigned status, std::chrono::nanoseconds time) noexcept
    {
        if (status < statuses_.size())
            statuses_[status].fetch_add(1, std::memory_order_relaxed);
        time_.observe(time);
    }

    void write(telemetry::metric_writer& out, std::size_t connections) const
    {
        for (std::size_t s = 0; s < statuses_.size(); ++s)
            if (const auto n = statuses_[s].load(std::memory_order_relaxed))
                out.counter("coaccel_server_requests_total",
                            "Requests by status; 499: the client has gone before the reply.",
                            {{"status", std::to_string(s)}}, static_cast<double>(n));
        out.gauge("coaccel_server_connections", "Open connections.", {}, static_cast<double>(connections));
        out.counter("coaccel_server_accepted_connections_total", "Connections that were accepted.", {},
                    static_cast<double>(accepted.load(std::memory_order_relaxed)));
        out.counter("coaccel_server_refused_connections_total", "Connections that were closed because of the limit.",
                    {}, static_cast<double>(refused.load(std::memory_order_relaxed)));
        out.counter("coaccel_server_clients_gone_total", "Requests whose client has gone before the answer.", {},
                    static_cast<double>(gone.load(std::memory_order_relaxed)));
        out.histogram("coaccel_server_request_seconds", "From the last byte of a request to the reply.", {}, time_);
    }

    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> refused{0};
    std::atomic<std::uint64_t> gone{0};

private:
    std::array<std::atomic<std::uint64_t>, 600> statuses_{};
    telemetry::histogram time_;
};

} // namespace coaccel::server

#endif
