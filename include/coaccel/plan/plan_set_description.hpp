#ifndef COACCEL_PLAN_PLAN_SET_DESCRIPTION_HPP
#define COACCEL_PLAN_PLAN_SET_DESCRIPTION_HPP

#include <coaccel/plan/plan_description.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coaccel {

namespace detail {

struct plan_set_access;

/// In set_plan::states: a state that no other plan of the set uses.
inline constexpr std::uint32_t own_state = 0xffffffff;

/// A plan of a set.
struct set_plan {
    /// Without the name of the set.
    std::string name;
    plan_description plan;
    /// For each state of the plan: its index among the common states of the set, or own_state.
    std::vector<std::uint32_t> states;
};

/// A finished set, never changed afterwards.
struct plan_set_data {
    std::string name;
    content_id id;
    std::vector<set_plan> plans;
    /// For each common state: how many plans use it; two or more.
    std::vector<std::uint32_t> users;
};

} // namespace detail

/// Checked plans that have constants and states in common, and that no device has loaded yet; made by
/// plan_set_builder::finish or from a file. Copies share the data, which never changes.
///
/// Exceptions: functions that return strings, memory(), save() and load() throw std::bad_alloc when there is no memory.
/// Other functions do not throw.
/// Thread safety: several threads may use one object, as long as none assigns to it.
class COACCEL_DECL plan_set_description {
public:
    /// An empty description: it has no name, no plans and an id of zero.
    plan_set_description() noexcept = default;

    explicit operator bool() const noexcept { return data_ != nullptr; } ///< False for an empty description.

    const std::string& name() const noexcept; ///< As given to the builder; may be empty.

    /// Identifies what the plans compute: a hash of their ids, of their order, and of the states that they have in
    /// common. It does not depend on names.
    content_id id() const noexcept;

    std::size_t size() const noexcept; ///< The number of plans.

    /// The plan with this index, in the order in which the plans were added; empty if there is none.
    plan_description operator[](std::size_t index) const noexcept;

    /// The plan with this name, as given to plan_set_builder::plan; empty if there is none.
    plan_description operator[](std::string_view name) const noexcept;

    /// The memory that one instance of each plan needs, with the constants and states of all plans. What several plans
    /// have in common counts once.
    plan_memory memory() const;

    /// One line for each common state, then the text of each plan.
    std::string to_text() const;

    /// A graph in the language of Graphviz, with a cluster for each plan. The common states are between the clusters.
    std::string to_graphviz() const;

    /// Writes the plans to a file, as plan_description::save does. Equal constants are in the file once.
    ///
    /// Errors: those of plan_description::save, with a message that names the plan.
    /// Exceptions: std::bad_alloc. The file then has its old content.
    [[nodiscard]] result<void> save(const std::string& path) const;

    /// Reads a file that save() has written, as plan_description::load does. The set has the id of the set that was
    /// saved, if the library is the same.
    ///
    /// A file that plan_description::save has written is a set without a name, which has one plan. It is found by its
    /// own name, or as "plan" if it has none.
    ///
    /// Errors: those of plan_description::load and of plan_set_builder::finish.
    /// Exceptions: std::bad_alloc.
    [[nodiscard]] static result<plan_set_description> load(const std::string& path,
                                                           content_check check = content_check::hash);

    /// Whether both have the same id.
    friend bool operator==(const plan_set_description& a, const plan_set_description& b) noexcept
    {
        return a.id() == b.id();
    }

private:
    friend struct detail::plan_set_access;

    std::shared_ptr<const detail::plan_set_data> data_;
};

namespace detail {

/// The parts of a description that the library uses.
struct plan_set_access {
    static const std::shared_ptr<const plan_set_data>& data(const plan_set_description& d) noexcept { return d.data_; }

    static plan_set_description make(std::shared_ptr<const plan_set_data> data) noexcept
    {
        plan_set_description made;
        made.data_ = std::move(data);
        return made;
    }
};

} // namespace detail
} // namespace coaccel

#endif
