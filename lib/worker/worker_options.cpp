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
    const bool fits = staging_bytes >= least_staging && staging_bytes <= most_staging &&
                      start_timeout > nanoseconds(0) && (heartbeat == nanoseconds(0) || heartbeat >= least_heartbeat) &&
                      spin >= nanoseconds(0) && spin <= longest_spin;
    return fits ? error_code{} : make_error_code(errc::invalid_option);
}

} // namespace coaccel
