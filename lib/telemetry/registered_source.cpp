#include "telemetry/registered_source.hpp"

#include "telemetry/sample_set.hpp"

namespace coaccel::detail {

void registered_source::call(sample_list& out)
{
    const std::lock_guard lock(mutex_);
    // A source that collects and runs its executor would get here while it is running.
    if (closed_ || running_ || !function_)
        return;
    running_ = true;
    const auto end = [this](void*) {
        running_ = false;
        if (closed_)
            function_ = nullptr;
    };
    const std::unique_ptr<void, decltype(end)> guard(this, end);
    telemetry::metric_writer writer(out);
    function_(writer);
}

void registered_source::close() noexcept
{
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (!running_)
        function_ = nullptr;
}

} // namespace coaccel::detail
