#include "cuda/plan/run_arguments.hpp"
#include "cuda_world.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/memory.hpp>

#include <algorithm>
#include <numeric>

namespace test_cuda_plan_arguments {

// How the arguments of runs reach the device, over the fake driver.
namespace {

using namespace coaccel;
using namespace test;

constexpr std::size_t large = cuda::run_arguments::least_direct_bytes / sizeof(float);
/// Not a multiple of what the copy kernel moves at once.
constexpr std::size_t odd = 1001;

/// Copies a large and a small input to outputs of the same size.
detail::plan_data copying_plan(std::size_t large_count = large)
{
    plan_maker m;
    const auto a = m.floats(slot_kind::input, large_count);
    const auto b = m.floats(slot_kind::input, odd);
    const auto y = m.floats(slot_kind::output, large_count);
    const auto z = m.floats(slot_kind::output, odd);
    m.add(memory::copy<float>{a, y});
    m.add(memory::copy<float>{b, z});
    return m.finish();
}

/// An instance of the plan, and page-locked memory for its large arguments.
struct loaded {
    explicit loaded(const fake_cuda::settings& how = {}, std::size_t large_count = large)
        : world(how), plan(copying_plan(large_count)), driver(world), instance(driver, plan, 1, 1)
    {}

    ~loaded()
    {
        for (void* p : pinned)
            driver.context->pinned()->release(p);
    }

    float* allocate_pinned(std::size_t count)
    {
        void* got = nullptr;
        driver.run_until([&] {
            if (!got)
                got = driver.context->pinned()->try_allocate(count * sizeof(float)).value();
            return got != nullptr;
        });
        pinned.push_back(got);
        return static_cast<float*>(got);
    }

    /// Runs it with the large arguments in this memory, and checks the outputs.
    void check_run(float* a, float* y, float first)
    {
        std::iota(a, a + large_count(), first);
        std::vector<float> b(odd), z(odd, -1);
        std::iota(b.begin(), b.end(), -first);
        std::fill_n(y, large_count(), -1.0f);
        const auto at = [&](std::uint32_t slot, float* host) {
            const auto& s = plan.slots[slot];
            return detail::run_argument{reinterpret_cast<std::byte*>(host), {s.offset, s.bytes()}};
        };
        const detail::run_argument in[] = {at(0, a), at(1, b.data())};
        const detail::run_argument out[] = {at(2, y), at(3, z.data())};
        detail::plan_run_op op;
        op.memory = ref<std::uint8_t>::from_raw(instance.refs.front());
        op.instance = instance.id;
        op.chain = instance.chain;
        op.inputs = in;
        op.outputs = out;
        op.input_count = op.output_count = 2;
        exec<detail::plan_run_op> r(op, exec_options{});
        CHECK_FALSE(driver.outcome_of(r));
        CHECK(std::equal(a, a + large_count(), y));
        CHECK(b == z);
    }

    void check_ordinary_run(float first)
    {
        std::vector<float> a(large_count()), y(large_count());
        check_run(a.data(), y.data(), first);
    }

    std::size_t large_count() const { return plan.slots[0].count; }
    int changes() const { return world.driver.calls("cuGraphExecKernelNodeSetParams"); }
    int copies() const { return world.driver.calls("cuMemcpyHtoDAsync") + world.driver.calls("cuMemcpyDtoHAsync"); }

    cuda_world world;
    detail::plan_data plan;
    context_driver driver;
    test_instance instance;
    std::vector<void*> pinned;
};

TEST_SUITE_BEGIN("plan arguments");

TEST_CASE("a kernel copies the arguments, whatever their size")
{
    for (const std::size_t count : {std::size_t(1), std::size_t(3), odd, large, large + 1, 4 * large + 3}) {
        CAPTURE(count);
        loaded l({}, count);
        REQUIRE_FALSE(l.instance.load());
        CHECK(l.instance.recorded);
        for (const float first : {1.0f, 2.0f})
            l.check_ordinary_run(first);
        CHECK(l.copies() == 0);
        CHECK(l.changes() == 0);
        CHECK_FALSE(l.instance.unload());
    }
}

TEST_CASE("large page-locked arguments are used directly, and the next ordinary run is right again")
{
    loaded l;
    REQUIRE_FALSE(l.instance.load());
    float* const a = l.allocate_pinned(large);
    float* const y = l.allocate_pinned(large);
    l.check_ordinary_run(1);
    CHECK(l.changes() == 0);
    l.check_run(a, y, 2);
    CHECK(l.changes() == 2);
    // With the same memory there is nothing to change.
    l.check_run(a, y, 3);
    CHECK(l.changes() == 2);
    l.check_ordinary_run(4);
    CHECK(l.changes() == 4);
    l.check_ordinary_run(5);
    CHECK(l.changes() == 4);
    CHECK_FALSE(l.instance.unload());
}

TEST_CASE("direct arguments of odd size do not disturb those behind them")
{
    loaded l({}, large + 3);
    REQUIRE_FALSE(l.instance.load());
    l.check_run(l.allocate_pinned(large + 3), l.allocate_pinned(large + 3), 1);
    CHECK(l.changes() == 2);
    CHECK_FALSE(l.instance.unload());
}

TEST_CASE("inputs that share the caller's memory are each copied, also if one of them is direct")
{
    loaded l;
    REQUIRE_FALSE(l.instance.load());
    float* const a = l.allocate_pinned(large);
    for (const float first : {1.0f, 2.0f}) {
        std::iota(a, a + large, first);
        std::vector<float> y(large), z(odd);
        const auto& s = l.plan.slots;
        const auto at = [&](std::size_t slot, float* host) {
            return detail::run_argument{reinterpret_cast<std::byte*>(host), {s[slot].offset, s[slot].bytes()}};
        };
        // The second one is too small to be direct.
        const detail::run_argument in[] = {at(0, a), at(1, a)};
        const detail::run_argument out[] = {at(2, y.data()), at(3, z.data())};
        detail::plan_run_op op;
        op.memory = ref<std::uint8_t>::from_raw(l.instance.refs.front());
        op.instance = op.chain = 1;
        op.inputs = in;
        op.outputs = out;
        op.input_count = op.output_count = 2;
        exec<detail::plan_run_op> r(op, exec_options{});
        CHECK_FALSE(l.driver.outcome_of(r));
        CHECK(std::equal(y.begin(), y.end(), a));
        CHECK(std::equal(z.begin(), z.end(), a));
    }
    CHECK(l.changes() == 1);
    CHECK_FALSE(l.instance.unload());
}

TEST_CASE("one direct argument changes one direction")
{
    loaded l;
    REQUIRE_FALSE(l.instance.load());
    float* const a = l.allocate_pinned(large);
    std::vector<float> y(large);
    l.check_run(a, y.data(), 1);
    CHECK(l.changes() == 1);
    CHECK_FALSE(l.instance.unload());
}

TEST_CASE("page-locked arguments that are small or not aligned are staged")
{
    {
        loaded l({}, large - 1);
        REQUIRE_FALSE(l.instance.load());
        l.check_run(l.allocate_pinned(large), l.allocate_pinned(large), 1);
        CHECK(l.changes() == 0);
        CHECK(l.world.driver.graphs() == 0);
        CHECK_FALSE(l.instance.unload());
    }
    loaded l;
    REQUIRE_FALSE(l.instance.load());
    l.check_run(l.allocate_pinned(large + 1) + 1, l.allocate_pinned(large + 1) + 1, 1);
    CHECK(l.changes() == 0);
    CHECK_FALSE(l.instance.unload());
}

TEST_CASE("a node that cannot be changed fails the run, and the next run changes it")
{
    loaded l;
    REQUIRE_FALSE(l.instance.load());
    float* const a = l.allocate_pinned(large);
    l.world.driver.fail("cuGraphExecKernelNodeSetParams", CUDA_ERROR_OUT_OF_MEMORY);
    std::vector<float> y(large);
    const auto& s = l.plan.slots;
    const detail::run_argument in[] = {{reinterpret_cast<std::byte*>(a), {s[0].offset, s[0].bytes()}}};
    detail::plan_run_op op;
    op.memory = ref<std::uint8_t>::from_raw(l.instance.refs.front());
    op.instance = op.chain = 1;
    op.inputs = in;
    op.input_count = 1;
    {
        exec<detail::plan_run_op> r(op, exec_options{});
        CHECK(l.driver.outcome_of(r) == errc::out_of_memory);
    }
    l.check_run(a, y.data(), 1);
    l.check_ordinary_run(2);
    CHECK_FALSE(l.instance.unload());
}

TEST_CASE("without the kernel, arguments are copied by commands")
{
    const auto check = [](loaded& l) {
        REQUIRE_FALSE(l.instance.load());
        CHECK(l.instance.recorded);
        l.check_ordinary_run(1);
        l.check_run(l.allocate_pinned(large), l.allocate_pinned(large), 2);
        CHECK(l.copies() > 0);
        CHECK(l.changes() == 0);
        CHECK(l.world.driver.calls("cuLaunchKernel") == 0);
        CHECK_FALSE(l.instance.unload());
    };
    SUBCASE("because the GPU uses other addresses than the host")
    {
        loaded l({.attributes = {{CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0}}});
        check(l);
        CHECK(l.world.driver.calls("cuModuleLoadData") == 0);
    }
    SUBCASE("because the driver cannot compile it")
    {
        loaded l;
        l.world.driver.fail("cuModuleLoadData", CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
        check(l);
    }
    SUBCASE("because the driver does not find it")
    {
        loaded l;
        l.world.driver.fail("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
        check(l);
    }
}

TEST_CASE("a context that dies while the kernel is loaded is lost")
{
    loaded l;
    l.world.driver.fail("cuModuleLoadData", CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(l.instance.load() == errc::context_lost);
}

TEST_CASE("all instances of a context use one kernel")
{
    loaded l;
    test_instance second(l.driver, l.plan, 2, 2);
    REQUIRE_FALSE(l.instance.load());
    REQUIRE_FALSE(second.load());
    CHECK(l.world.driver.calls("cuModuleLoadData") == 1);
    CHECK_FALSE(l.instance.unload());
    CHECK_FALSE(second.unload());
}

TEST_SUITE_END();

} // namespace

} // namespace test_cuda_plan_arguments
