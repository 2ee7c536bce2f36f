#include "core/escape_text.hpp"
#include "plan/content_hash.hpp"
#include "plan/file/builder_access.hpp"
#include "plan/file/kernel_records.hpp"
#include "plan/file/op_records.hpp"
#include "plan/file/plan_file.hpp"
#include "plan/file/slot_records.hpp"

#include <algorithm>
#include <optional>

namespace coaccel::detail {
namespace {

/// Checks everything around the description, and returns the description.
std::optional<std::span<const std::byte>> open_description(std::span<const std::byte> file, file_problem& problem)
{
    plan_file_header h{};
    if (file.size() < sizeof(h.magic) ||
        !std::ranges::equal(std::as_bytes(std::span(plan_file_magic)), file.first(sizeof(h.magic)))) {
        problem.invalid({"it is not a plan"});
        return std::nullopt;
    }
    if (file.size() < sizeof(h)) {
        problem.invalid({"it is cut off after ", file.size(), " bytes"});
        return std::nullopt;
    }
    std::memcpy(&h, file.data(), sizeof(h));
    if (h.version != plan_file_version)
        problem.set(errc::file_version, {"its format has the version ", h.version,
                                         ", this version of the library reads ", plan_file_version});
    else if (h.reserved != 0)
        problem.invalid({"its header is damaged"});
    else if (h.file_bytes != file.size())
        problem.invalid({"it has ", file.size(), " bytes instead of ", h.file_bytes});
    else if (h.description_bytes > file.size() - sizeof(h))
        problem.invalid({"its description has ", h.description_bytes, " bytes, the file ", file.size()});
    if (problem.what != errc{})
        return std::nullopt;
    const auto description = file.subspan(sizeof(h), static_cast<std::size_t>(h.description_bytes));
    if (hash_content(description.data(), description.size()) == h.description)
        return description;
    problem.invalid({"its description is damaged: it does not have the hash ", to_string(h.description)});
    return std::nullopt;
}

class plan_reader {
public:
    plan_reader(std::span<const std::byte> description, content_reader& contents, file_problem& problem)
        : in_(description), contents_(contents), problem_(problem)
    {}

    /// Returns false if the file is invalid. A plan that the builder refuses is not: finish() returns why.
    bool run() { return read_head() && read_kernels() && read_slots() && (refused_ || read_ops()); }

    result<plan_description> finish() const { return builder_.finish(); }

private:
    bool malformed()
    {
        problem_.where.clear();
        return problem_.invalid({"its description is malformed: ", in_.problem()});
    }

    bool read_head()
    {
        node n;
        std::string name, library;
        if (!in_.get_record("plan", n))
            return malformed();
        record_fields from(n, problem_);
        if (!from.get("name", name) || !from.get("library", library) || !from.done())
            return false;
        builder_ = plan_builder(std::move(name));
        return true;
    }

    /// Calls `f` with each item of a list and its number, from 1, until `f` returns false.
    template <class F>
    bool for_each(std::string_view list, std::string_view item, F f)
    {
        if (!in_.open_list(list))
            return malformed();
        for (std::size_t number = 1;; ++number) {
            node n;
            bool more = false;
            if (!in_.get_item(n, more))
                return malformed();
            problem_.where.clear();
            if (!more)
                return true;
            problem_.where = std::string(item) + " " + std::to_string(number);
            if (!f(n, number))
                return false;
        }
    }

    bool read_kernels()
    {
        return for_each("kernels", "kernel", [this](const node& n, std::size_t) {
            kernels_.push_back(read_kernel(n, problem_));
            return kernels_.back() != nullptr;
        });
    }

    bool read_slots()
    {
        const bool complete = for_each("slots", "slot", [this](const node& n, std::size_t) { return add_slot(n); });
        return refused_ || (complete && contents_.at_end());
    }

    bool add_slot(const node& n)
    {
        slot_record s;
        if (!read_slot(n, problem_, s))
            return false;
        refused_ = !builder_access::add_slot(builder_, s.slot);
        if (refused_)
            return false;
        const bool may = s.slot.kind == slot_kind::constant || s.slot.kind == slot_kind::state;
        const bool must = s.slot.kind == slot_kind::constant;
        if (s.has_content ? !may : must)
            return problem_.invalid(
                {"its kind is ", to_string(s.slot.kind), ", but it has ", s.has_content ? "a" : "no", " content"});
        plan_content content;
        if (s.has_content) {
            if (!contents_.read(s, content))
                return false;
            builder_access::set_content(builder_, std::move(content));
        }
        return true;
    }

    bool read_ops()
    {
        const plan_draft& draft = builder_access::draft(builder_);
        op_reader ops(draft.builder, static_cast<std::uint32_t>(draft.slots.size()), kernels_, problem_);
        const bool complete = for_each("ops", "op", [&](const node& n, std::size_t number) {
            op_reader::op_parts made;
            if (!ops.read(n, number, made))
                return false;
            op_record& record = made.op.record;
            refused_ = !builder_access::add_op(builder_, *made.op.info, record.op.data(), std::move(record.kept),
                                               made.bound, made.marked_pure);
            return !refused_;
        });
        if (refused_)
            return true;
        return complete && (in_.at_end() || problem_.invalid({"its description has bytes after its end"}));
    }

    tree_reader in_;
    content_reader& contents_;
    file_problem& problem_;
    plan_builder builder_;
    std::vector<std::shared_ptr<const jit::image>> kernels_;
    bool refused_ = false;
};

} // namespace

result<plan_description> read_plan(std::span<const std::byte> file, std::shared_ptr<const void> owner,
                                   content_check check, const std::string& name)
{
    file_problem problem;
    if (const auto description = open_description(file, problem)) {
        const std::size_t end = sizeof(plan_file_header) + description->size();
        content_reader contents(file.subspan(end), end, std::move(owner), check, problem);
        plan_reader reader(*description, contents, problem);
        if (reader.run())
            return reader.finish();
    }
    return make_error_with_message(problem.what, "plan file " + escape_text(name) + ": " + problem.message);
}

} // namespace coaccel::detail
