#ifndef COACCEL_SERVER_MODEL_MODEL_STORE_HPP
#define COACCEL_SERVER_MODEL_MODEL_STORE_HPP

#include "server/model/served_model.hpp"
#include "server/repository/repository_state.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace coaccel::server {

/// The models of a folder. Carries out what the repository_state decides: the actions of one model one after another,
/// those of different models at the same time.
///
/// Thread safety: any thread.
class model_store : public std::enable_shared_from_this<model_store> {
public:
    using done_handler = std::function<void(error_code)>;

    model_store(const asio::any_io_executor& ex, const server_options& options, telemetry::registry metrics);
    model_store(const model_store&) = delete;
    model_store& operator=(const model_store&) = delete;
    ~model_store();

    /// Where start() and stop() run.
    const asio::any_io_executor& strand() const noexcept { return strand_; }

    /// Scans the folder and loads its models on these devices, then scans at intervals.
    /// Completes when: all models have been loaded, or have failed.
    asio::awaitable<void> start(std::vector<device> devices);

    /// Stops scanning, and ends all models after their last requests.
    /// Completes when: nothing of the store runs any more, on its strand or in its thread for files.
    asio::awaitable<void> stop();

    /// Null: there is no such model.
    std::shared_ptr<served_model> find(std::string_view name) const;
    std::vector<std::shared_ptr<served_model>> all() const;
    std::vector<index_entry> index() const;
    /// Why find() has no such model, for clients.
    std::string why_not(std::string_view name) const;

    /// Scans the folder, and loads the model. The handler is called when its versions have been loaded.
    ///
    /// Errors: errc::invalid_argument if the folder has no such model; errc::start_failed with the reason if one of its
    /// versions cannot be loaded; errc::device_failed and others if the same load may succeed later.
    void load(std::string name, done_handler done);
    /// Unloads the model. The handler is called after its last request.
    ///
    /// Errors: errc::invalid_argument if there is no such model.
    void unload(std::string name, done_handler done);

private:
    /// A rollback is a task, so that it is seen in the order of the actions of its model.
    using task = std::variant<repository_action, model_rollback>;
    struct work {
        std::deque<task> tasks;
        bool running = false;
        /// The one whose first version is being loaded.
        std::shared_ptr<served_model> fresh;
        std::vector<done_handler> waiters;
    };

    /// Counts a coroutine that stop() waits for.
    class running_mark {
    public:
        explicit running_mark(model_store& store) noexcept : store_(store) { ++store_.running_; }
        running_mark(const running_mark&) = delete;
        running_mark& operator=(const running_mark&) = delete;
        ~running_mark();

    private:
        model_store& store_;
    };

    // On the strand.
    asio::awaitable<void> scan(repository_state::settling how);
    asio::awaitable<void> scan_at_intervals();
    asio::awaitable<void> load_by_hand(std::string name, done_handler done);
    asio::awaitable<void> unload_by_hand(std::string name, done_handler done);
    void dispatch(repository_state::actions what);
    void add_task(const std::string& name, task what);
    void rolled_back(const model_rollback& what);
    void wait_for(const std::string& name, done_handler done);
    asio::awaitable<void> work_on(std::string name);
    asio::awaitable<void> carry_out(task what);
    asio::awaitable<void> load_or_unload(repository_action what);
    asio::awaitable<result<void>> load_one(repository_action what);
    asio::awaitable<void> unload_one(repository_action what);
    asio::awaitable<void> wait_for_work();
    void call_waiters(const std::string& name) noexcept;
    void publish_index();
    error_code problem_of(const std::string& name) const;
    void wake_if_settled();

    const asio::any_io_executor executor_;
    const asio::any_io_executor strand_;
    const server_options options_;
    const telemetry::registry metrics_;
    asio::thread_pool files_{1};

    // Used on the strand only.
    std::vector<device> devices_;
    repository_state state_;
    std::map<std::string, work> work_;
    /// Of the last load of each version that failed, as cause_of().
    std::map<std::pair<std::string, std::uint64_t>, errc> causes_;
    bool scanned_ = false;
    asio::steady_timer interval_;
    asio::steady_timer settled_;
    bool stopping_ = false;
    std::size_t running_ = 0;
    asio::steady_timer ended_;

    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<served_model>, std::less<>> models_;
    std::vector<index_entry> index_;
};

} // namespace coaccel::server

#endif
