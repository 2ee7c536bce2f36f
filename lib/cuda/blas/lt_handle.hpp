#ifndef COACCEL_CUDA_BLAS_LT_HANDLE_HPP
#define COACCEL_CUDA_BLAS_LT_HANDLE_HPP

#include "cuda/blas/lt_plan.hpp"
#include "cuda/driver/driver_api.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/core/tune.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <string_view>

namespace coaccel::cuda {

class backend;
class blas_context;

/// cuBLASLt on one lane: a handle, a workspace, and the plans of the problems that were met, of which the most recently
/// used ones are kept.
///
/// The library is loaded, the handle created, the algorithm of a new problem chosen and its first product launched on
/// the thread pool, because all of this may take long. After a failure the next op tries again; a handle that cuBLASLt
/// reports as broken is replaced for the next op.
class lt_handle {
public:
    static constexpr std::size_t most_plans = 128;

    lt_handle(backend& b, CUstream s) noexcept : backend_(b), stream_(s) {}

    /// Finds the plan of a problem. `ready`: the plan is in `found`, and stays until `users` is decreased. `launched`:
    /// the problem was new, and its product is on the stream.
    result<readiness> prepare(std::string_view op, const lt_problem& problem, const lt_arguments& with,
                              lt_plan*& found);

    /// Measures the algorithms for a problem and keeps the fastest one. `launched`: `made` has the result, and nothing
    /// is on the stream. While another lane measures, it is pending without a thread.
    result<readiness> tune(std::string_view op, const lt_problem& problem, const lt_arguments& with, tuning& made);

    /// Launches a product. If cuBLASLt refuses the tuned algorithm of the plan, the plan gets the proposed one.
    /// Preconditions: the plan is of its problem.
    error_code launch(lt_plan& plan, const lt_arguments& with) noexcept;

    /// As library_resources::destroy and count.
    void destroy() noexcept;
    std::size_t count() const noexcept { return plans_.size() + (handle_ ? 1 : 0); }

private:
    struct job;

    result<readiness> take_workspace();
    result<readiness> take_scratch(std::size_t bytes);
    /// `turn`: for measurements, see blas_context::take_turn. Null: for a product.
    result<readiness> start(const lt_problem& problem, const lt_arguments& with, std::shared_ptr<void> turn);
    result<readiness> collect(std::string_view op);
    lt_plan* find(const lt_problem& problem) noexcept;
    void keep(std::list<lt_plan>& made) noexcept;
    error_code error_of(std::string_view op, const job& ended);
    /// Gives up the plans for whose problems an algorithm was tuned since the last call. Those in use stay for their
    /// ops only.
    void drop_untuned();
    cublasStatus_t launch_proposed(lt_plan& plan, const lt_arguments& with) noexcept;
    void drop_scratch() noexcept;
    lt_workspace workspace() const noexcept { return {workspace_, workspace_bytes_}; }
    blas_context& shared() noexcept;
    error_code check(cublasStatus_t status) noexcept;

    backend& backend_;
    const CUstream stream_;
    const cublaslt_api* api_ = nullptr;
    cublasLtHandle_t handle_ = nullptr;
    bool broken_ = false;
    void* workspace_ = nullptr;
    std::size_t workspace_bytes_ = 0;
    /// For the results of products that are measured.
    void* scratch_ = nullptr;
    std::size_t scratch_bytes_ = 0;
    /// How many algorithms had been tuned when the plans were last compared with them.
    unsigned additions_ = 0;
    /// The most recently used one first.
    std::list<lt_plan> plans_;
    /// The job on the thread pool for the lane's one pending op.
    std::shared_ptr<job> job_;
};

} // namespace coaccel::cuda

#endif
