#include "telemetry/registry_state.hpp"

#include "telemetry/device_samples.hpp"
#include "telemetry/object_samples.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <utility>

namespace coaccel::detail {
namespace {

constexpr char dropped_name[] = "coaccel_telemetry_dropped_samples_total";

} // namespace

/// The members are guarded by the mutex of the registry until `finishing` is set; then only finish() uses the answers.
class registry_state::collection final : public stats_listener, public std::enable_shared_from_this<collection> {
public:
    collection(std::weak_ptr<registry_state> registry, collection_op& op, sources asked)
        : registry_(std::move(registry)), op(&op), asked(std::move(asked)), answers(this->asked.size()),
          heard(this->asked.size())
    {
        missing = static_cast<std::size_t>(
            std::ranges::count_if(this->asked, [](const auto& s) { return s->query() != nullptr; }));
    }

    void answered(std::size_t index, std::shared_ptr<const device_stats> stats) noexcept override
    {
        if (const auto r = registry_.lock())
            r->answered(shared_from_this(), index, std::move(stats));
    }

private:
    const std::weak_ptr<registry_state> registry_;

public:
    /// Null: cancelled.
    collection_op* op;
    const sources asked;
    std::vector<std::shared_ptr<const device_stats>> answers;
    std::vector<bool> heard;
    std::size_t missing = 0;
    std::size_t late = 0;
    std::size_t lost = 0;
    bool finishing = false;
    std::optional<asio::steady_timer> timer;
};

registry_state::registry_state(asio::any_io_executor ex, const telemetry::registry_options& options)
    : executor_(std::move(ex)), options_(options)
{
    // The names are valid and not in use.
    collections_ =
        metrics_.add_counter("coaccel_telemetry_collections_total", "Collections of all metrics.", {}).value();
    dropped_ = metrics_.add_counter(dropped_name, "Samples that were not valid or collided with others.", {}).value();
    timeouts_ = metrics_
                    .add_counter("coaccel_telemetry_source_timeouts_total",
                                 "Devices that did not answer a collection in time.", {})
                    .value();
    errors_ = metrics_
                  .add_counter("coaccel_telemetry_source_errors_total",
                               "Sources that threw, or whose executor was destroyed.", {})
                  .value();
    enlist(executor_.get());
}

registry_state::~registry_state()
{
    withdraw();
}

void registry_state::add(std::shared_ptr<registered_source> source)
{
    const std::lock_guard lock(mutex_);
    sources_.push_back(std::move(source));
}

void registry_state::remove(const registered_source& source) noexcept
{
    // Destroyed after the lock is released: a source may own anything.
    std::shared_ptr<registered_source> removed;
    const std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(sources_, &source, [](const auto& s) { return s.get(); });
    if (at == sources_.end())
        return;
    removed = std::move(*at);
    sources_.erase(at);
}

std::vector<telemetry::device_sample> registry_state::devices() const
{
    sources all;
    {
        const std::lock_guard lock(mutex_);
        all = sources_;
    }
    std::vector<telemetry::device_sample> found;
    for (const auto& s : all)
        if (s->query())
            found.push_back({s->name(), s->query()->status(), std::nullopt});
    return found;
}

void registry_state::collect(collection_op& op)
{
    struct discard {
        void operator()(collection_op* o) const noexcept { o->destroy(); }
    };
    std::unique_ptr<collection_op, discard> owned(&op);
    std::shared_ptr<collection> c;
    {
        const std::lock_guard lock(mutex_);
        if (shut_down_)
            return;
        c = std::make_shared<collection>(weak_from_this(), op, sources_);
        active_.push_back(c);
        try {
            if (c->missing == 0)
                post_finish(c);
            else
                arm_timer(c);
        } catch (...) {
            active_.pop_back();
            throw;
        }
        waiting_.add(*owned.release());
        collections_.add();
    }
    for (std::size_t i = 0; i < c->asked.size(); ++i) {
        try {
            if (const auto& query = c->asked[i]->query())
                query->ask(c, i);
        } catch (const std::bad_alloc&) {
            // The collection has begun, so its handler must be called.
            answered(c, i, nullptr);
        }
    }
}

void registry_state::cancel(collection_op& op)
{
    std::shared_ptr<collection> ended;
    {
        const std::lock_guard lock(mutex_);
        if (!op.waiting())
            return;
        waiting_.remove(op);
        const auto at = std::ranges::find(active_, &op, [](const auto& c) { return c->op; });
        ended = *at;
        ended->op = nullptr;
        ended->finishing = true;
        ended->timer.reset();
        active_.erase(at);
    }
    op.ec = asio::error::operation_aborted;
    op.post();
}

void registry_state::shutdown(async_op_list& out) noexcept
{
    const std::lock_guard lock(mutex_);
    shut_down_ = true;
    waiting_.move_all(out);
    for (const auto& c : active_) {
        c->op = nullptr;
        c->finishing = true;
        c->timer.reset();
    }
    executor_.let_go(out);
}

void registry_state::answered(const std::shared_ptr<collection>& c, std::size_t index,
                              std::shared_ptr<const device_stats> stats) noexcept
{
    const std::lock_guard lock(mutex_);
    if (c->finishing || c->heard[index])
        return;
    c->heard[index] = true;
    c->lost += stats ? 0 : 1;
    c->answers[index] = std::move(stats);
    if (--c->missing > 0)
        return;
    c->finishing = true;
    // Calls the handler of the timer, which exists already: this must not fail for lack of memory.
    c->timer->cancel();
}

void registry_state::arm_timer(const std::shared_ptr<collection>& c)
{
    // The handler keeps the registry until the collection ends, also if its last copy is destroyed.
    c->timer.emplace(executor_.get());
    c->timer->expires_after(options_.source_timeout);
    c->timer->async_wait([self = shared_from_this(), ready = c](error_code) { self->finish(ready); });
}

void registry_state::post_finish(const std::shared_ptr<collection>& c)
{
    asio::post(executor_.get(), [self = shared_from_this(), ready = c] { self->finish(ready); });
}

void registry_state::finish(const std::shared_ptr<collection>& c)
{
    {
        const std::lock_guard lock(mutex_);
        if (!c->op)
            return;
        if (!c->finishing)
            c->late = c->missing;
        c->finishing = true;
    }
    telemetry::snapshot all;
    error_code failed;
    try {
        all = compose(*c);
    } catch (const std::bad_alloc&) {
        failed = make_error_code(errc::out_of_memory);
    }
    collection_op* done = nullptr;
    {
        const std::lock_guard lock(mutex_);
        c->timer.reset();
        if (!c->op)
            return;
        done = std::exchange(c->op, nullptr);
        waiting_.remove(*done);
        std::erase(active_, c);
    }
    done->ec = failed;
    done->value = std::move(all);
    done->post();
}

telemetry::snapshot registry_state::compose(collection& c)
{
    timeouts_.add(c.late);
    errors_.add(c.lost);
    telemetry::snapshot all;
    sample_set accepted;
    sample_list owned;
    with_metrics([&owned](const owned_metrics& m) { m.write(owned); });
    telemetry::metric_writer shared(owned);
    write_caches(shared);
    accepted.add(std::move(owned));
    for (std::size_t i = 0; i < c.asked.size(); ++i) {
        registered_source& source = *c.asked[i];
        sample_list written;
        try {
            if (!source.query()) {
                source.call(written);
            } else {
                telemetry::metric_writer writer(written);
                if (c.answers[i])
                    write_device(writer, source.name(), *c.answers[i]);
                telemetry::device_sample one{source.name(), source.query()->status(), std::nullopt};
                if (c.answers[i])
                    one.stats = *c.answers[i];
                all.devices.push_back(std::move(one));
            }
            accepted.add(std::move(written));
        } catch (...) {
            errors_.add();
        }
    }
    dropped_.add(accepted.dropped());
    accepted.replace(dropped_name, static_cast<double>(dropped_.value()));
    accepted.replace("coaccel_telemetry_source_errors_total", static_cast<double>(errors_.value()));
    all.families = accepted.take();
    all.at = std::chrono::system_clock::now();
    return all;
}

} // namespace coaccel::detail
