#include "core/option_check.hpp"

#include <coaccel/worker/worker_options.hpp>

namespace coaccel {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t least_staging = std::uint64_t(1) << 20;
constexpr std::uint64_t most_staging = std::uint64_t(64) << 30;
constexpr nanoseconds least_heartbeat = std::chrono::milliseconds(50);
constexpr nanoseconds longest_spin = std::chrono::seconds(1);

} // namespace

error_code worker_options::check() const noexcept
{
    return detail::check_options({
        {staging_bytes >= least_staging && staging_bytes <= most_staging, "worker.staging_bytes", staging_bytes,
         "it must be from 1 MiB to 64 GiB"},
        {start_timeout > nanoseconds(0), "worker.start_timeout", start_timeout, detail::above_zero},
        {heartbeat == nanoseconds(0) || heartbeat >= least_heartbeat, "worker.heartbeat", heartbeat,
         "it must be 0, for none, or at least 50 ms"},
        {spin >= nanoseconds(0) && spin <= longest_spin, "worker.spin", spin, "it must be from 0 to 1 s"},
    });
}

} // namespace coaccel
