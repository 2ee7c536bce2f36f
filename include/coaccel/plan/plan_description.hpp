#ifndef COACCEL_PLAN_PLAN_DESCRIPTION_HPP
#define COACCEL_PLAN_PLAN_DESCRIPTION_HPP

#include <coaccel/core/result.hpp>
#include <coaccel/plan/detail/plan_data.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace coaccel {

namespace detail {

struct plan_access;

} // namespace detail

/// The memory that a plan needs, in bytes.
struct plan_memory {
    std::uint64_t instance = 0;         ///< For each instance: inputs, parameters, outputs and scratch.
    std::uint64_t constants = 0;        ///< For all constants together.
    std::uint64_t states = 0;           ///< For all states together.
    std::uint64_t staged = 0;           ///< Of `instance`: inputs and outputs that a run copies through pinned memory.
    std::uint64_t unshared_scratch = 0; ///< What the scratch slots would need if none of them shared memory.

    friend bool operator==(const plan_memory&, const plan_memory&) = default;
};

/// An input, a parameter or an output of a plan.
struct plan_argument {
    std::string name;        ///< As given to the builder, or the default name.
    dtype type = dtype::u8;  ///< The element type.
    std::uint64_t count = 0; ///< In elements.
    plan_shape shape{};      ///< As given to the builder; otherwise without dimensions.

    friend bool operator==(const plan_argument&, const plan_argument&) = default;
};

/// What plan_description::load and plan_set_description::load verify apart from the description of the plans, which
/// they always do.
enum class content_check : std::uint8_t {
    hash, ///< The hash of each constant and initial state. It reads all of them, at some GB per second.
    /// Nothing: contents are read when a device loads the plan, or to compare a constant with one of another plan that
    /// has the same hash.
    none,
};

/// A checked plan that no device has loaded yet; made by plan_builder::finish or from a file. Copies share the data,
/// which never changes.
///
/// Exceptions: functions that return strings or vectors, save() and load() throw std::bad_alloc when there is no
/// memory. Other functions do not throw.
/// Thread safety: several threads may use one object, as long as none assigns to it.
class COACCEL_DECL plan_description {
public:
    /// An empty description: it has no name, no ops and an id of zero.
    plan_description() noexcept = default;

    explicit operator bool() const noexcept { return data_ != nullptr; } ///< False for an empty description.

    const std::string& name() const noexcept; ///< As given to the builder; may be empty.

    /// Identifies what the plan computes: a hash of its slots, ops, constants, kernels and initial states. It does not
    /// depend on the process or on names. Structures that are passed to kernels count with all their bytes, including
    /// padding.
    content_id id() const noexcept;

    std::size_t ops() const noexcept;    ///< The number of ops.
    plan_memory memory() const noexcept; ///< The memory that it needs.
    /// Whether a run that was lost with its context can run again: all ops are pure, and there are no states.
    bool repeatable() const noexcept;
    /// Whether all ops can be part of a CUDA graph, so that a run on a GPU is one launch. Otherwise a run puts its ops
    /// on a stream one by one. to_text() says which ops cannot, and why.
    bool capturable() const noexcept;
    std::vector<plan_argument> inputs() const;     ///< In the order in which they were added.
    std::vector<plan_argument> parameters() const; ///< In the order in which they were added.
    std::vector<plan_argument> outputs() const;    ///< In the order in which they were added.
    /// How many rows of a batch it computes, if the shape of an input or output says so; 0 if none does.
    std::uint64_t rows() const noexcept;

    /// One line for each slot and for each op with all its fields. It says which ops cannot be part of a CUDA graph.
    std::string to_text() const;

    /// A graph in the language of Graphviz: slots are boxes, ops are ellipses, edges lead from what an op reads and to
    /// what it writes. Ops that cannot be part of a CUDA graph are dashed.
    std::string to_graphviz() const;

    /// Writes the plan with its constants, initial states and kernels to a file. Equal constants are in the file once.
    /// The file is replaced as a whole: after an error it has its old content. The call blocks until the content is on
    /// the disk.
    ///
    /// Errors: errc::not_savable, with a message that names the op, for a kernel with a host function or without
    /// source, and for an op that is not one of the library; errc::invalid_argument for an empty description;
    /// errc::file_failed, with a message that names the path and the reason of the system.
    /// Exceptions: std::bad_alloc. The file then has its old content.
    [[nodiscard]] result<void> save(const std::string& path) const;

    /// Reads a file that save() has written. The plan passes the checks of plan_builder::finish and has the id of the
    /// plan that was saved, if the library is the same. A field of an op that the file does not contain gets its
    /// default value. The call blocks.
    ///
    /// Constants are not copied: their memory is a mapping of the file, which lasts as long as the description and the
    /// plans made from it. The file may be removed, or replaced by save(). If another program changes its content in
    /// place, the constants are undefined. If another program shortens it, a device that needs a missing constant ends
    /// the load with errc::file_failed; shortening it while the device reads this constant is a SIGBUS.
    ///
    /// Errors: errc::file_failed if the file cannot be read; errc::file_invalid if it is damaged, not a plan, or a set
    /// of plans, which plan_set_description::load reads; errc::file_version if its format has another version;
    /// errc::unsupported_op if it contains an op, or a field of one, that this version of the library does not know;
    /// those of plan_builder::finish.
    /// Exceptions: std::bad_alloc.
    [[nodiscard]] static result<plan_description> load(const std::string& path,
                                                       content_check check = content_check::hash);

    /// Whether both have the same id.
    friend bool operator==(const plan_description& a, const plan_description& b) noexcept { return a.id() == b.id(); }

private:
    friend struct detail::plan_access;

    std::shared_ptr<const detail::plan_data> data_;
};

namespace detail {

/// The parts of a description that the library uses.
struct plan_access {
    static const std::shared_ptr<const plan_data>& data(const plan_description& d) noexcept { return d.data_; }

    static plan_description make(std::shared_ptr<const plan_data> data) noexcept
    {
        plan_description made;
        made.data_ = std::move(data);
        return made;
    }
};

} // namespace detail
} // namespace coaccel

#endif
