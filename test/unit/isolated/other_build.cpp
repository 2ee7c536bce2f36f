#include "worker/wire.hpp"

// With the worker's main(), in which this stands for build_identity(), a worker program of another build.
namespace coaccel::worker {

std::uint64_t other_build_identity() noexcept
{
    return build_identity() + 1;
}

} // namespace coaccel::worker
