#include "worker/parent/worker_context_factory.hpp"

#include "worker/parent/remote_context.hpp"
#include "worker/parent/standby_pool.hpp"
#include "worker/process/find_program.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <atomic>
#include <mutex>
#include <optional>

namespace coaccel::worker {
namespace {

/// Makes the contexts of one device, one after another.
class source {
public:
    source(const source_options& options, const asio::any_io_executor& executor)
        : executor_(executor), options_(options), program_(name_program(options.how.program)),
          own_faults_(options.setup.host.faults), faults_(options.faults ? *options.faults : own_faults_),
          standbys_(options.standby)
    {
        options_.setup.host.injector = nullptr;
        if (options.faults)
            options_.setup.host.faults = options.faults->plan();
    }

    result<std::unique_ptr<detail::context>> make(detail::context_identity identity, detail::context_events& events,
                                                  const context_options& how)
    {
        device_.store(identity.device, std::memory_order_relaxed);
        const std::scoped_lock making(making_);
        BOOST_OUTCOME_TRYV(make_memory());
        BOOST_OUTCOME_TRY(auto link, next_link(how));
        // Starting a worker is quick; make() waits for it to be ready only when it is needed. If the start fails, the
        // next context is made without a standby, and the error is reported there.
        top_up(how);
        return connect(std::move(link), identity, events, how);
    }

    result<std::unique_ptr<detail::context>> make_standby(detail::context_identity identity,
                                                          detail::context_events& events, const context_options& how)
    {
        const std::scoped_lock making(making_);
        if (!await(nullptr))
            return errc::device_stopped;
        BOOST_OUTCOME_TRYV(make_memory());
        top_up(how);
        BOOST_OUTCOME_TRY(auto link, next_standby(worker_link::purpose::standby));
        if (!link)
            return make_error_with_message(errc::start_failed, "no standby could be started");
        return connect(std::move(link), identity, events, how);
    }

    bool has_standby() const { return standbys_.any(); }

    void rest()
    {
        const std::scoped_lock making(making_);
        standbys_.clear();
        memory_.reset();
    }

    void give_up() noexcept
    {
        const std::scoped_lock lock(mutex_);
        gave_up_ = true;
        if (awaited_)
            awaited_->end(errc::worker_killed);
    }

private:
    using link_ptr = standby_pool::link_ptr;

    error_code wait_for(worker_link& l, worker_link::purpose what = worker_link::purpose::context)
    {
        if (!await(&l))
            return errc::device_stopped;
        const error_code ec = l.wait_until_ready(what);
        (void)await(nullptr);
        return ec;
    }

    bool await(worker_link* l) noexcept
    {
        const std::scoped_lock lock(mutex_);
        awaited_ = gave_up_ ? nullptr : l;
        return !gave_up_;
    }

    result<void> make_memory()
    {
        if (!memory_) {
            BOOST_OUTCOME_TRY(memory_, staging::create(options_.how.staging_bytes));
        }
        return success();
    }

    void top_up(const context_options& how)
    {
        standbys_.top_up([this, how] { return start(how, true, false); });
    }

    result<std::unique_ptr<detail::context>> connect(link_ptr link, detail::context_identity identity,
                                                     detail::context_events& events, const context_options& how)
    {
        auto watch = doorbell_waiter::create(executor_, link->reply_bell().wait_fd(), events);
        if (!watch)
            return make_error_with_message(errc::out_of_memory, "no descriptors left");
        remote_setup setup;
        setup.identity = identity;
        setup.memory = memory_;
        setup.faults = &faults_;
        setup.spin = options_.how.spin;
        setup.copy_threads = options_.copy_threads;
        return std::make_unique<remote_context>(std::move(link), std::move(watch), events, how, std::move(setup));
    }

    /// A standby that is ready; null: there is none. Errors: errc::device_stopped after give_up().
    result<link_ptr> next_standby(worker_link::purpose what)
    {
        while (link_ptr ready = standbys_.take()) {
            const error_code lost = ready->is_doomed() ? ready->reason() : wait_for(*ready, what);
            if (!lost)
                return ready;
            // After give_up() the end is wanted.
            if (!await(nullptr))
                return errc::device_stopped;
            ready->log(log_level::warning, "standby lost: " + lost.message());
        }
        return link_ptr();
    }

    result<link_ptr> next_link(const context_options& how)
    {
        const bool refused = faults_.refuses_start();
        if (!refused) {
            BOOST_OUTCOME_TRY(auto ready, next_standby(worker_link::purpose::context));
            if (ready)
                return ready;
        }
        if (!await(nullptr))
            return errc::device_stopped;
        BOOST_OUTCOME_TRY(auto made, start(how, false, refused));
        if (auto ec = wait_for(*made))
            return ec;
        return made;
    }

    result<link_ptr> start(const context_options& how, bool standby, bool refused)
    {
        link_plan plan;
        BOOST_OUTCOME_TRY(plan.program, find_program(program_));
        plan.plugin = options_.plugin;
        plan.environment = options_.environment;
        plan.setup = options_.setup;
        plan.setup.context = how;
        plan.setup.staging_bytes = memory_->bytes();
        plan.setup.max_data_bytes = options_.how.max_data_bytes;
        plan.setup.spin = options_.how.spin;
        plan.setup.standby = standby;
        plan.setup.host.faults.refuse_starts = refused ? 1 : 0;
        plan.staging_fd = memory_->fd();
        plan.start_timeout = options_.how.start_timeout;
        plan.heartbeat = options_.how.heartbeat;
        plan.log = options_.how.log;
        plan.device = device_.load(std::memory_order_relaxed);
        plan.core_dumps = options_.how.core_dumps;
        plan.affinity = affinity_;
        return worker_link::start(plan);
    }

    const asio::any_io_executor executor_;
    source_options options_;
    // Resolved once: a relative path refers to the current directory at this time.
    const std::optional<named_program> program_;
    // The affinity of the thread that makes the device: workers are started on threads of the library.
    const detail::cpu_mask affinity_ = detail::affinity_of_thread();
    fault_injector own_faults_;
    fault_injector& faults_;
    std::shared_ptr<staging> memory_;
    // Atomic, because standbys are started on another thread.
    std::atomic<std::uint32_t> device_{0};
    // make() may be called while rest() is still running after the previous context.
    std::mutex making_;
    std::mutex mutex_;
    worker_link* awaited_ = nullptr;
    bool gave_up_ = false;
    // Last member, because its background thread uses the others.
    standby_pool standbys_;
};

} // namespace

worker_context_factory make_source(const source_options& options, const asio::any_io_executor& executor)
{
    auto s = std::make_shared<source>(options, executor);
    const std::weak_ptr<source> weak = s;
    const detail::context_factory make_standby =
        [weak](detail::context_identity identity, detail::context_events& events,
               const context_options& how) -> result<std::unique_ptr<detail::context>> {
        if (auto alive = weak.lock())
            return alive->make_standby(identity, events, how);
        return errc::device_stopped;
    };
    return {[s = std::move(s)](detail::context_identity identity, detail::context_events& events,
                               const context_options& how) { return s->make(identity, events, how); },
            [weak] {
                if (auto alive = weak.lock())
                    alive->give_up();
            },
            [weak] {
                const auto alive = weak.lock();
                return alive && alive->has_standby();
            },
            [weak] {
                if (auto alive = weak.lock())
                    alive->rest();
            },
            options.standby > 0 ? make_standby : nullptr};
}

} // namespace coaccel::worker
