#ifndef COACCEL_BENCH_SERVER_SERVED_IDENTITY_HPP
#define COACCEL_BENCH_SERVER_SERVED_IDENTITY_HPP

#include <coaccel/device/device_options.hpp>
#include <coaccel/server/server.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace coaccel::bench {

/// Runs an io_context on a thread of its own.
class io_thread {
public:
    io_thread() : work_(io.get_executor()), thread_([this] { io.run(); }) {}
    ~io_thread()
    {
        work_.reset();
        io.stop();
        thread_.join();
    }

    boost::asio::io_context io{1};

private:
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::thread thread_;
};

/// A server with one model, "identity", whose rows have 16 floats; on a thread of its own.
class served_identity {
public:
    explicit served_identity(const device_options& device);
    ~served_identity();

    std::uint16_t port() const { return server_.port(); }
    telemetry::registry& metrics() { return *metrics_; }

    /// A request for one row, with its header.
    static std::string binary_request();
    static std::string json_request();

private:
    std::filesystem::path folder_;
    io_thread thread_;
    std::unique_ptr<telemetry::registry> metrics_;
    server::server server_;
};

} // namespace coaccel::bench

#endif
