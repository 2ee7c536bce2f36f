#ifndef COACCEL_SERVER_MODEL_MODEL_VERSION_HPP
#define COACCEL_SERVER_MODEL_MODEL_VERSION_HPP

#include "server/model/quarantine.hpp"
#include "server/protocol/documents.hpp"
#include "server/protocol/signature.hpp"
#include "server/repository/model_scan.hpp"

#include <coaccel/device/device.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>
#include <coaccel/server/server_options.hpp>
#include <coaccel/telemetry/registry.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace coaccel::server {

/// What requests of a version have come to. Thread safety: any thread.
class version_counters {
public:
    void succeeded(std::uint64_t rows, std::chrono::nanoseconds time) noexcept;
    void failed(std::chrono::nanoseconds time) noexcept;

    void write(model_statistics& to) const noexcept;

private:
    std::atomic<std::uint64_t> successes_{0};
    std::atomic<std::uint64_t> success_ns_{0};
    std::atomic<std::uint64_t> failures_{0};
    std::atomic<std::uint64_t> failure_ns_{0};
    std::atomic<std::uint64_t> rows_{0};
    /// Milliseconds since 1970.
    std::atomic<std::int64_t> last_{0};
};

/// A loaded version of a model. When the last pointer to it is gone, its batcher ends after its last request.
class model_version {
public:
    model_version(std::uint64_t number, model_signature signature, serve::dynamic_batcher batcher,
                  telemetry::registration metrics)
        : number(number), signature(std::move(signature)), batcher(std::move(batcher)), metrics_(std::move(metrics))
    {}

    const std::uint64_t number;
    const model_signature signature;
    const serve::dynamic_batcher batcher;
    mutable version_counters counters;

    model_statistics statistics() const;

    /// A request has ended.
    void ended(const error_code& ec) const noexcept;
    /// errc::plan_quarantined if the version takes no requests for now. Revives it when its time has come.
    error_code check_quarantine() const;

private:
    telemetry::registration metrics_;
    mutable quarantine quarantine_;
};

using version_ptr = std::shared_ptr<const model_version>;

/// All that loading a version needs.
struct version_load {
    asio::any_io_executor executor; ///< Of what is loaded.
    asio::any_io_executor files;    ///< Where files are read, which blocks.
    std::vector<device> devices;
    telemetry::registry metrics;
    std::string model;
    std::uint64_t number = 0;
    std::string path;
    file_identity file; ///< Of the content that is to be loaded.
    model_options options;
};

/// Reads the file and loads it on the devices.
///
/// Errors: those of read_content, of plan_set_description::load, of batch_model::create and of
/// dynamic_batcher::async_create.
asio::awaitable<result<version_ptr>> load_version(version_load how);

/// Runs one row of zeros, so that what is slow the first time happens before the first request.
asio::awaitable<result<void>> warm_up(version_ptr version);

} // namespace coaccel::server

#endif
