#ifndef COACCEL_BENCH_CUDA_OURS_HPP
#define COACCEL_BENCH_CUDA_OURS_HPP

#include "one_device.hpp"

#include <coaccel/ops/jit.hpp>

#include <string>

namespace coaccel::bench {

/// The GPU through coaccel's interface, with a compiled kernel.
class our_gpu : public one_device {
public:
    using empty_launch = jit::launch_op<>;

    explicit our_gpu(const std::string& cache_folder, const device_options& options = {});

    /// An op that launches an empty kernel with one thread.
    empty_launch empty() const noexcept { return jit::launch(kernel_, jit::launch_shape{}); }

    /// Returns a function for `await_each` that starts the op.
    auto start_empty() const
    {
        return [gpu = &gpu(), op = empty()] { return gpu->async_exec(op); };
    }

    /// The seconds per op with this many coroutines, each awaiting one empty kernel after another.
    double launch_time(int coroutines, int ops_each)
    {
        return run(coroutines, [&] { return await_each(start_empty(), ops_each); }) /
               (static_cast<double>(coroutines) * ops_each);
    }

private:
    jit::kernel kernel_;
};

} // namespace coaccel::bench

#endif
