#include "server/model/model_store.hpp"

#include "server/model/model_problems.hpp"
#include "server/protocol/in_quotes.hpp"
#include "server/repository/unknown_models.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/core/log.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <utility>

namespace coaccel::server {
namespace {

using detail::op_error;

constexpr auto as_tuple_awaitable = asio::as_tuple(asio::use_awaitable);

asio::awaitable<model_scan> scan_in_background(std::string folder)
{
    co_return scan_models(folder);
}

std::map<std::string, version_policy, std::less<>> policies_of(const server_options& options)
{
    std::map<std::string, version_policy, std::less<>> all;
    for (const auto& [name, m] : options.models)
        all.emplace(name, m.versions);
    return all;
}

asio::awaitable<void> nothing()
{
    co_return;
}

const char* state_name(version_phase phase) noexcept
{
    switch (phase) {
    case version_phase::loading: return "LOADING";
    case version_phase::ready:
    case version_phase::reloading: return "READY";
    case version_phase::unloading: return "UNLOADING";
    default: return "UNAVAILABLE";
    }
}

} // namespace

model_store::model_store(const asio::any_io_executor& ex, const server_options& options, telemetry::registry metrics)
    : executor_(ex), strand_(asio::make_strand(ex)), options_(options), metrics_(std::move(metrics)),
      state_(options.model_defaults.versions, policies_of(options)), interval_(strand_), settled_(strand_),
      ended_(strand_)
{}

model_store::~model_store()
{
    files_.join();
}

model_store::running_mark::~running_mark()
{
    if (--store_.running_ == 0)
        store_.ended_.cancel();
}

asio::awaitable<void> model_store::start(std::vector<device> devices)
{
    const auto self = shared_from_this();
    const running_mark mark(*this);
    devices_ = std::move(devices);
    co_await scan(repository_state::settling::assumed);
    while (!state_.settled() && !stopping_) {
        settled_.expires_at(asio::steady_timer::time_point::max());
        co_await settled_.async_wait(as_tuple_awaitable);
    }
    if (options_.poll_interval.count() > 0 && !stopping_)
        asio::co_spawn(strand_, scan_at_intervals(), asio::detached);
}

asio::awaitable<void> model_store::scan(repository_state::settling how)
{
    const model_scan found =
        co_await asio::co_spawn(files_.get_executor(), scan_in_background(options_.model_folder), asio::use_awaitable);
    if (stopping_)
        co_return;
    dispatch(state_.scanned(found, how));
    for (const auto& problem : state_.new_problems())
        detail::log(log_level::warning, "model folder: " + problem);
    publish_index();
    if (!std::exchange(scanned_, true))
        for (const auto& warning : unknown_models(options_, found))
            detail::log(log_level::warning, warning);
}

asio::awaitable<void> model_store::scan_at_intervals()
{
    const auto self = shared_from_this();
    const running_mark mark(*this);
    while (!stopping_) {
        // What fails for lack of memory is tried again.
        try {
            interval_.expires_after(options_.poll_interval);
            co_await interval_.async_wait(as_tuple_awaitable);
            if (!stopping_)
                co_await scan(repository_state::settling::needed);
        } catch (const std::exception& e) {
            log_problem("a scan of the folder has failed", e);
        }
    }
}

void model_store::publish_index()
{
    std::vector<index_entry> all;
    for (auto& v : state_.index())
        all.push_back({std::move(v.model), std::to_string(v.version), state_name(v.phase), std::move(v.reason)});
    const std::lock_guard lock(mutex_);
    index_ = std::move(all);
}

error_code model_store::problem_of(const std::string& name) const
{
    const auto found = state_.problem_of(name);
    if (!found)
        return {};
    const auto cause = causes_.find({name, found->version});
    return op_error(cause == causes_.end() ? errc::start_failed : cause->second, "model",
                    {in_quotes(name), " version ", found->version, ": ", found->text});
}

void model_store::wait_for(const std::string& name, done_handler done)
{
    const auto found = work_.find(name);
    if (found == work_.end())
        return done(problem_of(name));
    found->second.waiters.push_back(std::move(done));
}

void model_store::load(std::string name, done_handler done)
{
    asio::co_spawn(strand_, load_by_hand(std::move(name), std::move(done)), asio::detached);
}

void model_store::unload(std::string name, done_handler done)
{
    asio::co_spawn(strand_, unload_by_hand(std::move(name), std::move(done)), asio::detached);
}

asio::awaitable<void> model_store::load_by_hand(std::string name, done_handler done)
{
    const auto self = shared_from_this();
    const running_mark mark(*this);
    error_code problem;
    try {
        if (!stopping_)
            co_await scan(repository_state::settling::assumed);
        auto wanted = stopping_ ? std::nullopt : state_.load(name);
        if (wanted) {
            // In any case: the state waits for the end of each action.
            dispatch(std::move(*wanted));
            if (state_.has_version(name)) {
                wait_for(name, done);
                co_return;
            }
        }
        if (stopping_)
            problem = stopped(name);
        else if (wanted)
            problem = op_error(errc::invalid_argument, "model",
                               {in_quotes(name), " has no version that its option versions chooses"});
        else
            problem = op_error(errc::invalid_argument, "model", {"the folder has no model ", in_quotes(name)});
    } catch (const std::exception& e) {
        log_problem("a model is not loaded", e);
        problem = errc::out_of_memory;
    }
    done(problem);
}

asio::awaitable<void> model_store::unload_by_hand(std::string name, done_handler done)
{
    const auto self = shared_from_this();
    const running_mark mark(*this);
    error_code problem;
    try {
        auto wanted = stopping_ ? std::nullopt : state_.unload(name);
        if (wanted) {
            dispatch(std::move(*wanted));
            // Why a version was not loaded before does not matter.
            wait_for(name, [done](error_code) { done({}); });
            co_return;
        }
        problem = stopping_ ? stopped(name)
                            : op_error(errc::invalid_argument, "model", {"the folder has no model ", in_quotes(name)});
    } catch (const std::exception& e) {
        log_problem("a model is not unloaded", e);
        problem = errc::out_of_memory;
    }
    done(problem);
}

asio::awaitable<void> model_store::stop()
{
    const auto self = shared_from_this();
    stopping_ = true;
    interval_.cancel();
    settled_.cancel();
    auto models = all();
    for (const auto& [name, w] : work_)
        if (w.fresh)
            models.push_back(w.fresh);
    for (const auto& model : models)
        co_await model->shut_down();
    co_await wait_for_work();
    // Those whose load ended meanwhile.
    for (const auto& model : all())
        co_await model->shut_down();
    const std::lock_guard lock(mutex_);
    models_.clear();
}

asio::awaitable<void> model_store::wait_for_work()
{
    while (running_ > 0) {
        ended_.expires_at(asio::steady_timer::time_point::max());
        co_await ended_.async_wait(as_tuple_awaitable);
    }
    // A load that was given up may still read its file. The thread does one thing after another.
    co_await asio::co_spawn(files_.get_executor(), nothing(), asio::use_awaitable);
}

std::shared_ptr<served_model> model_store::find(std::string_view name) const
{
    const std::lock_guard lock(mutex_);
    const auto found = models_.find(name);
    return found == models_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<served_model>> model_store::all() const
{
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<served_model>> models;
    for (const auto& [name, m] : models_)
        models.push_back(m);
    return models;
}

std::string model_store::why_not(std::string_view name) const
{
    const std::lock_guard lock(mutex_);
    for (const auto& entry : index_)
        if (entry.model == name && !entry.reason.empty())
            return "model " + in_quotes(name) + " is not loaded: version " + entry.version + ": " + entry.reason;
    return "there is no model " + in_quotes(name);
}

std::vector<index_entry> model_store::index() const
{
    const std::lock_guard lock(mutex_);
    return index_;
}

} // namespace coaccel::server
