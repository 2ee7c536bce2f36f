#ifndef COACCEL_SERVE_HOT_SWAP_CORE_HPP
#define COACCEL_SERVE_HOT_SWAP_CORE_HPP

#include "device/device_executor.hpp"
#include "serve/version_switch.hpp"

#include <coaccel/core/detail/shutdown_hook.hpp>
#include <coaccel/core/log.hpp>
#include <coaccel/serve/detail/hot_swap_access.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace coaccel::detail {

/// What is behind every copy of a hot_swap. Requests and other calls change the version_switch on the caller's thread,
/// under a lock that is held only for that. What follows from it, its actions, are carried out in turns on the user's
/// executor, one turn at a time and without the lock.
class hot_swap_core final : public shutdown_hook, public std::enable_shared_from_this<hot_swap_core> {
public:
    using number = version_switch::number;

    static hot_swap_ptr make(asio::any_io_executor ex, const serve::hot_swap_options& options);

    hot_swap_core(asio::any_io_executor ex, const serve::hot_swap_options& options);
    ~hot_swap_core();

    // Called from any thread.
    asio::any_io_executor executor() const;
    bool has_lost_its_context() const noexcept;
    const std::string& name() const noexcept { return options_.name; }
    serve::hot_swap_stats stats() const;
    result<picked_version> pick();
    void ended(number n, const error_code* ec) noexcept;
    /// As begin() in hot_swap_access.hpp.
    bool load(load_version_op& op);
    void cancel(load_version_op& op);
    void loaded(number n, const error_code& ec, std::shared_ptr<const served_version> what);
    void warmed_up(number n, const error_code& ec);
    void closed(number n) noexcept;
    error_code roll_back(number from);
    error_code confirm(number which);
    /// As begin() in hot_swap_access.hpp.
    bool stop(stop_swap_op& op);
    void cancel(stop_swap_op& op);
    void handle_dropped();
    /// The timer has expired.
    void wake();

    // shutdown_hook
    void shutdown(async_op_list& out) noexcept override;

private:
    using clock = std::chrono::steady_clock;
    using action = version_switch::action;

    struct counts {
        std::uint64_t completed = 0;
        std::uint64_t failed = 0;
        std::uint64_t other = 0;
    };

    struct record {
        std::string name;
        /// Until the load has ended.
        std::shared_ptr<version_maker> maker;
        load_version_op* op = nullptr;
        std::shared_ptr<const served_version> what;
        error_code load_error;
        error_code last_failure;
        counts requests;
        bool overdue = false;
    };

    using records = std::map<number, record>;

    struct turn_function;
    struct self_reference;
    /// What an action needs when it is carried out without the lock.
    struct job;

    void add_record(records::node_type node, number n, load_version_op& op) noexcept;
    void schedule();
    void turn();
    [[nodiscard]] bool prepare(job& j);
    void prepare_load_end(job& j, record& r);
    void prepare_rollback(job& j, const record& r);
    void perform(job& j);
    void notify(const job& j) const noexcept;
    void begin_stop(coaccel::shutdown mode);
    void close_unwanted(number n, const std::shared_ptr<const served_version>& what);
    std::string label(number n) const;
    bool is_failure(const error_code& ec) const;
    error_code stopped_error() const;

    device_executor executor_;
    const serve::hot_swap_options options_;
    mutable std::mutex mutex_;
    version_switch versions_;
    records records_;
    wait_list loads_;
    wait_list stops_;
    number last_number_ = 0;
    serve::hot_swap_stats counters_;
    /// A turn is posted or runs.
    bool in_turn_ = false;
    /// The execution context is being destroyed.
    bool closed_ = false;
    // Keeps the hot_swap alive until it has stopped or its execution context is destroyed.
    std::unique_ptr<self_reference> self_;
};

} // namespace coaccel::detail

#endif
