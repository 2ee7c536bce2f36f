#ifndef COACCEL_CUDA_RAND_GENERATORS_HPP
#define COACCEL_CUDA_RAND_GENERATORS_HPP

#include "context/library_resources.hpp"
#include "context/recently_used.hpp"
#include "cuda/driver/driver_api.hpp"
#include "cuda/rand/curand_api.hpp"

#include <coaccel/core/backend.hpp>
#include <coaccel/ops/rand/generator.hpp>

#include <boost/unordered/unordered_flat_set.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace coaccel::cuda {

class backend;

/// A generator of cuRAND. Used on the executor, and by at most one job on the thread pool, while which it is `busy`.
struct generator_state {
    std::uint64_t id = 0;
    const curand_api* api = nullptr;
    /// Null until a job has created it.
    curandGenerator_t handle = nullptr;
    /// A broken handle, destroyed before the next one is created.
    curandGenerator_t replaced = nullptr;
    /// A job on the thread pool uses it.
    bool busy = false;
    /// The job launches an op; otherwise it creates the handle.
    bool launching = false;
    /// No op has used it yet.
    bool fresh = true;
    /// As rand::drawn::position.
    std::uint64_t position = 0;
    /// The position that cuRAND has reached by itself.
    std::uint64_t own_position = 0;
    static constexpr std::uint64_t unknown_position = ~std::uint64_t(0);
    /// The stream of its last op.
    CUstream stream = nullptr;
    /// The mean of the last Poisson numbers: cuRAND makes a table for each mean.
    double lambda = 0;
    /// Device memory for the op that is being launched.
    void* scratch = nullptr;
    std::size_t scratch_bytes = 0;
};

/// The generators of a context. They are created on the thread pool, on first use. The least recently used ones are
/// destroyed when there are more than rand::most_generators.
class generators final : public detail::library_resources {
public:
    static constexpr coaccel::library lib = coaccel::library::rand;

    explicit generators(backend& b) noexcept : backend_(b) {}

    /// The state of a generator, which is made on first use.
    generator_state& find(const rand::generator& g);

    /// Creates the handle. A function of the state, because it runs on the thread pool.
    static error_code create(backend& b, generator_state& g, const rand::generator_options& options);

    /// Makes the generator work on this stream. The engine makes the stream wait for its earlier work on others.
    error_code use_on(generator_state& g, CUstream s);

    /// Whether there is scratch memory; if not, the driver is being asked for it.
    result<bool> reserve_scratch(generator_state& g, std::size_t bytes);
    /// Releases it after the work that has been launched.
    void release_scratch(generator_state& g) noexcept;

    /// The error of a call. A generator that cuRAND reports as broken is created again for the next op.
    error_code check(generator_state& g, curandStatus_t status) noexcept;

    /// The first launch of an op loads kernels, which may take long.
    bool loaded(const rand::generator& g, std::uint64_t op_id) const
    {
        return loaded_.contains(key(g.options().algorithm, op_id));
    }
    void note_loaded(const rand::generator& g, std::uint64_t op_id)
    {
        loaded_.insert(key(g.options().algorithm, op_id));
    }

    void destroy() noexcept override;
    std::size_t count() const noexcept override;

private:
    static std::uint64_t key(rand::algorithm a, std::uint64_t op_id) noexcept
    {
        return op_id ^ (std::uint64_t(a) + 1) * 0x9e3779b97f4a7c15ull;
    }

    /// Handles that are being destroyed on the thread pool.
    struct retired {
        explicit retired(const generator_state& g) noexcept : api(g.api), handles{g.handle, g.replaced} {}

        void destroy() noexcept;

        const curand_api* api;
        std::array<curandGenerator_t, 2> handles;
        std::atomic<bool> gone{false};
    };

    bool drop(generator_state& g);

    backend& backend_;
    detail::recently_used<generator_state> all_;
    std::vector<std::shared_ptr<retired>> retired_;
    boost::unordered_flat_set<std::uint64_t> loaded_;
};

} // namespace coaccel::cuda

#endif
