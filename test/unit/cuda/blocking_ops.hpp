#ifndef COACCEL_TEST_UNIT_CUDA_ERRAND_HPP
#define COACCEL_TEST_UNIT_CUDA_ERRAND_HPP

#include "cuda_world.hpp"

#include <coaccel/ops/blas.hpp>

#include <memory>
#include <vector>

namespace test {

/// Everything that a context does, one step after another, however many of them fail.
class blocking_op {
public:
    explicit blocking_op(context_driver& d) : d_(d) {}

    void run()
    {
        const auto small = make(1000);
        const auto large = make(200'000);
        std::vector<float> data(200'000, 2.0f);
        std::vector<float> back(data.size());
        if (large.size() != 0)
            attempt_op(coaccel::detail::write_op<float>{large, data.data(), data.size()});
        if (small.size() != 0) {
            attempt_op(coaccel::memory::fill<float>{small, 3.0f});
            attempt_op(coaccel::blas::axpy<float>{.x = small.subspan(0, 500), .y = small.subspan(500, 500), .n = 500});
            attempt_op(coaccel::blas::dot<float>{.x = small, .y = small, .n = 1000});
        }
        if (small.size() != 0 && large.size() != 0)
            attempt_op(coaccel::memory::copy<float>{small, large.subspan(0, 1000)});
        if (large.size() != 0)
            attempt_op(coaccel::detail::read_op<float>{large, back.data(), back.size()});
        allocate_request managed(500, coaccel::dtype::f32, coaccel::memory_kind::managed);
        attempt(managed);
        for (const auto& r : {small.raw(), large.raw(), managed.made.ref})
            if (r.size != 0)
                d_.context->release(r);
    }

    int failures = 0;
    std::vector<coaccel::error_code> errors;

private:
    // A context that is being lost accepts no requests. How long that lasts depends on the threads that are still in
    // the driver.
    bool attempt(coaccel::detail::request& r)
    {
        if (!d_.context->accepting())
            d_.run_until([this] { return d_.losses > 0; });
        if (d_.losses > 0)
            return false;
        const auto ec = d_.outcome_of(r);
        if (!ec)
            return true;
        ++failures;
        errors.push_back(ec);
        return false;
    }

    template <class Op>
    void attempt_op(const Op& op)
    {
        exec<Op> r(op, coaccel::exec_options{});
        attempt(r);
    }

    coaccel::ref<float> make(std::uint64_t count)
    {
        allocate_request r(count);
        return attempt(r) ? coaccel::ref<float>::from_raw(r.made.ref) : coaccel::ref<float>();
    }

    context_driver& d_;
};

inline std::unique_ptr<cuda_world> world_with(coaccel::completion how)
{
    auto w = std::make_unique<cuda_world>();
    w->context.completion = how;
    w->context.monitor_interval = std::chrono::milliseconds(2);
    w->context.spin_budget = std::chrono::microseconds(50);
    return w;
}

} // namespace test

#endif
