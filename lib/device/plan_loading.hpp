#ifndef COACCEL_DEVICE_PLAN_LOADING_HPP
#define COACCEL_DEVICE_PLAN_LOADING_HPP

#include "device/constant_table.hpp"
#include "device/load_part.hpp"
#include "device/loaded_plan.hpp"

#include <memory>
#include <vector>

namespace coaccel::detail {

/// Makes one instance of a plan in a context, and before the first one the constants and states. Decides which request
/// comes next; the device submits it.
///
/// A standby does not get the durable states: a stray write of the ops that are run for the first time there could
/// change what the current context uses, undetectably. Its instance has stand-ins for them
/// (plan_resources::prepared). When it has taken over, another plan_loading unloads this instance, imports the durable
/// states as their rules say, and loads the instance again in the same memory.
///
/// Each request has one op. So other requests are started between them, a worker gets one copy per request, and an
/// allocation that must wait for memory holds no other memory that its second attempt would lose. Large constants are
/// uploaded in several requests, so that a load can end between them and its progress is visible.
class COACCEL_DECL plan_loading {
public:
    static constexpr std::uint64_t most_bytes = most_bytes_at_once;

    /// `into`: what the plan has in the context. `shared`: the constants that contexts share; null if this context
    /// cannot share any. `number`: a number for the instance that is unique in the context.
    plan_loading(loaded_plan& plan, plan_resources& into, constant_table& constants, shared_constants* shared,
                 std::uint64_t number, std::uint64_t chain);
    plan_loading(const plan_loading&) = delete;
    plan_loading& operator=(const plan_loading&) = delete;

    loaded_plan& plan() noexcept { return *plan_; }

    /// Continues for another owner, which has taken over the resources and the constants by moving them.
    void move_to(loaded_plan& plan, plan_resources& into, constant_table& constants) noexcept
    {
        plan_ = &plan;
        into_ = &into;
        constants_ = &constants;
    }

    /// The next request, which may have a load_part::refusal. Preconditions: not done, and no error.
    std::unique_ptr<load_part> next();

    /// The request that `next` returned has ended.
    void finished(const load_part& part, const error_code& ec);

    const error_code& error() const noexcept { return error_; }

    /// Why the last request could not share a constant, which the context then has for itself; empty: it could, or was
    /// about something else.
    const error_code& unshared() const noexcept { return unshared_; }

    /// Why a durable state begins again with its initial content, because of the last request; empty: none does.
    const error_code& remade() const noexcept { return remade_; }

    /// Why the instance with stand-ins, which ended with the last request, could not be unloaded; it counts as
    /// unloaded.
    const error_code& unload_error() const noexcept { return unload_error_; }

    /// Whether the next request, or the one on its way, loads the instance: the plan's ops may run in it.
    bool loads_instance() const noexcept { return step_ == step::load; }

    /// Whether the instance is loaded. It can be used unless it has stand-ins.
    bool done() const noexcept { return step_ == step::done && !error_; }

    /// Ends the loading, complete or not, after a request has ended. If it is complete, the instance belongs to the
    /// plan from then on. Returns the buffers to release.
    std::vector<any_ref> end();

private:
    enum class origin : std::uint8_t {
        /// Memory of the context.
        allocated,
        /// Memory that is exported when it is filled.
        exportable,
        /// Memory that was filled by another context.
        imported,
    };
    static constexpr std::size_t none = ~std::size_t(0);
    struct wanted {
        std::uint64_t bytes;
        any_ref* where;
        /// Whether it is filled: with `content`, or with zeros if that is empty.
        bool filled = false;
        plan_content content{};
        /// The index of the group of constants that it is for, which is filled part by part; none: something else.
        std::size_t group = none;
        origin from = origin::allocated;
        /// The memory to import: set for origin::imported.
        std::shared_ptr<const exported_memory> memory{};
        /// Set for a durable state.
        std::shared_ptr<durable_state> state{};
        suspect_rule rule = suspect_rule::fail;
        /// Filled although it is imported.
        bool refilled = false;
        /// Its content counts as reliable once it is imported.
        bool trusted = false;
    };
    enum class step : std::uint8_t { unload, allocate, fill, share, load, done };

    /// What a plan has in the current context is part of it.
    context_place place() const noexcept { return into_ == plan_ ? context_place::current : context_place::standby; }
    void want_shared();
    void want_states();
    void take_prepared();
    bool has_stand_ins() const noexcept { return !into_->stand_ins.empty(); }
    void want_group(std::size_t g);
    void want_state(std::size_t i);
    std::unique_ptr<load_part> unload_prepared() const;
    std::unique_ptr<load_part> allocate_next() const;
    std::unique_ptr<load_part> fill_next() const;
    std::unique_ptr<load_part> share_next() const;
    std::unique_ptr<load_part> load_instance() const;
    void allocated(const load_part& part, const error_code& ec);
    void refused(wanted& w, const error_code& ec);
    bool state_refused(wanted& w, const error_code& ec);
    void piece_filled() noexcept;
    void exported(const load_part& part, const error_code& ec);
    void keep(std::size_t group, std::shared_ptr<const shared_constant> c);
    bool has_work() const noexcept;
    void go_on() noexcept;
    /// The part of the memory at the current position that is being filled.
    constant_group::part current_part() const;
    std::size_t parts() const noexcept;
    void report() const noexcept;

    loaded_plan* plan_;
    plan_resources* into_;
    constant_table* constants_;
    shared_constants* const shared_;
    const bool first_;
    step step_ = step::allocate;
    std::vector<wanted> wanted_;
    /// The position in `wanted_` of the current step.
    std::size_t at_ = 0;
    /// The part of a group that is being filled.
    std::size_t part_ = 0;
    /// Of this part, or of the state that is being filled.
    std::uint64_t filled_bytes_ = 0;
    /// The bytes of constants that are in the context.
    std::uint64_t constant_bytes_ = 0;
    plan_instance made_;
    /// For ops that change states while they are run for the first time.
    std::vector<any_ref> spare_states_;
    /// Of the constants, for the first instance.
    constant_groups groups_;
    /// For each group: whether another plan had uploaded it.
    std::vector<bool> found_groups_;
    /// For each state: whether another plan of the set had made it.
    std::vector<bool> found_states_;
    /// The instance with stand-ins that this one replaces.
    plan_instance prepared_;
    error_code error_;
    error_code unshared_;
    error_code remade_;
    error_code unload_error_;
};

} // namespace coaccel::detail

#endif
