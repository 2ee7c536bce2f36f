#include "cuda/blas/lt_handle.hpp"

#include "cuda/backend.hpp"
#include "cuda/blas/blas_context.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/blas/lt_tuning.hpp"
#include "cuda/loader/table.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <utility>

namespace coaccel::cuda {
namespace {

// That of the greatest alignment which cuBLASLt knows.
constexpr std::size_t workspace_unit = 256;

/// Names the fields of the op. `own_c`: whether C is another matrix than D.
error_code no_algorithm(std::string_view op, const lt_problem& p, bool own_c)
{
    const lt_matrix& a = p.b_first ? p.b : p.a;
    const lt_matrix& b = p.b_first ? p.a : p.b;
    const std::uint64_t k = p.trans_a == CUBLAS_OP_N ? p.a.cols : p.a.rows;
    std::string ld_of_c, alignment_of_c, alignment_of_bias;
    if (own_c) {
        ld_of_c = ", ldc " + std::to_string(p.c.ld);
        alignment_of_c = ", c to " + std::to_string(p.c.alignment);
    }
    if (p.has_bias())
        alignment_of_bias = ", bias to " + std::to_string(p.bias_alignment);
    return coaccel::detail::op_error(errc::unsupported_op, op,
                                     {"cuBLASLt has no algorithm for m ",
                                      p.b_first ? p.d.cols : p.d.rows,
                                      ", n ",
                                      p.b_first ? p.d.rows : p.d.cols,
                                      ", k ",
                                      k,
                                      ", lda ",
                                      a.ld,
                                      ", ldb ",
                                      b.ld,
                                      ld_of_c,
                                      ", ldd ",
                                      p.d.ld,
                                      ", batch ",
                                      p.batch,
                                      ", a aligned to ",
                                      a.alignment,
                                      " bytes, b to ",
                                      b.alignment,
                                      alignment_of_c,
                                      ", d to ",
                                      p.d.alignment,
                                      alignment_of_bias,
                                      ", on this GPU"});
}

bool knows_row_scales(const cublaslt_api& api) noexcept
{
    return std::min<int>(api.version, CUBLAS_VERSION) >= oldest_cublaslt_with_row_scales;
}

error_code no_row_scales(std::string_view op, const cublaslt_api& api)
{
    const bool old_library = api.version < oldest_cublaslt_with_row_scales;
    return coaccel::detail::op_error(errc::unsupported_op, op,
                                     {"scale_a and scale_b with a scale for each row and column need cuBLASLt ",
                                      three_part_version_text(oldest_cublaslt_with_row_scales),
                                      old_library ? ", the version is " : ", the headers of this build are of ",
                                      three_part_version_text(old_library ? api.version : CUBLAS_VERSION)});
}

/// Forgets an algorithm and its file on another thread. Without memory it is refused once more.
void forget_later(driver_threads& helpers, tuned_algorithms& known, const std::string& key,
                  const cublasLtMatmulAlgo_t& refused) noexcept
try {
    (void)helpers.run([&known, key, refused] { known.forget(key, refused); });
} catch (const std::exception&) {
    return;
}

/// The largest element of a result of `matmul` has four bytes.
std::size_t element_bytes(cudaDataType type) noexcept
{
    switch (type) {
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2: return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    default: return 4;
    }
}

/// From the first to the last element of D.
std::size_t bytes_of_result(const lt_problem& p) noexcept
{
    const auto matrices = static_cast<std::uint64_t>(p.batch - 1) * static_cast<std::uint64_t>(p.d.stride);
    return (matrices + static_cast<std::uint64_t>(p.d.ld) * p.d.cols) * element_bytes(p.d.type);
}

} // namespace

struct lt_handle::job {
    std::atomic<bool> done{false};
    error_code error;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    /// The status is that of choosing an algorithm.
    bool choosing = false;
    /// The library is older than the scales of the problem.
    bool too_old = false;
    bool own_c = false;
    const cublaslt_api* api = nullptr;
    cublasLtHandle_t handle = nullptr;
    /// A broken handle, destroyed before the new one is created.
    cublasLtHandle_t replaced = nullptr;
    /// The one plan, in a list so that it is kept without an allocation, which could fail when the product is already
    /// on the stream.
    std::list<lt_plan> made{1};
    lt_plan& plan = made.front();
    /// Measures instead of launching one product.
    bool measures = false;
    /// While it measures.
    std::shared_ptr<void> turn;
    tuning measured;

    void run(backend& b, tuned_algorithms& known, CUstream s, const lt_problem& problem, const lt_arguments& with,
             const lt_workspace& workspace);

private:
    void measure(const lt_measured& m, tuned_algorithms& known, const lt_arguments& with);
    void launch(const lt_measured& m, tuned_algorithms& known, const lt_arguments& with);
};

void lt_handle::job::run(backend& b, tuned_algorithms& known, CUstream s, const lt_problem& problem,
                         const lt_arguments& with, const lt_workspace& workspace)
try {
    auto table = b.libraries().get<cublaslt_api>();
    if (!table || b.dead()) {
        error = table ? make_error_code(errc::context_lost) : table.error();
        return;
    }
    api = table.value();
    if (problem.scales == lt_scales::several && !knows_row_scales(*api)) {
        too_old = true;
        return;
    }
    if (replaced)
        (void)api->cublasLtDestroy(std::exchange(replaced, nullptr));
    if (!handle)
        status = api->cublasLtCreate(&handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        handle = nullptr;
        return;
    }
    plan.key = key_of(problem, b.hardware().name, api->version, workspace.bytes);
    choosing = true;
    status = plan.describe(*api, problem, with);
    if (status != CUBLAS_STATUS_SUCCESS)
        return;
    const lt_measured m{b, *api, handle, s, workspace};
    if (measures)
        measure(m, known, with);
    else
        launch(m, known, with);
} catch (const std::exception&) {
    error = errc::out_of_memory;
}

void lt_handle::job::launch(const lt_measured& m, tuned_algorithms& known, const lt_arguments& with)
{
    const auto launch_with = [&](const cublasLtMatmulAlgo_t* tuned) {
        choosing = true;
        status = plan.choose(m.api, m.handle, m.workspace.bytes, tuned);
        if (status != CUBLAS_STATUS_SUCCESS)
            return;
        choosing = false;
        status = plan.launch(m.api, m.handle, with, m.workspace, m.stream);
    };
    const auto tuned = known.find(plan.key);
    launch_with(tuned ? &*tuned : nullptr);
    if (!plan.is_tuned() || !is_refusal(status))
        return;
    launch_with(nullptr);
    // Otherwise the product itself is refused.
    if (status == CUBLAS_STATUS_SUCCESS)
        known.forget(plan.key, *tuned);
}

void lt_handle::job::measure(const lt_measured& m, tuned_algorithms& known, const lt_arguments& with)
{
    cublasLtMatmulAlgo_t best{};
    const auto ended = measure_algorithms(m, plan, with, best, status);
    if (!ended) {
        error = ended.error();
    } else if (status == CUBLAS_STATUS_SUCCESS) {
        choosing = false;
        measured = ended.value();
        known.add(plan.key, best);
    }
}

blas_context& lt_handle::shared() noexcept
{
    return backend_.resources().get<blas_context>();
}

result<readiness> lt_handle::take_workspace()
{
    if (workspace_)
        return readiness::ready;
    const std::size_t bytes = std::max<std::size_t>(backend_.how().blas_workspace, workspace_unit);
    BOOST_OUTCOME_TRY(workspace_, backend_.buffers().allocate(stream_, bytes, memory_kind::device));
    if (!workspace_)
        return readiness::pending;
    workspace_bytes_ = bytes;
    return readiness::ready;
}

result<readiness> lt_handle::prepare(std::string_view op, const lt_problem& problem, const lt_arguments& with,
                                     lt_plan*& found)
{
    if (job_)
        return collect(op);
    drop_untuned();
    // There is no handle if one could not be created in place of a broken one.
    found = !handle_ || broken_ ? nullptr : find(problem);
    if (found) {
        ++found->users;
        return readiness::ready;
    }
    BOOST_OUTCOME_TRY(const auto ready, take_workspace());
    return ready == readiness::ready ? start(problem, with, nullptr) : ready;
}

result<readiness> lt_handle::tune(std::string_view op, const lt_problem& problem, const lt_arguments& with,
                                  tuning& made)
{
    if (job_) {
        const auto ended = job_;
        BOOST_OUTCOME_TRY(const auto ready, collect(op));
        if (ready == readiness::launched)
            made = ended->measured;
        return ready;
    }
    BOOST_OUTCOME_TRY(const auto ready, take_workspace());
    if (ready != readiness::ready)
        return ready;
    auto turn = shared().take_turn();
    if (!turn)
        return readiness::pending;
    // The greatest magnitude is a single float.
    BOOST_OUTCOME_TRY(const auto taken, take_scratch(std::max(bytes_of_result(problem), sizeof(float))));
    if (taken != readiness::ready)
        return taken;
    lt_arguments measured = with;
    measured.d = scratch_;
    // A product in place is measured in place, because cuBLASLt may compute it in another way.
    if (with.c == with.d)
        measured.c = scratch_;
    if (measured.amax_d)
        measured.amax_d = scratch_;
    auto started = start(problem, measured, std::move(turn));
    if (!started)
        drop_scratch();
    return started;
}

result<readiness> lt_handle::take_scratch(std::size_t bytes)
{
    if (scratch_ && scratch_bytes_ >= bytes)
        return readiness::ready;
    drop_scratch();
    BOOST_OUTCOME_TRY(scratch_, backend_.buffers().allocate(stream_, bytes, memory_kind::device));
    if (!scratch_)
        return readiness::pending;
    scratch_bytes_ = bytes;
    return readiness::ready;
}

result<readiness> lt_handle::start(const lt_problem& problem, const lt_arguments& with, std::shared_ptr<void> turn)
{
    auto made = std::make_shared<job>();
    (broken_ ? made->replaced : made->handle) = handle_;
    made->measures = turn != nullptr;
    made->turn = std::move(turn);
    made->own_c = with.has_own_c();
    auto work = [made, b = &backend_, known = &shared().tuned, s = stream_, problem, with, workspace = workspace()] {
        if (b->dead())
            made->error = errc::context_lost;
        else
            made->run(*b, *known, s, problem, with, workspace);
        // Before the other lanes are asked again.
        made->turn.reset();
        made->done.store(true, std::memory_order_release);
        b->notify_progress();
    };
    if (!backend_.helpers().run(std::move(work)))
        return errc::out_of_memory;
    job_ = std::move(made);
    handle_ = nullptr;
    broken_ = false;
    return readiness::pending;
}

result<readiness> lt_handle::collect(std::string_view op)
{
    if (!job_->done.load(std::memory_order_acquire))
        return readiness::pending;
    const auto ended = std::exchange(job_, nullptr);
    if (ended->api)
        api_ = ended->api;
    // Until it is destroyed by another job, if this one could not.
    handle_ = ended->replaced ? ended->replaced : ended->handle;
    broken_ = ended->replaced != nullptr;
    drop_scratch();
    if (const auto ec = error_of(op, *ended)) {
        if (!backend_.dead() && api_)
            ended->plan.destroy(*api_);
        return ec;
    }
    if (ended->measures)
        drop_untuned();
    keep(ended->made);
    return readiness::launched;
}

error_code lt_handle::error_of(std::string_view op, const job& ended)
{
    if (ended.error)
        return ended.error;
    if (ended.too_old)
        return no_row_scales(op, *ended.api);
    if (ended.status == CUBLAS_STATUS_NOT_SUPPORTED && ended.choosing)
        return no_algorithm(op, ended.plan.problem(), ended.own_c);
    return check(ended.status);
}

void lt_handle::drop_scratch() noexcept
{
    if (scratch_ && !backend_.dead())
        (void)backend_.check(
            backend_.buffers().release(stream_, std::exchange(scratch_, nullptr), scratch_bytes_, memory_kind::device));
}

void lt_handle::drop_untuned()
{
    const auto& tuned = shared().tuned;
    const unsigned now = tuned.additions();
    if (now == additions_)
        return;
    const unsigned before = std::exchange(additions_, now);
    std::erase_if(plans_, [&](lt_plan& p) {
        p.outdated = p.outdated || tuned.added_after(p.key, before);
        if (!p.outdated || p.users != 0)
            return false;
        p.destroy(*api_);
        return true;
    });
}

lt_plan* lt_handle::find(const lt_problem& problem) noexcept
{
    const auto at =
        std::ranges::find_if(plans_, [&](const lt_plan& p) { return !p.outdated && p.problem() == problem; });
    if (at == plans_.end())
        return nullptr;
    plans_.splice(plans_.begin(), plans_, at);
    return &*at;
}

void lt_handle::keep(std::list<lt_plan>& made) noexcept
{
    for (auto at = plans_.end(); plans_.size() >= most_plans && at != plans_.begin();) {
        --at;
        if (at->users == 0) {
            at->destroy(*api_);
            at = plans_.erase(at);
        }
    }
    plans_.splice(plans_.begin(), made);
}

error_code lt_handle::launch(lt_plan& plan, const lt_arguments& with) noexcept
{
    auto status = plan.launch(*api_, handle_, with, workspace(), stream_);
    if (plan.is_tuned() && is_refusal(status))
        status = launch_proposed(plan, with);
    return check(status);
}

cublasStatus_t lt_handle::launch_proposed(lt_plan& plan, const lt_arguments& with) noexcept
try {
    const auto refused = plan.algorithm();
    // The choice is made here, because the op cannot be prepared again. This happens once for an algorithm.
    auto status = plan.choose(*api_, handle_, workspace_bytes_, nullptr);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = plan.launch(*api_, handle_, with, workspace(), stream_);
    // Otherwise the product itself is refused.
    if (status == CUBLAS_STATUS_SUCCESS)
        forget_later(backend_.helpers(), shared().tuned, plan.key, refused);
    else
        plan.outdated = true;
    return status;
} catch (const std::exception&) {
    plan.outdated = true;
    return CUBLAS_STATUS_ALLOC_FAILED;
}

error_code lt_handle::check(cublasStatus_t status) noexcept
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return {};
    if (auto ec = find_fault(backend_, stream_))
        return ec;
    if (status == CUBLAS_STATUS_NOT_INITIALIZED || status == CUBLAS_STATUS_INTERNAL_ERROR)
        broken_ = true;
    return make_error(status);
}

void lt_handle::destroy() noexcept
{
    // What was made for an op that did not fetch the result.
    if (const auto left = std::exchange(job_, nullptr)) {
        api_ = left->api ? left->api : api_;
        handle_ = left->replaced ? left->replaced : left->handle;
        if (api_)
            left->plan.destroy(*api_);
    }
    for (lt_plan& plan : plans_)
        plan.destroy(*api_);
    plans_.clear();
    if (handle_)
        (void)api_->cublasLtDestroy(std::exchange(handle_, nullptr));
    for (const auto& [memory, bytes] : {std::pair(&workspace_, workspace_bytes_), std::pair(&scratch_, scratch_bytes_)})
        if (*memory)
            (void)backend_.buffers().release(stream_, std::exchange(*memory, nullptr), bytes, memory_kind::device);
}

} // namespace coaccel::cuda
