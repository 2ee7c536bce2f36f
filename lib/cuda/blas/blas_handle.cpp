#include "cuda/blas/blas_handle.hpp"

#include "cuda/backend.hpp"
#include "cuda/blas/cublas_error.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace coaccel::cuda {
namespace {

constexpr std::size_t cell_bytes = 256;
// Some cuBLAS functions fail with less.
constexpr std::size_t least_workspace = std::size_t(16) << 10;

// cublasSetStream resets the workspace, so it comes first.
cublasStatus_t set_up(const cublas_api& api, cublasHandle_t h, CUstream s, void* workspace, std::size_t bytes,
                      blas_mode mode)
{
    auto status = api.cublasSetStream(h, s);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = api.cublasSetWorkspace(h, workspace, bytes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = api.cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST);
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            api.cublasSetAtomicsMode(h, mode == blas_mode::fast ? CUBLAS_ATOMICS_ALLOWED : CUBLAS_ATOMICS_NOT_ALLOWED);
    // Otherwise cuBLAS may accumulate partial sums of 16-bit elements in 16 bits.
    if (status == CUBLAS_STATUS_SUCCESS)
        status = api.cublasSetMathMode(
            h, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    return status;
}

} // namespace

bool call_needs::many_launches() const noexcept
{
    // An op is started on a lane with almost most_commands_on_stream commands, and both must fit into the queue.
    return launches > backend::most_commands_on_stream / 2;
}

struct blas_handle::job {
    std::atomic<bool> done{false};
    error_code error;
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const cublas_api* api = nullptr;
    cublasHandle_t handle = nullptr;
    /// A broken handle, destroyed before the new one is created.
    cublasHandle_t replaced = nullptr;

    void make(backend& b, CUstream s, void* workspace, std::size_t bytes);
};

void blas_handle::job::make(backend& b, CUstream s, void* workspace, std::size_t bytes)
{
    auto table = b.libraries().get<cublas_api>();
    if (!table || b.dead()) {
        error = table ? make_error_code(errc::context_lost) : table.error();
        return;
    }
    api = table.value();
    cublasHandle_t made = nullptr;
    status = api->cublasCreate(&made);
    if (status != CUBLAS_STATUS_SUCCESS)
        return;
    status = set_up(*api, made, s, workspace, bytes, b.how().blas);
    if (status == CUBLAS_STATUS_SUCCESS)
        handle = made;
    else if (!b.dead())
        (void)api->cublasDestroy(made);
}

result<readiness> blas_handle::prepare(const call_needs& needs)
{
    if (!handle_ || broken_) {
        BOOST_OUTCOME_TRY(const auto made, make());
        if (made == readiness::pending)
            return made;
    }
    if (needs.addresses != 0) {
        BOOST_OUTCOME_TRY(const auto tables, tables_.prepare(needs.addresses, needs.pivots));
        if (tables == readiness::pending)
            return tables;
    }
    if (needs.scratch != 0 && !scratch_)
        return take_scratch(needs.scratch);
    return readiness::ready;
}

result<readiness> blas_handle::make()
{
    if (job_) {
        if (!job_->done.load(std::memory_order_acquire))
            return readiness::pending;
        const auto ended = std::exchange(job_, nullptr);
        if (ended->error)
            return ended->error;
        if (auto ec = check(ended->status))
            return ec;
        api_ = ended->api;
        handle_ = ended->handle;
        broken_ = false;
        return readiness::ready;
    }
    if (!workspace_) {
        const std::size_t bytes = cell_bytes + std::max<std::size_t>(backend_.how().blas_workspace, least_workspace);
        BOOST_OUTCOME_TRY(workspace_, backend_.buffers().allocate(stream_, bytes, memory_kind::device));
        if (!workspace_)
            return readiness::pending;
        workspace_bytes_ = bytes;
    }
    auto made = std::make_shared<job>();
    made->replaced = handle_;
    auto work = [made, b = &backend_, s = stream_, old_api = api_,
                 workspace = static_cast<char*>(workspace_) + cell_bytes, bytes = workspace_bytes_ - cell_bytes] {
        // cublasDestroy waits for the whole device, so it runs here.
        if (made->replaced && !b->dead())
            (void)old_api->cublasDestroy(std::exchange(made->replaced, nullptr));
        made->make(*b, s, workspace, bytes);
        made->done.store(true, std::memory_order_release);
        b->notify_progress();
    };
    if (!backend_.helpers().run(std::move(work)))
        return errc::out_of_memory;
    handle_ = nullptr;
    broken_ = false;
    job_ = std::move(made);
    return readiness::pending;
}

result<readiness> blas_handle::take_scratch(std::size_t bytes)
{
    BOOST_OUTCOME_TRY(scratch_, backend_.buffers().allocate(stream_, bytes, memory_kind::device));
    if (!scratch_)
        return readiness::pending;
    scratch_bytes_ = bytes;
    return readiness::ready;
}

result<readiness> blas_handle::launch_behind(call c)
{
    auto made = std::make_shared<job>();
    auto work = [made, b = &backend_, with = tools(), c = std::move(c)] {
        if (b->dead())
            made->error = errc::context_lost;
        else
            made->status = c(with);
        made->done.store(true, std::memory_order_release);
        b->notify_progress();
    };
    if (!backend_.helpers().run(std::move(work))) {
        drop_scratch();
        return errc::out_of_memory;
    }
    job_ = std::move(made);
    launching_ = true;
    return readiness::pending;
}

result<readiness> blas_handle::collect(std::uint64_t kernels)
{
    if (!job_->done.load(std::memory_order_acquire))
        return readiness::pending;
    const auto finished = std::exchange(job_, nullptr);
    launching_ = false;
    if (finished->error)
        return finished->error;
    if (auto ec = ended(finished->status))
        return ec;
    loaded_.insert(kernels);
    return readiness::launched;
}

error_code blas_handle::ended(cublasStatus_t status) noexcept
{
    drop_scratch();
    const auto tables = tables_.launched();
    const auto call = check(status);
    return tables ? tables : call;
}

void blas_handle::drop_scratch() noexcept
{
    if (!scratch_ || backend_.dead())
        return;
    (void)backend_.check(
        backend_.buffers().release(stream_, std::exchange(scratch_, nullptr), scratch_bytes_, memory_kind::device));
}

error_code blas_handle::check(cublasStatus_t status) noexcept
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return {};
    if (auto ec = find_fault(backend_, stream_))
        return ec;
    if (status == CUBLAS_STATUS_NOT_INITIALIZED || status == CUBLAS_STATUS_INTERNAL_ERROR)
        broken_ = true;
    return make_error(status);
}

void blas_handle::destroy() noexcept
{
    lt_.destroy();
    // Handles created or replaced for an op that did not fetch the result.
    if (job_ && job_->handle)
        (void)job_->api->cublasDestroy(std::exchange(job_->handle, nullptr));
    if (job_ && job_->replaced)
        (void)api_->cublasDestroy(std::exchange(job_->replaced, nullptr));
    if (handle_)
        (void)api_->cublasDestroy(std::exchange(handle_, nullptr));
    drop_scratch();
    tables_.destroy();
    if (workspace_)
        (void)backend_.buffers().release(stream_, std::exchange(workspace_, nullptr), workspace_bytes_,
                                         memory_kind::device);
}

} // namespace coaccel::cuda
