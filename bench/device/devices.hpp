#ifndef COACCEL_BENCH_DEVICE_DEVICES_HPP
#define COACCEL_BENCH_DEVICE_DEVICES_HPP

#include <coaccel/device/device.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace coaccel::bench {

/// Runs io until a deferred operation has completed; ends the program when it fails.
template <class T, class Operation>
T await(asio::io_context& io, Operation operation)
{
    std::optional<result<T>> outcome;
    std::move(operation)([&](result<T> r) { outcome = std::move(r); });
    io.restart();
    while (!outcome)
        io.run_one();
    if (!outcome->has_value()) {
        std::fprintf(stderr, "bench: %s\n", outcome->error().message().c_str());
        std::exit(1);
    }
    return std::move(*outcome).value();
}

inline device make_device(asio::io_context& io, host_mode mode, int threads = 1)
{
    device_options o;
    o.kind = device_kind::host;
    o.host.mode = mode;
    o.host.threads = threads;
    return await<device>(io, device::async_create(io.get_executor(), o));
}

/// Runs io until no work is left; returns the seconds.
inline double timed_run(asio::io_context& io)
{
    const auto began = std::chrono::steady_clock::now();
    io.restart();
    io.run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

} // namespace coaccel::bench

#endif
