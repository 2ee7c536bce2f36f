#include "cuda/blas/lt_tuning.hpp"

#include "cuda/backend.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace coaccel::cuda {
namespace {

constexpr int most_algorithms = 32;
/// An algorithm is not measured further if one product takes this many times as long as with the first algorithm.
constexpr float hopeless = 2;
/// The first algorithm is kept unless another one takes less than this part of its time: smaller differences are those
/// between two measurements of one algorithm.
constexpr float clearly_faster = 0.97F;

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

    error_code start()
    {
        // Before anything is on the stream: a thread that gives the context up sees this wait, or is seen here.
        waiting_.emplace(b_.waits());
        if (b_.aborted())
            return errc::context_lost;
        return b_.check(b_.api().cuEventRecord(begin_, stream_));
    }

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
        // Earlier ops on the stream count as hanging by themselves.
        if (auto ec = b_.check(b_.api().cuEventSynchronize(begin_)))
            return ec;
        waiting_->begin(std::chrono::steady_clock::now());
        const auto ended = b_.check(b_.api().cuEventSynchronize(end_));
        waiting_.reset();
        return ended;
    }

    backend& b_;
    const CUstream stream_;
    std::optional<watched_waits::wait> waiting_;
    CUevent begin_ = nullptr;
    CUevent end_ = nullptr;
};

/// The times of several algorithms, which are all measured in the same way.
class measurements {
public:
    measurements(const lt_measured& m, lt_plan& plan, const lt_arguments& with) noexcept
        : m_(m), plan_(plan), with_(with), watch_(m.b, m.stream)
    {}

    error_code make() { return watch_.make(); }

    /// The microseconds of one product, from several in succession; infinity for an algorithm that is hopeless. No
    /// value: a call of cuBLASLt failed with `status`.
    result<std::optional<float>> time_of(const cublasLtMatmulAlgo_t& algorithm, cublasStatus_t& status)
    {
        plan_.use(algorithm);
        // The first product may load the kernel.
        for (int i = 0; i < 2; ++i) {
            BOOST_OUTCOME_TRY(const auto alone, run(1, status));
            if (!alone)
                return alone;
            // The time of one product includes that of its launch, so it is compared with that of one product only.
            const float once = std::max(*alone, 1.0F);
            if (i == 1 && times_ == 0) {
                first_once_ = once;
                times_ = std::clamp(static_cast<int>(2000 / once), 3, 50);
            }
            if (i == 1 && once > hopeless * first_once_)
                return std::optional(std::numeric_limits<float>::infinity());
        }
        return run(times_, status);
    }

private:
    result<std::optional<float>> run(int times, cublasStatus_t& status)
    {
        if (auto ec = watch_.start())
            return ec;
        for (int i = 0; i < times; ++i) {
            status = plan_.launch(m_.api, m_.handle, with_, m_.workspace, m_.stream);
            if (status != CUBLAS_STATUS_SUCCESS)
                return std::optional<float>();
        }
        BOOST_OUTCOME_TRY(const float all, watch_.stop());
        return std::optional(all / static_cast<float>(times));
    }

    const lt_measured& m_;
    lt_plan& plan_;
    const lt_arguments& with_;
    stopwatch watch_;
    /// How many products are launched in succession, and the time of one product with the first algorithm.
    int times_ = 0;
    float first_once_ = 0;
};

} // namespace

result<tuning> measure_algorithms(const lt_measured& m, lt_plan& plan, const lt_arguments& with,
                                  cublasLtMatmulAlgo_t& best, cublasStatus_t& status)
{
    std::vector<cublasLtMatmulAlgo_t> found;
    status = plan.find_algorithms(m.api, m.handle, m.workspace.bytes, most_algorithms, found);
    if (status != CUBLAS_STATUS_SUCCESS)
        return tuning{};
    measurements all(m, plan, with);
    if (auto ec = all.make())
        return ec;
    tuning made;
    auto refusal = CUBLAS_STATUS_SUCCESS;
    for (const auto& algorithm : found) {
        BOOST_OUTCOME_TRY(const auto took, all.time_of(algorithm, status));
        if (!took) {
            if (!is_refusal(status))
                return made;
            if (refusal == CUBLAS_STATUS_SUCCESS)
                refusal = status;
            continue;
        }
        if (made.candidates++ == 0)
            made.first_us = *took;
        if (made.candidates == 1 || (*took < made.best_us && *took < clearly_faster * made.first_us)) {
            made.best_us = *took;
            best = algorithm;
        }
    }
    status = made.candidates == 0 ? refusal : CUBLAS_STATUS_SUCCESS;
    if (made.candidates != 0)
        plan.use(best);
    return made;
}

} // namespace coaccel::cuda
