#ifndef COACCEL_SERVE_BATCH_MODEL_HPP
#define COACCEL_SERVE_BATCH_MODEL_HPP

#include <coaccel/plan/plan_description.hpp>
#include <coaccel/plan/plan_set_description.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace coaccel::serve {

/// A plan that computes a batch.
struct batch_plan {
    /// How many rows it computes. Each input and each output has this many times the elements of one row.
    std::uint32_t rows = 0;
    plan_description plan; ///< Without parameters and states, because several requests share a run.
};

/// Plans that compute the same for batches of several sizes: what a dynamic_batcher runs. Copies share the data, which
/// never changes.
///
/// A batch runs with the smallest plan that holds it; the rows that are left repeat its last row.
///
/// Exceptions: create() throws std::bad_alloc. Other functions do not throw.
/// Thread safety: several threads may use one object, as long as none assigns to it.
class COACCEL_DECL batch_model {
public:
    batch_model() noexcept = default; ///< An empty model, which a batcher refuses.

    /// A model of these plans, which may be given in any order. Shapes with rows must agree with the sizes.
    ///
    /// Errors: errc::invalid_argument, with a message that names the plan and the slot, if there is no plan, two plans
    /// have the same size, a plan has no input or no output, has parameters or states, or does not have the same
    /// arguments for each row as the others.
    [[nodiscard]] static result<batch_model> create(std::vector<batch_plan> plans);

    /// The plans of a set, with the size of each: `create(set, {{1, 8, 64}})`.
    ///
    /// Errors: as above, and errc::length_mismatch if there are not as many sizes as plans.
    [[nodiscard]] static result<batch_model> create(const plan_set_description& set,
                                                    std::span<const std::uint32_t> sizes);

    /// The plans of a set whose shapes tell how many rows each computes, as a set from a file may have.
    ///
    /// Errors: as above, and errc::invalid_argument for an input or output whose shape has no rows.
    [[nodiscard]] static result<batch_model> create(const plan_set_description& set);

    std::span<const batch_plan> plans() const noexcept;                  ///< By size, the smallest first.
    std::span<const plan_argument> inputs() const noexcept;              ///< The inputs of one row.
    std::span<const plan_argument> outputs() const noexcept;             ///< The outputs of one row.
    explicit operator bool() const noexcept { return data_ != nullptr; } ///< False for an empty model.

private:
    struct data;

    std::shared_ptr<const data> data_;
};

} // namespace coaccel::serve

#endif
