#include "telemetry/nvml_sampler.hpp"

#include "posix/scoped_signal_block.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace coaccel::detail {
namespace {

constexpr std::chrono::nanoseconds shortest_interval = std::chrono::milliseconds(10);
constexpr std::chrono::nanoseconds longest_interval = std::chrono::hours(1);
// Readings older than this many intervals are not shown; nor are those older than `least_age`, however short these are.
constexpr int most_intervals = 3;
constexpr auto least_age = std::chrono::seconds(1);

} // namespace

struct nvml_sampler::state {
    state(std::chrono::nanoseconds i, loader l)
        : interval(std::clamp(i, shortest_interval, longest_interval)), load(std::move(l))
    {}

    const std::chrono::nanoseconds interval;
    const loader load;
    mutable std::mutex mutex;
    std::condition_variable changed;
    bool stopping = false;
    bool ended = false;
    error_code error;
    std::vector<gpu_reading> readings;
    clock::time_point read_at{};
};

nvml_sampler::nvml_sampler(std::chrono::nanoseconds interval, loader load)
    : state_(std::make_shared<state>(interval, std::move(load)))
{
    const scoped_signal_block inherited;
    try {
        std::thread([s = state_] { run(s); }).detach();
    } catch (const std::exception&) {
        state_->ended = true;
        state_->error = errc::out_of_memory;
    }
}

nvml_sampler::~nvml_sampler()
{
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, patience, [this] { return state_->ended; });
}

std::vector<gpu_reading> nvml_sampler::latest() const
{
    const std::scoped_lock lock(state_->mutex);
    const auto oldest = std::max<std::chrono::nanoseconds>(most_intervals * state_->interval, least_age);
    if (clock::now() - state_->read_at > oldest)
        return {};
    return state_->readings;
}

error_code nvml_sampler::error() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->error;
}

void nvml_sampler::run(const std::shared_ptr<state>& s) noexcept
{
    const auto end = [&s](const error_code& why) {
        const std::scoped_lock lock(s->mutex);
        s->error = why;
        s->readings.clear();
        s->ended = true;
        s->changed.notify_all();
    };
    try {
        const auto api = s->load();
        if (!api)
            return end(api.error());
        const nvml_api& nvml = api.value();
        if (const auto r = nvml.nvmlInit_v2(); r != nvml_result::success)
            return end(make_error_with_message(errc::backend_unavailable,
                                               std::string("nvmlInit_v2: ") + nvml.nvmlErrorString(r)));
        std::unique_lock lock(s->mutex);
        while (!s->stopping) {
            lock.unlock();
            auto now = read_gpus(nvml);
            lock.lock();
            s->readings = std::move(now);
            s->read_at = clock::now();
            s->changed.wait_for(lock, s->interval, [&s] { return s->stopping; });
        }
        lock.unlock();
        (void)nvml.nvmlShutdown();
        end({});
    } catch (const std::exception&) {
        end(errc::out_of_memory);
    }
}

} // namespace coaccel::detail
