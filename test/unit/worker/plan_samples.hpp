#ifndef COACCEL_TEST_UNIT_WORKER_PLAN_SAMPLES_HPP
#define COACCEL_TEST_UNIT_WORKER_PLAN_SAMPLES_HPP

#include "support/plan_records.hpp"

#include <coaccel/ops/jit/launch.hpp>

#include <memory>
#include <vector>

namespace test {

/// No kernels.
class no_kernels final : public coaccel::worker::kernel_source {
public:
    std::shared_ptr<const coaccel::jit::image> find(std::uint64_t) const noexcept override { return nullptr; }
};

/// Describes the ops that the plans below use.
inline const coaccel::op_info* describe_sample_op(std::uint64_t id)
{
    using namespace coaccel;
    for (const op_info* info :
         {&info_of<memory::copy<float>>(), &info_of<memory::fill<float>>(), &info_of<blas::axpy<float>>(),
          &info_of<blas::gemv<float>>(), &info_of<stored_reply<blas::dot<float>>>(), &info_of<blas::dot<float>>(),
          &info_of<blas::matmul<float>>(), &info_of<blas::gemm_batched<float>>(),
          &info_of<coaccel::detail::plan_run_op>()})
        if (info->id == id)
            return info;
    return nullptr;
}

inline coaccel::worker::plan_environment sample_environment(const coaccel::worker::kernel_source& kernels)
{
    return {.describe = describe_sample_op, .kernels = kernels, .backend = "sample"};
}

/// y = c + 2 x by way of scratch; sum += y; length = y · y. Every kind of slot has at least one slot.
inline std::shared_ptr<const coaccel::detail::plan_data> sample_plan(std::uint64_t n = 4, const char* name = "sample")
{
    using namespace coaccel;
    plan_builder b(name);
    const auto x = b.input<float>(n);
    const auto y = b.output<float>(n);
    const auto c = b.constant<float>(std::vector<float>(n, 1));
    const auto t = b.scratch<float>(n);
    const auto u = b.scratch<float>(n);
    const auto sum = b.state<float>(n);
    const auto first = b.state<float>(std::vector<float>(n, 2));
    const auto length = b.output<float>(1);
    b.add(memory::copy<float>{c, t});
    b.add(blas::axpy<float>{.x = x, .y = t, .n = n, .alpha = 2});
    b.add(memory::copy<float>{t, u});
    b.add(memory::copy<float>{u, y});
    b.add(blas::axpy<float>{.x = y, .y = sum, .n = n, .alpha = 1});
    b.add(blas::axpy<float>{.x = y, .y = first, .n = n, .alpha = 1});
    b.add(store_reply(blas::dot<float>{.x = y, .y = y, .n = n}, out<float>(length)));
    return detail::plan_access::data(b.finish().value());
}

/// A product with a bias and without C, and a list of two products.
inline std::shared_ptr<const coaccel::detail::plan_data> sample_optional()
{
    using namespace coaccel;
    plan_builder b("optional");
    const auto x = b.input<float>(4);
    const auto w = b.constant<float>(std::vector<float>(4, 1));
    const auto t = b.scratch<float>(4);
    const auto y = b.output<float>(8);
    b.add(blas::matmul<float>{.a = x, .b = w, .d = t, .bias = w.first(2), .m = 2, .n = 2, .k = 2});
    blas::gemm_batched<float> list{.m = 2, .n = 2, .k = 2};
    b.add(list.add(t, w, y.first(4)).add(x, w, y.subspan(4, 4)));
    return detail::plan_access::data(b.finish().value());
}

/// A product whose alpha is a parameter, and a launch of a kernel with a float that is one and an integer that is
/// another.
inline std::shared_ptr<const coaccel::detail::plan_data> sample_parameters(const coaccel::jit::kernel& k)
{
    using namespace coaccel;
    using gemv = blas::gemv<float>;
    plan_builder b("parameters");
    const auto x = b.input<float>(2);
    const auto a = b.constant<float>(std::vector<float>(4, 1));
    const auto y = b.output<float>(2);
    const auto alpha = b.parameter<float>("alpha");
    const auto count = b.parameter<std::int64_t>("count");
    b.add(memory::copy<float>{x, y});
    b.add(gemv{.a = a, .x = x, .y = y, .m = 2, .n = 2, .beta = 3}, bind(&gemv::alpha, alpha));
    b.add(jit::launch(k, {}, in<float>(x), out<float>(y), alpha, count));
    return detail::plan_access::data(b.finish().value());
}

} // namespace test

#endif
