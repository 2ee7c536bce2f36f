#include "cuda/blas/lt_handle.hpp"

#include "cuda/backend.hpp"
#include "cuda/blas/blas_context.hpp"
#include "cuda/blas/cublas_error.hpp"
#include "cuda/blas/lt_tuning.hpp"

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

error_code no_algorithm(std::string_view op, const lt_problem& p) noexcept
{
    const std::uint64_t k = p.trans_a == CUBLAS_OP_N ? p.a.cols : p.a.rows;
    return coaccel::detail::op_error(errc::unsupported_op, op,
                                     {"cuBLASLt has no algorithm for m ",
                                      p.d.rows,
                                      ", n ",
                                      p.d.cols,
                                      ", k ",
                                      k,
                                      ", lda ",
                                      p.a.ld,
                                      ", ldb ",
                                      p.b.ld,
                                      ", ldd ",
                                      p.d.ld,
                                      ", batch ",
                                      p.batch,
                                      ", operands aligned to ",
                                      p.a.alignment,
                                      ", ",
                                      p.b.alignment,
                                      " and ",
                                      p.d.alignment,
                                      " bytes, on this GPU"});
}

} // namespace

struct lt_handle::job {
    std::atomic<bool> done{false};
    error_code error;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    /// The status is that of choosing an algorithm.
    bool choosing = false;
    const cublaslt_api* api = nullptr;
    cublasLtHandle_t handle = nullptr;
    /// A broken handle, destroyed before the new one is created.
    cublasLtHandle_t replaced = nullptr;
    /// The one plan, in a list so that it is kept without an allocation, which could fail when the product is already
    /// on the stream.
    std::list<lt_plan> made{1};
    lt_plan& plan = made.front();
    /// Instead of a product.
    bool measures = false;
    tuning measured;

    void run(backend& b, tuned_algorithms& known, CUstream s, const lt_problem& problem, const lt_arguments& with,
             const lt_workspace& workspace);

private:
    void measure(const lt_measured& m, tuned_algorithms& known, const std::string& key, const lt_arguments& with);
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
    if (replaced)
        (void)api->cublasLtDestroy(std::exchange(replaced, nullptr));
    if (!handle)
        status = api->cublasLtCreate(&handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        handle = nullptr;
        return;
    }
    const std::string key = key_of(problem, b.hardware().name, api->version, workspace.bytes);
    const auto tuned = measures ? std::nullopt : known.find(key);
    choosing = true;
    status = plan.make(*api, handle, problem, with, workspace.bytes, tuned ? &*tuned : nullptr);
    if (status != CUBLAS_STATUS_SUCCESS)
        return;
    if (measures)
        return measure({b, *api, handle, s, workspace}, known, key, with);
    choosing = false;
    status = plan.launch(*api, handle, with, workspace, s);
} catch (const std::exception&) {
    error = errc::out_of_memory;
}

void lt_handle::job::measure(const lt_measured& m, tuned_algorithms& known, const std::string& key,
                             const lt_arguments& with)
{
    cublasLtMatmulAlgo_t best{};
    const auto ended = measure_algorithms(m, plan, with, best, status);
    if (!ended) {
        error = ended.error();
    } else if (status == CUBLAS_STATUS_SUCCESS) {
        choosing = false;
        measured = ended.value();
        known.add(key, best);
    }
}

tuned_algorithms& lt_handle::tuned() noexcept
{
    return backend_.resources().get<blas_context>().tuned;
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
    return ready == readiness::ready ? start(problem, with, 0) : ready;
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
    const std::uint64_t elements =
        (static_cast<std::uint64_t>(problem.batch) - 1) * static_cast<std::uint64_t>(problem.d.stride) +
        static_cast<std::uint64_t>(problem.d.ld) * problem.d.cols;
    if (!scratch_) {
        // No element of a result is larger.
        const std::size_t bytes = elements * sizeof(float);
        BOOST_OUTCOME_TRY(scratch_, backend_.buffers().allocate(stream_, bytes, memory_kind::device));
        if (!scratch_)
            return readiness::pending;
        scratch_bytes_ = bytes;
    }
    lt_arguments measured = with;
    measured.d = scratch_;
    // A single element, which is in the same memory.
    if (measured.amax_d)
        measured.amax_d = scratch_;
    auto started = start(problem, measured, scratch_bytes_);
    if (!started)
        drop_scratch();
    return started;
}

result<readiness> lt_handle::start(const lt_problem& problem, const lt_arguments& with, std::size_t scratch_bytes)
{
    auto made = std::make_shared<job>();
    (broken_ ? made->replaced : made->handle) = handle_;
    made->measures = scratch_bytes != 0;
    auto work = [made, b = &backend_, known = &tuned(), s = stream_, problem, with, workspace = workspace()] {
        if (b->dead())
            made->error = errc::context_lost;
        else
            made->run(*b, *known, s, problem, with, workspace);
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
    if (ended->error) {
        if (!backend_.dead() && api_)
            ended->plan.destroy(*api_);
        return ended->error;
    }
    if (ended->status == CUBLAS_STATUS_NOT_SUPPORTED && ended->choosing) {
        if (api_)
            ended->plan.destroy(*api_);
        return no_algorithm(op, ended->plan.problem());
    }
    if (auto ec = check(ended->status)) {
        if (!backend_.dead() && api_)
            ended->plan.destroy(*api_);
        return ec;
    }
    if (ended->measures)
        drop_untuned();
    keep(ended->made);
    return readiness::launched;
}

void lt_handle::drop_scratch() noexcept
{
    if (scratch_ && !backend_.dead())
        (void)backend_.check(
            backend_.buffers().release(stream_, std::exchange(scratch_, nullptr), scratch_bytes_, memory_kind::device));
}

void lt_handle::drop_untuned() noexcept
{
    const unsigned now = tuned().additions();
    if (now == additions_)
        return;
    additions_ = now;
    std::erase_if(plans_, [this](lt_plan& p) {
        p.outdated = true;
        if (p.users != 0)
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
    return check(plan.launch(*api_, handle_, with, workspace(), stream_));
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
