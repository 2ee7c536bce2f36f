#ifndef COACCEL_PLAN_FILE_BUILDER_ACCESS_HPP
#define COACCEL_PLAN_FILE_BUILDER_ACCESS_HPP

#include <coaccel/plan/plan_builder.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace coaccel::detail {

/// The parts of a builder that a file uses, so that a plan from a file passes the same checks as any other.
struct builder_access {
    static const plan_draft& draft(const plan_builder& b) noexcept { return b.draft_; }

    /// Returns false if the builder has refused the slot.
    static bool add_slot(plan_builder& b, const plan_slot& s)
    {
        const any_ref made =
            s.shape ? b.add_shaped(s.kind, s.type, s.shape, s.name) : b.add_slot(s.kind, s.type, s.count, s.name);
        if (s.durable)
            b.made_durable(made, {*s.durable});
        return b.draft_.problem == errc{};
    }

    /// Of the slot that was added last.
    static void set_content(plan_builder& b, plan_content content) { b.draft_.contents.back() = std::move(content); }

    /// Returns false if the builder has refused the op. `marked_pure`: whether it was marked with `pure`.
    static bool add_op(plan_builder& b, const op_info& info, const void* op, std::shared_ptr<const void> kept,
                       std::span<const bound_field> bound, bool marked_pure)
    {
        std::optional<plan_builder::purity_mark> mark;
        if (marked_pure)
            mark.emplace(b.draft_);
        b.add_op(info, op, std::move(kept), bound);
        return b.draft_.problem == errc{};
    }
};

} // namespace coaccel::detail

#endif
