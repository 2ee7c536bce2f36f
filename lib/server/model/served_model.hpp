#ifndef COACCEL_SERVER_MODEL_SERVED_MODEL_HPP
#define COACCEL_SERVER_MODEL_SERVED_MODEL_HPP

#include "server/model/model_version.hpp"

#include <coaccel/serve/hot_swap.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace coaccel::server {

/// Whether an error counts against the version that answered. Unlike serve::is_version_failure, a deadline does not:
/// clients choose it, and could force a rollback with short ones. Neither does a failed device: all versions have the
/// same ones.
bool counts_against_version(const error_code& ec) noexcept;

/// The version that answers a request. With a lease, the version is judged by the outcome.
struct picked_version {
    version_ptr version;
    serve::version_lease<version_ptr> lease;

    void ended(const error_code& ec) noexcept
    {
        if (version)
            version->ended(ec);
        if (lease)
            lease.ended(ec);
    }
};

/// A version that was replaced by the one before it, because too many of its requests have failed.
struct model_rollback {
    std::string model;
    std::uint64_t bad = 0;  ///< The version.
    std::uint64_t good = 0; ///< The one that answers in its place; the same number for the earlier content of its file.
    std::string reason;
};

/// A model with its loaded versions. Requests that name no version go to the current one, which is that with the
/// highest number, behind a hot_swap; others to the one that they name.
///
/// load() and unload() are called by one coroutine at a time. Thread safety of the other functions: any thread.
class served_model {
public:
    using rollback_handler = std::function<void(const model_rollback&)>;

    /// `on_rollback` is called on any thread of the executor.
    static result<std::shared_ptr<served_model>> create(const asio::any_io_executor& ex, std::string name,
                                                        const telemetry::registry& metrics,
                                                        rollback_handler on_rollback = {});

    served_model(std::string name, serve::hot_swap<version_ptr> current, telemetry::registration metrics,
                 rollback_handler on_rollback)
        : name_(std::move(name)), current_(std::move(current)), metrics_(std::move(metrics)),
          on_rollback_(std::move(on_rollback))
    {}

    const std::string& name() const noexcept { return name_; }

    /// The current version if `version` is empty.
    ///
    /// Errors: errc::invalid_argument if there is no such version; errc::actor_stopped if none is loaded, or if the
    /// version was rolled back; errc::plan_quarantined.
    result<picked_version> pick(std::string_view version) const;

    /// Loads a version, or loads it again, and switches to it if its number is not below that of the current one. An
    /// error leaves everything as it was.
    asio::awaitable<result<void>> load(version_load how);

    /// Takes a version out of service after its last request. If it is the current one, the one with the highest number
    /// of the others becomes current; if there is none, the model answers no requests.
    asio::awaitable<result<void>> unload(std::uint64_t number);

    /// Ends all versions after their last requests.
    asio::awaitable<void> shut_down();

    std::vector<version_ptr> versions() const;
    bool ready() const;

private:
    asio::awaitable<result<void>> make_current(version_ptr version);
    void changed(const serve::swap_event& event);
    void add(std::uint64_t number, version_ptr version);

    const std::string name_;
    serve::hot_swap<version_ptr> current_;
    telemetry::registration metrics_;
    const rollback_handler on_rollback_;

    mutable std::mutex mutex_;
    std::map<std::uint64_t, version_ptr> versions_;
    std::map<std::uint64_t, std::string> rolled_back_; ///< With the reason.
};

} // namespace coaccel::server

#endif
