#include "cuda/blas/lt_tuning.hpp"

#include "cuda/backend.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace coaccel::cuda {
namespace {

constexpr int most_algorithms = 32;
/// An algorithm that takes this many times as long as the fastest one so far is not measured again.
constexpr float hopeless = 2;

/// Two events of a stream, with times.
class stopwatch {
public:
    stopwatch(backend& b, CUstream s) noexcept : b_(b), stream_(s) {}
    stopwatch(const stopwatch&) = delete;
    stopwatch& operator=(const stopwatch&) = delete;

    ~stopwatch()
    {
        for (const CUevent e : {begin_, end_})
            if (e && !b_.dead())
                (void)b_.check(b_.api().cuEventDestroy(e));
    }

    error_code make()
    {
        for (CUevent* e : {&begin_, &end_})
            if (auto ec = b_.check(b_.api().cuEventCreate(e, CU_EVENT_DEFAULT))) {
                *e = nullptr;
                return ec;
            }
        return {};
    }

    error_code start() { return b_.check(b_.api().cuEventRecord(begin_, stream_)); }

    /// The microseconds since the start, when the stream gets here.
    result<float> stop()
    {
        if (auto ec = b_.check(b_.api().cuEventRecord(end_, stream_)))
            return ec;
        if (auto ec = wait())
            return ec;
        // No further call for a context that was given up meanwhile.
        if (b_.aborted())
            return errc::context_lost;
        float milliseconds = 0;
        if (auto ec = b_.check(b_.api().elapsed_time(&milliseconds, begin_, end_)))
            return ec;
        return 1000 * milliseconds;
    }

private:
    error_code wait()
    {
        watched_waits::wait wait(b_.waits());
        // Earlier ops on the stream count as hanging by themselves.
        if (auto ec = b_.check(b_.api().cuEventSynchronize(begin_)))
            return ec;
        wait.begin(std::chrono::steady_clock::now());
        return b_.check(b_.api().cuEventSynchronize(end_));
    }

    backend& b_;
    const CUstream stream_;
    CUevent begin_ = nullptr;
    CUevent end_ = nullptr;
};

/// The microseconds of one product, from several in succession; nothing if a call of cuBLASLt failed with `status`.
result<std::optional<float>> time_of(const lt_measured& m, stopwatch& watch, lt_plan& plan, const lt_arguments& with,
                                     float best, cublasStatus_t& status)
{
    const auto run = [&](int times) -> result<std::optional<float>> {
        if (auto ec = watch.start())
            return ec;
        for (int i = 0; i < times; ++i) {
            status = plan.launch(m.api, m.handle, with, m.workspace, m.stream);
            if (status != CUBLAS_STATUS_SUCCESS)
                return std::optional<float>();
        }
        BOOST_OUTCOME_TRY(const float all, watch.stop());
        return std::optional(all / static_cast<float>(times));
    };
    // The first one may load the kernel, the second one tells how often to measure.
    for (int i = 0; i < 2; ++i) {
        BOOST_OUTCOME_TRY(const auto once, run(1));
        if (!once || (i == 1 && best > 0 && *once > hopeless * best))
            return once;
        if (i == 1)
            return run(std::clamp(static_cast<int>(2000 / std::max(*once, 1.0F)), 3, 50));
    }
    return std::optional<float>();
}

/// Whether an algorithm cannot be used, although it was found. Other errors may be faults.
bool is_refusal(cublasStatus_t s) noexcept
{
    return s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE || s == CUBLAS_STATUS_ARCH_MISMATCH;
}

} // namespace

result<tuning> measure_algorithms(const lt_measured& m, lt_plan& plan, const lt_arguments& with,
                                  cublasLtMatmulAlgo_t& best, cublasStatus_t& status)
{
    std::vector<cublasLtMatmulAlgo_t> found;
    status = plan.find_algorithms(m.api, m.handle, m.workspace.bytes, most_algorithms, found);
    if (status != CUBLAS_STATUS_SUCCESS)
        return tuning{};
    stopwatch watch(m.b, m.stream);
    if (auto ec = watch.make())
        return ec;
    tuning made;
    for (const auto& algorithm : found) {
        plan.use(algorithm);
        BOOST_OUTCOME_TRY(const auto took, time_of(m, watch, plan, with, made.best_us, status));
        if (!took && is_refusal(status))
            continue;
        if (!took)
            return made;
        if (made.candidates++ == 0)
            made.first_us = *took;
        if (made.candidates == 1 || *took < made.best_us) {
            made.best_us = *took;
            best = algorithm;
        }
    }
    status = made.candidates == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    if (made.candidates != 0)
        plan.use(best);
    return made;
}

} // namespace coaccel::cuda
