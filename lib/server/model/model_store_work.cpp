#include "server/model/model_problems.hpp"
#include "server/model/model_store.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <exception>
#include <utility>

// The changes of each model, one after another.
namespace coaccel::server {

void model_store::dispatch(repository_state::actions what)
{
    if (stopping_)
        return;
    for (auto& action : what) {
        const std::string name = action.model;
        add_task(name, std::move(action));
    }
    publish_index();
}

void model_store::add_task(const std::string& name, task what)
{
    work& w = work_[name];
    w.tasks.push_back(std::move(what));
    if (std::exchange(w.running, true))
        return;
    try {
        asio::co_spawn(strand_, work_on(name), asio::detached);
    } catch (...) {
        // The next task starts it.
        w.running = false;
        throw;
    }
}

void model_store::rolled_back(const model_rollback& what)
{
    if (!stopping_)
        add_task(what.model, what);
}

asio::awaitable<void> model_store::work_on(std::string name)
{
    const auto self = shared_from_this();
    const running_mark mark(*this);
    while (!work_[name].tasks.empty() && !stopping_) {
        task next = std::move(work_[name].tasks.front());
        work_[name].tasks.pop_front();
        try {
            co_await carry_out(std::move(next));
        } catch (const std::exception& e) {
            log_problem("a change of a model has failed", e);
        }
    }
    call_waiters(name);
    wake_if_settled();
}

void model_store::call_waiters(const std::string& name) noexcept
{
    const auto waiters = std::move(work_[name].waiters);
    work_.erase(name);
    error_code problem;
    try {
        problem = stopping_ ? stopped(name) : problem_of(name);
    } catch (const std::exception&) {
        problem = errc::out_of_memory;
    }
    for (const auto& done : waiters)
        try {
            done(problem);
        } catch (const std::exception& e) {
            log_problem("a reply about a model is lost", e);
        }
}

void model_store::wake_if_settled()
{
    if (state_.settled() || stopping_)
        settled_.cancel();
}

asio::awaitable<void> model_store::carry_out(task what)
{
    if (const auto* back = std::get_if<model_rollback>(&what)) {
        dispatch(state_.rolled_back(back->model, back->bad, back->good, "rolled back: " + back->reason));
        publish_index();
        co_return;
    }
    auto action = std::move(std::get<repository_action>(what));
    co_await load_or_unload(std::move(action));
}

/// Tells the state the end of the action in any case: otherwise the version would wait for it for ever.
asio::awaitable<void> model_store::load_or_unload(repository_action what)
{
    std::string problem;
    errc cause = errc::start_failed;
    try {
        if (what.what == repository_action::kind::unload) {
            co_await unload_one(what);
        } else {
            auto loaded = co_await load_one(what);
            if (!loaded) {
                problem = loaded.error().message();
                cause = cause_of(loaded.error());
            }
        }
    } catch (const std::exception& e) {
        problem = e.what();
        cause = errc::out_of_memory;
    }
    work_[what.model].fresh.reset();
    try {
        if (problem.empty())
            causes_.erase({what.model, what.version});
        else
            causes_.insert_or_assign({what.model, what.version}, cause);
    } catch (const std::exception&) {
        // Without memory, clients are told that the model is the reason.
    }
    if (!problem.empty() && !stopping_)
        detail::log(log_level::warning,
                    "model " + what.model + " version " + std::to_string(what.version) +
                        (what.what == repository_action::kind::unload ? " is not unloaded: " : " is not loaded: ") +
                        problem);
    if (what.what == repository_action::kind::unload)
        dispatch(state_.unload_ended(what.model, what.version));
    else
        dispatch(state_.load_ended(what.model, what.version, std::move(problem)));
}

asio::awaitable<void> model_store::unload_one(repository_action what)
{
    const auto model = find(what.model);
    if (!model)
        co_return;
    auto ended = co_await model->unload(what.version);
    if (!ended)
        detail::log(log_level::warning, "model " + what.model + ": " + ended.error().message());
    if (!model->ready()) {
        const std::lock_guard lock(mutex_);
        models_.erase(what.model);
    }
}

asio::awaitable<result<void>> model_store::load_one(repository_action what)
{
    auto model = find(what.model);
    if (!model) {
        auto tell = [weak = weak_from_this(), strand = strand_](const model_rollback& back) {
            asio::post(strand, [weak, back] {
                if (const auto self = weak.lock())
                    self->rolled_back(back);
            });
        };
        BOOST_OUTCOME_CO_TRY(auto made, served_model::create(executor_, what.model, metrics_, std::move(tell)));
        model = std::move(made);
        work_[what.model].fresh = model;
    }
    version_load how{executor_,
                     files_.get_executor(),
                     devices_,
                     metrics_,
                     what.model,
                     what.version,
                     model_path(options_.model_folder, what.model, what.version),
                     state_.target(what.model, what.version),
                     options_.model(what.model)};
    auto loaded = co_await model->load(std::move(how));
    if (loaded) {
        const std::lock_guard lock(mutex_);
        models_.emplace(what.model, std::move(model));
    }
    co_return loaded;
}

} // namespace coaccel::server
