#ifndef COACCEL_CUDA_DRIVER_WATCHED_WAITS_HPP
#define COACCEL_CUDA_DRIVER_WATCHED_WAITS_HPP

#include <algorithm>
#include <chrono>
#include <list>
#include <mutex>
#include <optional>

namespace coaccel::cuda {

/// The waits of helper threads for work that no in-flight request stands for. The engine asks for them, because a
/// thread that waits for a hanging kernel cannot report it.
///
/// Thread safety: any thread.
class watched_waits {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// One wait, from its construction to its destruction.
    class wait {
    public:
        explicit wait(watched_waits& all) : all_(all)
        {
            const std::scoped_lock lock(all_.mutex_);
            here_ = all_.began_.insert(all_.began_.end(), time_point::max());
        }
        wait(const wait&) = delete;
        wait& operator=(const wait&) = delete;
        ~wait()
        {
            const std::scoped_lock lock(all_.mutex_);
            all_.began_.erase(here_);
        }

        /// The device has begun with the work that is waited for.
        void begin(time_point now) noexcept
        {
            const std::scoped_lock lock(all_.mutex_);
            *here_ = now;
        }

    private:
        watched_waits& all_;
        std::list<time_point>::iterator here_;
    };

    /// Since when the device has been busy with the oldest of them, time_point::max() if it has not begun with any; no
    /// value: there is none.
    std::optional<time_point> oldest() const noexcept
    {
        const std::scoped_lock lock(mutex_);
        if (began_.empty())
            return std::nullopt;
        return *std::ranges::min_element(began_);
    }

private:
    mutable std::mutex mutex_;
    std::list<time_point> began_;
};

} // namespace coaccel::cuda

#endif
