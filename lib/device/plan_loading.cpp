#include "device/plan_loading.hpp"

#include "device/load_part.hpp"
#include "plan/content_registry.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/memory.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace coaccel::detail {
namespace {

bool is_set(const any_ref& r) noexcept
{
    return r.device != 0;
}

} // namespace

plan_loading::plan_loading(loaded_plan& plan, plan_resources& into, constant_table& constants, shared_constants* shared,
                           std::uint64_t number, std::uint64_t chain)
    : plan_(&plan), into_(&into), constants_(&constants), shared_(shared), first_(into.instances.empty()),
      made_{number, chain, {}}
{
    const plan_data& p = plan_->data;
    spare_states_.resize(p.states.size());
    if (into_->prepared)
        take_prepared();
    else if (first_)
        want_shared();
    for (std::size_t i = 0; i < p.states.size(); ++i)
        if (!is_set(spare_states_[i]))
            wanted_.push_back({.bytes = p.slots[p.states[i]].bytes(), .where = &spare_states_[i]});
    if (!is_set(made_.memory))
        wanted_.push_back({.bytes = std::max<std::uint64_t>(p.instance_bytes, 1), .where = &made_.memory});
}

/// The constants and the states that are not durable are there, and so is the memory of the instance.
void plan_loading::take_prepared()
{
    step_ = step::unload;
    prepared_ = *std::exchange(into_->prepared, std::nullopt);
    made_.memory = prepared_.memory;
    spare_states_ = std::exchange(into_->stand_ins, {});
    groups_ = shared_ ? plan_->groups : group_constants(plan_->data.constant_contents, packing::none);
    found_groups_.assign(groups_.all.size(), true);
    for (const plan_content& content : plan_->data.constant_contents)
        constant_bytes_ += content.bytes;
    want_states();
}

void plan_loading::want_shared()
{
    const plan_data& p = plan_->data;
    // The buffers of a graph exist.
    if (p.over_buffers)
        return;
    groups_ = shared_ ? plan_->groups : group_constants(p.constant_contents, packing::none);
    into_->constants.assign(p.constants.size(), {});
    into_->constant_buffers.assign(groups_.all.size(), {});
    into_->states.assign(p.states.size(), {});
    // Constants of the plan that are equal count each, as the caller has them.
    for (const plan_content& c : p.constant_contents)
        constant_bytes_ += c.bytes;
    for (const constant_group& g : groups_.all)
        constant_bytes_ -= g.content_bytes();
    for (std::size_t g = 0; g < groups_.all.size(); ++g)
        want_group(g);
    want_states();
    report();
}

void plan_loading::want_states()
{
    const plan_data& p = plan_->data;
    const auto is_durable = [&](std::size_t i) { return plan_->rule_of(i).has_value(); };
    for (std::size_t i = 0; i < p.states.size(); ++i) {
        const bool stands_in = place() == context_place::standby && is_durable(i);
        if (stands_in) {
            into_->stand_ins.resize(p.states.size());
            found_states_.push_back(false);
            continue;
        }
        const std::uint32_t common = plan_->common_indices[i];
        if (common != own_state)
            into_->states[i] = plan_->common->find(place(), common);
        found_states_.push_back(common != own_state && is_set(into_->states[i]));
        if (!is_set(into_->states[i]))
            want_state(i);
    }
    // Not in the loop, because the vector must not be moved any more.
    if (has_stand_ins())
        for (std::size_t i = 0; i < p.states.size(); ++i)
            if (is_durable(i))
                wanted_.push_back({.bytes = p.slots[p.states[i]].bytes(), .where = &into_->stand_ins[i]});
}

void plan_loading::want_state(std::size_t i)
{
    const plan_data& p = plan_->data;
    wanted w{.bytes = p.slots[p.states[i]].bytes(),
             .where = &into_->states[i],
             .filled = true,
             .content = p.state_contents[i]};
    // A plan that is being unloaded has given up its states.
    if (const auto state = plan_->durable_states.empty() ? nullptr : plan_->durable_states[i]) {
        w.state = state;
        w.rule = *plan_->rule_of(i);
        w.memory = state->memory;
        w.from = state->memory ? origin::imported : origin::exportable;
        const auto how = revival_of(*plan_->rule_of(i), state->trust.suspect());
        w.refilled = how == state_revival::refill && state->memory;
        w.trusted = how == state_revival::use;
    }
    wanted_.push_back(std::move(w));
}

void plan_loading::want_group(std::size_t g)
{
    const constant_group& group = groups_.all[g];
    into_->constant_buffers[g] = constants_->use(group);
    found_groups_.push_back(is_set(into_->constant_buffers[g]));
    const bool large = shared_ && group.bytes >= shared_constants::least_bytes;
    auto shared = large ? shared_->find(group) : nullptr;
    keep(g, shared);
    if (found_groups_.back()) {
        constant_bytes_ += group.content_bytes();
        return;
    }
    const origin from = shared ? origin::imported : large ? origin::exportable : origin::allocated;
    wanted_.push_back({.bytes = group.bytes,
                       .where = &into_->constant_buffers[g],
                       .filled = true,
                       .group = g,
                       .from = from,
                       .memory = shared ? shared->memory : nullptr});
}

/// The plan owns the memory of this group. A plan that has left the device owns none.
void plan_loading::keep(std::size_t group, std::shared_ptr<const shared_constant> c)
{
    if (!c || plan_->gone)
        return;
    plan_->kept_constants.resize(groups_.all.size());
    plan_->kept_constants[group] = std::move(c);
}

void plan_loading::report() const noexcept
{
    if (!plan_->progress)
        return;
    if (constant_bytes_ > plan_->reported_bytes)
        load_progress_access::add_bytes(*plan_->progress,
                                        constant_bytes_ - std::exchange(plan_->reported_bytes, constant_bytes_));
    if (const auto instances = into_->instances.size(); instances > plan_->reported_instances)
        load_progress_access::add_instances(
            *plan_->progress, static_cast<int>(instances - std::exchange(plan_->reported_instances, instances)));
}

std::unique_ptr<load_part> plan_loading::next()
{
    switch (step_) {
    case step::unload: return unload_prepared();
    case step::allocate: return allocate_next();
    case step::fill: return fill_next();
    case step::share: return share_next();
    default: return load_instance();
    }
}

std::unique_ptr<load_part> plan_loading::unload_prepared() const
{
    auto part = std::make_unique<load_part>();
    part->set(plan_unload_op{.instance = prepared_.id, .chain = prepared_.chain});
    return part;
}

std::unique_ptr<load_part> plan_loading::allocate_next() const
{
    auto part = std::make_unique<load_part>();
    const wanted& w = wanted_[at_];
    if (w.from == origin::imported) {
        if (w.state)
            w.state->here = true;
        part->memory = w.memory;
        part->set(import_op{.from = &part->memory});
    } else {
        const auto kind = w.from == origin::exportable ? memory_kind::exportable : memory_kind::device;
        part->set(allocate_op{.count = w.bytes, .type = dtype::u8, .kind = kind});
    }
    return part;
}

constant_group::part plan_loading::current_part() const
{
    const wanted& w = wanted_[at_];
    return w.group == none ? constant_group::part{w.content, 0} : groups_.all[w.group].parts[part_];
}

std::size_t plan_loading::parts() const noexcept
{
    const wanted& w = wanted_[at_];
    return w.group == none ? 1 : groups_.all[w.group].parts.size();
}

std::unique_ptr<load_part> plan_loading::fill_next() const
{
    auto part = std::make_unique<load_part>();
    const auto to = ref<std::uint8_t>::from_raw(*wanted_[at_].where);
    const auto [content, offset] = current_part();
    if (!content.data) {
        part->set(memory::fill<std::uint8_t>{.dst = to, .value = 0});
        return part;
    }
    const std::uint64_t count = std::min(content.bytes - filled_bytes_, most_bytes);
    part->refusal = check_content(content, filled_bytes_, count);
    part->set(write_op<std::uint8_t>{.dst = to.subspan(offset + filled_bytes_, count),
                                     .src = reinterpret_cast<const std::uint8_t*>(content.data.get()) + filled_bytes_,
                                     .count = count});
    return part;
}

std::unique_ptr<load_part> plan_loading::share_next() const
{
    auto part = std::make_unique<load_part>();
    const wanted& w = wanted_[at_];
    part->set(export_op{.buffer = ref<std::uint8_t>::from_raw(*w.where),
                        .access = w.state ? memory_access::read_write : memory_access::read_only,
                        .to = &part->memory});
    return part;
}

std::unique_ptr<load_part> plan_loading::load_instance() const
{
    for (std::size_t i = 0; i < groups_.places.size(); ++i) {
        const auto [group, offset] = groups_.places[i];
        into_->constants[i] = ref<std::uint8_t>::from_raw(into_->constant_buffers[group])
                                  .subspan(offset, plan_->data.constant_contents[i].bytes)
                                  .raw();
    }
    const plan_load_operands at(plan_->data);
    const plan_load_head head{.instance = made_.id, .chain = made_.chain, .plan = &plan_->data};
    std::vector<op_unit> op(op_units(plan_->load_info.size));
    std::memcpy(op.data(), &head, sizeof(head));
    std::vector<any_ref> refs(at.count);
    refs[plan_load_operands::instance] = made_.memory;
    std::ranges::copy(into_->constants, refs.begin() + static_cast<std::ptrdiff_t>(at.constants));
    for (std::size_t i = 0; i < into_->states.size(); ++i)
        refs[at.states + i] = is_set(into_->states[i]) ? into_->states[i] : into_->stand_ins[i];
    std::ranges::copy(spare_states_, refs.begin() + static_cast<std::ptrdiff_t>(at.spare_states));
    std::memcpy(reinterpret_cast<std::byte*>(op.data()) + sizeof(head), refs.data(), refs.size() * sizeof(any_ref));
    auto part = std::make_unique<load_part>();
    part->set(plan_->load_info, op.data());
    return part;
}

void plan_loading::finished(const load_part& part, const error_code& ec)
{
    unshared_ = remade_ = unload_error_ = {};
    switch (step_) {
    case step::unload:
        if (ec && is_end_of_context(ec))
            error_ = ec;
        unload_error_ = ec;
        step_ = step::allocate;
        break;
    case step::allocate: allocated(part, ec); break;
    case step::fill:
        error_ = ec;
        if (!ec)
            piece_filled();
        break;
    case step::share: exported(part, ec); break;
    default:
        error_ = ec;
        if (!ec)
            step_ = step::done;
    }
    if (!error_)
        go_on();
}

void plan_loading::allocated(const load_part& part, const error_code& ec)
{
    wanted& w = wanted_[at_];
    // The context can have a constant for itself, but not a durable state.
    if (ec && w.from != origin::allocated && !w.state && !is_end_of_context(ec)) {
        unshared_ = ec;
        refused(w, ec);
        return;
    }
    if (ec && w.from == origin::imported && w.state && !is_end_of_context(ec) && state_refused(w, ec))
        return;
    *w.where = part.reply<allocation>().ref;
    error_ = ec;
    if (ec)
        return;
    if (w.from == origin::imported && !w.state) {
        constant_bytes_ += groups_.all[w.group].content_bytes();
        report();
    }
    if (w.state && w.from == origin::imported) {
        // Another plan of the set may have given it up.
        w.state->memory = w.memory;
        w.state->unusable = {};
        if (w.trusted)
            w.state->trust.trust();
    }
    ++at_;
}

/// The context cannot import this durable state. Returns whether it is made anew, which its rule permits.
bool plan_loading::state_refused(wanted& w, const error_code& ec)
{
    w.state->here = false;
    if (!is_useless(ec))
        return false;
    if (w.rule != suspect_rule::reset) {
        w.state->unusable = ec;
        return false;
    }
    remade_ = ec;
    w.state->discard();
    w.from = origin::exportable;
    w.memory.reset();
    w.refilled = false;
    return true;
}

/// The context cannot share this constant.
void plan_loading::refused(wanted& w, const error_code& ec)
{
    // The memory is not what the worker that sent its descriptor has said: it is made anew, for the next contexts too.
    const bool unusable = w.from == origin::imported && errc_of(ec) == errc::invalid_argument;
    const auto found = unusable ? shared_->find(groups_.all[w.group]) : nullptr;
    // Unless another context has replaced it meanwhile.
    if (found && found->memory == w.memory)
        shared_->discard(*found);
    w.from = unusable ? origin::exportable : origin::allocated;
    w.memory.reset();
}

void plan_loading::piece_filled() noexcept
{
    const wanted& w = wanted_[at_];
    const plan_content content = current_part().content;
    const std::uint64_t whole = content.data ? content.bytes : 0;
    const std::uint64_t piece = std::min(whole - filled_bytes_, most_bytes);
    filled_bytes_ += piece;
    if (w.group != none) {
        constant_bytes_ += piece;
        report();
    }
    if (filled_bytes_ < whole)
        return;
    filled_bytes_ = 0;
    if (++part_ < parts())
        return;
    part_ = 0;
    if (w.refilled)
        w.state->trust.trust();
    // At once: a context that is lost while it fills the next constant has passed this one on.
    if (w.from == origin::exportable)
        step_ = step::share;
    else
        ++at_;
}

/// If the memory could not be exported, the context has it all the same, and the next one uploads the constant again.
void plan_loading::exported(const load_part& part, const error_code& ec)
{
    const wanted& w = wanted_[at_];
    if (ec && (w.state || is_end_of_context(ec))) {
        error_ = ec;
        return;
    }
    ++at_;
    step_ = step::fill;
    unshared_ = ec;
    if (ec)
        return;
    if (w.state) {
        w.state->memory = part.memory;
        w.state->here = true;
        w.state->trust.trust();
        return;
    }
    keep(w.group, shared_->add(groups_.all[w.group], part.memory));
}

/// Whether the current step has to do anything with the memory at this position.
bool plan_loading::has_work() const noexcept
{
    const wanted& w = wanted_[at_];
    return step_ != step::fill || (w.filled && (w.from != origin::imported || w.refilled));
}

/// Finds the next position or step that has something to do.
void plan_loading::go_on() noexcept
{
    while (step_ < step::load) {
        while (at_ < wanted_.size() && !has_work())
            ++at_;
        if (at_ < wanted_.size())
            return;
        at_ = 0;
        step_ = step_ == step::allocate ? step::fill : step::load;
    }
}

std::vector<any_ref> plan_loading::end()
{
    std::vector<any_ref> unused;
    const auto drop = [&](any_ref& r) {
        if (is_set(r))
            unused.push_back(r);
        r = {};
    };
    const plan_data& p = plan_->data;
    for (any_ref& r : spare_states_)
        drop(r);
    if (done()) {
        for (std::size_t g = 0; g < found_groups_.size(); ++g)
            if (!found_groups_[g])
                constants_->add(groups_.all[g], into_->constant_buffers[g]);
        for (std::size_t i = 0; i < found_states_.size(); ++i)
            if (const std::uint32_t common = plan_->common_indices[i]; common != own_state && is_set(into_->states[i]))
                plan_->common->set(place(), common, into_->states[i]);
        if (has_stand_ins())
            into_->prepared = made_;
        else
            into_->instances.push_back(made_);
        report();
        return unused;
    }
    drop(made_.memory);
    for (any_ref& r : into_->stand_ins)
        drop(r);
    into_->stand_ins.clear();
    if (!first_ || p.over_buffers)
        return unused;
    for (std::size_t g = 0; g < found_groups_.size(); ++g) {
        if (found_groups_[g])
            into_->constant_buffers[g] = constants_->leave(into_->constant_buffers[g]);
        drop(into_->constant_buffers[g]);
    }
    for (std::size_t i = 0; i < found_states_.size(); ++i)
        if (!found_states_[i])
            drop(into_->states[i]);
    // The plan uses none of them any more, and so does not leave them again when it is unloaded.
    into_->constants.clear();
    into_->constant_buffers.clear();
    into_->states.clear();
    return unused;
}

} // namespace coaccel::detail
