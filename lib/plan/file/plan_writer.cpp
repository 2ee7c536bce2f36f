#include "plan/content_hash.hpp"
#include "plan/file/kernel_records.hpp"
#include "plan/file/op_records.hpp"
#include "plan/file/plan_file.hpp"
#include "plan/file/slot_records.hpp"

namespace coaccel::detail {
namespace {

class plan_writer {
public:
    plan_writer(const plan_set_data& set, plan_file_form form) noexcept : set_(set), form_(form) {}

    result<plan_file_parts> run()
    {
        write_head();
        if (auto ec = write_kernels())
            return ec;
        for (const set_plan& p : set_.plans) {
            if (form_ == plan_file_form::set)
                write_name(p);
            write_slots(p);
            if (auto ec = write_ops(*plan_access::data(p.plan)))
                return ec;
        }
        return finish();
    }

private:
    void write_head()
    {
        const bool is_set = form_ == plan_file_form::set;
        out_[is_set ? "set" : "plan"].begin_record();
        out_["name"].text(is_set ? set_.name : set_.plans[0].plan.name());
        out_["library"].text("coaccel " COACCEL_VERSION_STRING);
        if (is_set)
            out_["plans"].number(static_cast<std::uint64_t>(set_.plans.size()));
        out_.end();
    }

    /// With the name of the set, so that the names of all plans are not longer than the file.
    void write_name(const set_plan& p)
    {
        out_["plan"].begin_record();
        out_["name"].text(p.plan.name());
        out_.end();
    }

    error_code write_kernels()
    {
        out_["kernels"].begin_list();
        for (const set_plan& p : set_.plans)
            if (auto ec = write_kernels(*plan_access::data(p.plan)))
                return ec;
        out_.end();
        return {};
    }

    /// Those that no earlier plan has.
    error_code write_kernels(const plan_data& plan)
    {
        for (std::size_t i = 0; i < plan.ops.size(); ++i) {
            const listed_op& o = plan.ops[i];
            const auto* const launch = as_launch(o);
            if (!launch || !kernels_.emplace(launch->kernel, static_cast<std::uint32_t>(kernels_.size())).second)
                continue;
            const jit::image& k = image_of(o);
            if (k.host != 0)
                return not_savable(plan, i,
                                   {"the kernel ", k.name, " has a host function, which exists only in this program"});
            if (k.source.empty())
                return not_savable(plan, i, {"the source of the kernel ", k.name, " is not known"});
            write_kernel(out_, k);
        }
        return {};
    }

    void write_slots(const set_plan& p)
    {
        const plan_data& plan = *plan_access::data(p.plan);
        out_["slots"].begin_list();
        // Without the fixed scalars, which plan_builder::finish makes again.
        for (std::uint32_t i = 0; i < plan.slots.size(); ++i)
            if (const plan_slot& s = plan.slots[i]; !is_fixed_scalar(plan, i))
                write_slot(out_, s, slot_content(plan, s), s.kind == slot_kind::state ? p.states[s.index] : own_state,
                           contents_);
        out_.end();
    }

    error_code write_ops(const plan_data& plan)
    {
        op_writer ops(out_, plan, kernels_);
        out_["ops"].begin_list();
        for (std::size_t i = 0; i < plan.ops.size(); ++i)
            if (auto ec = ops.write(i))
                return ec;
        out_.end();
        return {};
    }

    plan_file_parts finish()
    {
        const auto description = out_.written();
        plan_file_header h{};
        std::memcpy(h.magic, plan_file_magic, sizeof(h.magic));
        h.version = plan_file_version;
        h.description_bytes = description.size();
        h.description = hash_content(description.data(), description.size());
        h.file_bytes = sizeof(h) + description.size();
        if (contents_.bytes() != 0)
            h.file_bytes = aligned_content(h.file_bytes) + contents_.bytes();
        plan_file_parts made{.head = {}, .contents = contents_.take()};
        const auto* const head = reinterpret_cast<const std::byte*>(&h);
        made.head.reserve(sizeof(h) + description.size());
        made.head.assign(head, head + sizeof(h));
        made.head.insert(made.head.end(), description.begin(), description.end());
        return made;
    }

    const plan_set_data& set_;
    const plan_file_form form_;
    tree_writer out_;
    op_writer::kernel_numbers kernels_;
    content_writer contents_;
};

} // namespace

result<plan_file_parts> write_plan(const plan_description& plan)
{
    plan_set_data one;
    one.plans.push_back(
        {.name = {}, .plan = plan, .states = std::vector(plan_access::data(plan)->states.size(), own_state)});
    return plan_writer(one, plan_file_form::plan).run();
}

result<plan_file_parts> write_plan_set(const plan_set_description& set)
{
    return plan_writer(*plan_set_access::data(set), plan_file_form::set).run();
}

} // namespace coaccel::detail
