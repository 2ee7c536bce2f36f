#include "core/escape_text.hpp"
#include "plan/content_hash.hpp"
#include "plan/file/builder_access.hpp"
#include "plan/file/kernel_records.hpp"
#include "plan/file/op_records.hpp"
#include "plan/file/plan_file.hpp"
#include "plan/file/slot_records.hpp"

#include <algorithm>
#include <map>
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

/// Reads the description of one or more plans. A file of one plan is read as a set without a name.
class description_reader {
public:
    description_reader(std::span<const std::byte> description, content_reader& contents, file_problem& problem)
        : in_(description), contents_(contents), problem_(problem)
    {}

    /// Returns false after a problem, or if a builder has refused a plan: see refused().
    bool run(plan_file_form wanted)
    {
        if (!read_head(wanted) || !read_kernels())
            return false;
        for (std::uint64_t i = 0; i < count_; ++i)
            if (!read_plan())
                return false;
        problem_.plan.clear();
        return check_states() && contents_.at_end() &&
               (in_.at_end() || problem_.invalid({"its description has bytes after its end"}));
    }

    /// Why a builder has refused a plan; none if the file is invalid.
    error_code refused() const noexcept { return refused_; }

    /// Of the set; empty if the file has only a plan.
    std::string set_name() const { return is_set_ ? name_ : std::string(); }

    std::vector<set_plan> take_plans() noexcept { return std::move(plans_); }

private:
    bool malformed()
    {
        problem_.plan.clear();
        problem_.where.clear();
        return problem_.invalid({"its description is malformed: ", in_.problem()});
    }

    bool refuse(error_code why) noexcept
    {
        refused_ = why;
        return false;
    }

    bool read_head(plan_file_form wanted)
    {
        node n;
        std::string library;
        is_set_ = in_.has_next("set");
        if (!in_.get_record(is_set_ ? "set" : "plan", n))
            return malformed();
        record_fields from(n, problem_);
        if (!from.get("name", name_) || !from.get("library", library) || (is_set_ && !from.get("plans", count_)) ||
            !from.done())
            return false;
        if (is_set_ && wanted == plan_file_form::plan)
            return problem_.invalid(
                {"it has a set of ", count_, count_ == 1 ? " plan" : " plans", "; call plan_set_description::load"});
        if (is_set_)
            prefix_ = name_in_set(name_, {});
        else if (wanted == plan_file_form::set && name_.empty())
            name_ = "plan";
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

    bool read_plan()
    {
        std::string name = name_;
        if (is_set_ && !read_plan_name(name))
            return false;
        plan_builder b(name);
        std::vector<std::uint32_t> numbers;
        if (!read_slots(b, numbers) || !read_ops(b))
            return false;
        const auto made = b.finish();
        if (!made)
            return refuse(made.error());
        set_plan p{.name = name.substr(prefix_.size()), .plan = made.value(), .states = {}};
        for (const std::uint32_t slot : plan_access::data(p.plan)->states)
            p.states.push_back(numbers[slot]);
        plans_.push_back(std::move(p));
        return true;
    }

    /// With the name of the set.
    bool read_plan_name(std::string& name)
    {
        node n;
        problem_.plan = "plan " + std::to_string(plans_.size() + 1);
        if (!in_.get_record("plan", n))
            return malformed();
        record_fields from(n, problem_);
        if (!from.get("name", name) || !from.done())
            return false;
        if (!name.starts_with(prefix_))
            return problem_.invalid({"its name is ", escape_text(name.substr(0, 100)), ", that of the set ",
                                     escape_text(name_.substr(0, 100))});
        problem_.plan = "plan " + escape_text(name.substr(0, 100));
        return true;
    }

    /// `numbers`: for each slot, its number among the common states.
    bool read_slots(plan_builder& b, std::vector<std::uint32_t>& numbers)
    {
        return for_each("slots", "slot", [&](const node& n, std::size_t) {
            slot_record s;
            if (!read_slot(n, problem_, s) || !add_slot(b, s) || !note_common(s))
                return false;
            numbers.push_back(s.common);
            return true;
        });
    }

    bool add_slot(plan_builder& b, const slot_record& s)
    {
        if (!builder_access::add_slot(b, s.slot))
            return refuse(b.finish().error());
        const bool may = s.slot.kind == slot_kind::constant || s.slot.kind == slot_kind::state;
        const bool must = s.slot.kind == slot_kind::constant;
        if (s.has_content ? !may : must)
            return problem_.invalid(
                {"its kind is ", to_string(s.slot.kind), ", but it has ", s.has_content ? "a" : "no", " content"});
        plan_content content;
        if (s.has_content) {
            if (!contents_.read(s, content))
                return false;
            builder_access::set_content(b, std::move(content));
        }
        return true;
    }

    /// Whether the slot, if it is a common state, is the same as in the other plans.
    bool note_common(const slot_record& s)
    {
        if (s.common == own_state)
            return true;
        if (!is_set_)
            return problem_.invalid({"it is common to several plans, but there is only one"});
        const auto [found, added] = states_.try_emplace(s.common, common_state{.record = s});
        common_state& known = found->second;
        if (!added && known.last_user == plans_.size())
            return problem_.invalid({"the plan has the common state ", s.common, " twice"});
        if (!added && !same_state(known.record, s))
            return problem_.invalid({"the common state ", s.common, " is another one in an earlier plan"});
        known.last_user = plans_.size();
        ++known.users;
        return true;
    }

    bool read_ops(plan_builder& b)
    {
        const plan_draft& draft = builder_access::draft(b);
        op_reader ops(draft.builder, static_cast<std::uint32_t>(draft.slots.size()), kernels_, problem_);
        return for_each("ops", "op", [&](const node& n, std::size_t number) {
            op_reader::op_parts made;
            if (!ops.read(n, number, made))
                return false;
            op_record& record = made.op.record;
            return builder_access::add_op(b, *made.op.info, record.op.data(), std::move(record.kept), made.bound,
                                          made.marked_pure) ||
                   refuse(b.finish().error());
        });
    }

    /// Whether the common states are numbered without gaps, and several plans have each of them.
    bool check_states()
    {
        std::uint32_t next = 0;
        for (const auto& [number, state] : states_) {
            if (number != next++)
                return problem_.invalid({"there is no common state ", next - 1, ", but ", number});
            if (state.users == 1)
                return problem_.invalid({"only one plan has the common state ", number});
        }
        return true;
    }

    struct common_state {
        /// In the first plan that has it.
        slot_record record;
        std::uint32_t users = 0;
        /// The index of a plan.
        std::size_t last_user = 0;
    };

    tree_reader in_;
    content_reader& contents_;
    file_problem& problem_;
    bool is_set_ = false;
    /// Of the set, or of the only plan.
    std::string name_;
    /// The beginning of the names of the plans.
    std::string prefix_;
    /// The number of plans.
    std::uint64_t count_ = 1;
    std::vector<std::shared_ptr<const jit::image>> kernels_;
    std::map<std::uint32_t, common_state> states_;
    std::vector<set_plan> plans_;
    error_code refused_;
};

/// The error of a builder. Its message may contain names from the file.
error_code escaped(const error_code& ec)
{
    return make_error_with_message(errc_of(ec), escape_text(ec.message()));
}

/// What a file contains.
struct read_plans {
    std::string set_name;
    std::vector<set_plan> plans;
};

result<read_plans> read_file(const plan_file_source& file, plan_file_form wanted)
{
    file_problem problem;
    if (const auto description = open_description(file.bytes, problem)) {
        const std::size_t end = sizeof(plan_file_header) + description->size();
        content_reader contents(file, end, problem);
        description_reader reader(*description, contents, problem);
        if (reader.run(wanted))
            return read_plans{reader.set_name(), reader.take_plans()};
        if (reader.refused())
            return escaped(reader.refused());
    }
    return make_error_with_message(problem.what, "plan file " + escape_text(file.name) + ": " + problem.message);
}

} // namespace

result<plan_description> read_plan(const plan_file_source& file)
{
    BOOST_OUTCOME_TRY(const auto made, read_file(file, plan_file_form::plan));
    return made.plans[0].plan;
}

result<plan_set_description> read_plan_set(const plan_file_source& file)
{
    BOOST_OUTCOME_TRY(auto made, read_file(file, plan_file_form::set));
    std::vector<std::string_view> names;
    for (const set_plan& p : made.plans)
        names.push_back(p.name);
    if (auto ec = check_plan_names(made.set_name, names))
        return escaped(ec);
    return make_plan_set(std::move(made.set_name), std::move(made.plans));
}

} // namespace coaccel::detail
