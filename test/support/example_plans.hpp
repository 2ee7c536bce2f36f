#ifndef COACCEL_TEST_SUPPORT_EXAMPLE_PLANS_HPP
#define COACCEL_TEST_SUPPORT_EXAMPLE_PLANS_HPP

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_set_builder.hpp>

#include <cstddef>
#include <vector>

// Plans for tests of any device.
namespace test {

/// The default number of elements.
constexpr std::size_t plan_elements = 8;

/// y = 2 w + x
inline coaccel::plan_description axpy_plan(std::size_t count = plan_elements)
{
    coaccel::plan_builder b("axpy");
    const auto x = b.input<float>(count);
    const auto w = b.constant<float>(std::vector<float>(count, 3));
    const auto y = b.output<float>(count);
    b.add(coaccel::memory::copy<float>{x, y});
    b.add(coaccel::blas::axpy<float>{.x = w, .y = y, .n = count, .alpha = 2});
    return b.finish().value();
}

/// Adds its input to a state and returns the state.
inline coaccel::plan_description counting_plan()
{
    coaccel::plan_builder b("counting");
    const auto x = b.input<float>(1);
    const auto s = b.state<float>(std::vector<float>{10});
    const auto y = b.output<float>(1);
    b.add(coaccel::blas::axpy<float>{.x = x, .y = s, .n = 1, .alpha = 1});
    b.add(coaccel::memory::copy<float>{s, y});
    return b.finish().value();
}

/// Three plans over one state, which begins with 10: "add" adds its input, "twice" doubles it and adds its input,
/// "read" changes nothing. All of them return the state. A constant with `factors` elements is common to "add" and
/// "read".
inline coaccel::plan_set_description counting_set(std::size_t factors = 1)
{
    coaccel::plan_set_builder set("count");
    const auto total = set.state<float>(std::vector<float>{10}, "total");
    const auto factor = set.constant<float>(std::vector<float>(factors, 1), "factor");
    auto& add = set.plan("add");
    auto& twice = set.plan("twice");
    for (auto* b : {&add, &twice}) {
        const auto x = b->input<float>(1);
        const auto y = b->output<float>(1);
        if (b == &twice)
            b->add(coaccel::blas::scal<float>{.x = total, .n = 1, .alpha = 2});
        b->add(coaccel::blas::axpy<float>{.x = x, .y = total, .n = 1, .alpha = 1});
        b->add(coaccel::memory::copy<float>{total, y});
    }
    auto& read = set.plan("read");
    const auto y = read.output<float>(1);
    read.add(coaccel::memory::copy<float>{total, y});
    read.add(coaccel::blas::gemv<float>{.a = factor.subspan(0, 1), .x = total, .y = y, .m = 1, .n = 1});
    add.add(coaccel::memory::copy<float>{factor.subspan(0, 1), add.scratch<float>(1)});
    return set.finish().value();
}

inline std::vector<float> expected(const std::vector<float>& x)
{
    auto y = x;
    for (float& v : y)
        v += 6;
    return y;
}

} // namespace test

#endif
