#include "worker/worker_source.hpp"

#include "worker/find_program.hpp"
#include "worker/remote_context.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <deque>
#include <optional>

namespace coaccel::worker {
namespace {

std::optional<std::string> text_of(const char* t)
{
    return t ? std::optional<std::string>(t) : std::nullopt;
}

/// Behind the contexts of one device, which are made one after another.
class source {
public:
    source(const source_options& options, const asio::any_io_executor& executor)
        : executor_(executor), options_(options), program_(text_of(options.how.program)),
          own_faults_(options.setup.host.faults), faults_(options.faults ? *options.faults : own_faults_)
    {
        options_.setup.host.injector = nullptr;
    }

    result<std::unique_ptr<detail::context>> make(detail::context_identity identity, detail::context_events& events,
                                                  const context_options& how)
    {
        if (!memory_) {
            BOOST_OUTCOME_TRY(memory_, staging::create(options_.how.staging_bytes));
        }
        BOOST_OUTCOME_TRY(auto link, next_link(how));
        auto watch = bell_watch::create(executor_, link->reply_bell().fd(), events);
        if (!watch)
            return note_error(errc::out_of_memory, "no descriptors left");
        top_up(how);
        remote_setup setup;
        setup.identity = identity;
        setup.memory = memory_;
        setup.faults = &faults_;
        setup.spin = options_.how.spin;
        setup.copy_threads = options_.copy_threads;
        return std::make_unique<remote_context>(std::move(link), std::move(watch), events, how, std::move(setup));
    }

private:
    using link_ptr = std::unique_ptr<worker_link>;

    result<link_ptr> next_link(const context_options& how)
    {
        const bool refused = faults_.refuses_start();
        while (!refused) {
            link_ptr ready = take_standby();
            if (!ready)
                break;
            if (!ready->has_ended() && !ready->wait_until_ready())
                return ready;
        }
        BOOST_OUTCOME_TRY(auto made, start(how, false, refused));
        if (auto ec = made->wait_until_ready())
            return ec;
        return made;
    }

    link_ptr take_standby()
    {
        if (standbys_.empty())
            return nullptr;
        link_ptr first = std::move(standbys_.front());
        standbys_.pop_front();
        return first;
    }

    // Starting one is quick; that it becomes ready is waited for when it is needed.
    void top_up(const context_options& how)
    {
        std::erase_if(standbys_, [](const link_ptr& l) { return l->has_ended(); });
        while (standbys_.size() < static_cast<std::size_t>(options_.standby)) {
            auto made = start(how, true, false);
            // The next context has to be made without, then; why it failed is told there.
            if (!made)
                return;
            standbys_.push_back(std::move(made).value());
        }
    }

    result<link_ptr> start(const context_options& how, bool standby, bool refused)
    {
        link_plan plan;
        BOOST_OUTCOME_TRY(plan.program, find_program(program_ ? program_->c_str() : nullptr));
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
        return worker_link::start(plan);
    }

    const asio::any_io_executor executor_;
    source_options options_;
    const std::optional<std::string> program_;
    fault_injector own_faults_;
    fault_injector& faults_;
    std::shared_ptr<staging> memory_;
    std::deque<link_ptr> standbys_;
};

} // namespace

detail::context_factory make_factory(const source_options& options, const asio::any_io_executor& executor)
{
    return [s = std::make_shared<source>(options, executor)](
               detail::context_identity identity, detail::context_events& events, const context_options& how) {
        return s->make(identity, events, how);
    };
}

} // namespace coaccel::worker
