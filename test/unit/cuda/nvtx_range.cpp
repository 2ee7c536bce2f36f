#include "cuda_world.hpp"
#include "support/plan_context.hpp"

#include <coaccel/ops/memory.hpp>

#if __has_include(<nvtx3/nvToolsExt.h>)

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// This file is the profiler: the code of NVTX in the library finds it by this symbol.
extern "C" {
extern int (*InitializeInjectionNvtx2_fnptr)(const void* (*export_table)(std::uint32_t));
}
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

namespace test_cuda_nvtx_range {

namespace {

using namespace coaccel;

/// What the profiler has seen.
struct ranges {
    std::mutex mutex;
    std::vector<std::string> names;
    int open = 0;
};

ranges seen;

int on_push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes)
{
    const std::scoped_lock lock(seen.mutex);
    seen.names.emplace_back(attributes->message.ascii);
    return seen.open++;
}

int on_pop(nvtxDomainHandle_t)
{
    const std::scoped_lock lock(seen.mutex);
    return --seen.open;
}

int attach(NvtxGetExportTableFunc_t export_table)
{
    const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainRangePop)
        return 0;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&on_push);
    *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&on_pop);
    return 1;
}

std::vector<std::string> take_names()
{
    const std::scoped_lock lock(seen.mutex);
    CHECK(seen.open == 0);
    return std::exchange(seen.names, {});
}

/// Runs an op that is enqueued, and a plan.
void work(const cuda_options& options)
{
    test::cuda_world world;
    world.options.nvtx = options.nvtx;
    test::plan_maker m;
    const auto x = m.floats(slot_kind::input, 4);
    const auto y = m.floats(slot_kind::output, 4);
    m.add(memory::copy<float>{x, y});
    auto plan = m.finish();
    plan.name = "copying";
    test::context_driver d(world);
    test::test_instance i(d, plan, 1, 1);
    REQUIRE_FALSE(i.load());
    (void)take_names();
    test::plan_run r(i, {{1, 2, 3, 4}});
    CHECK_FALSE(d.outcome_of(*r.request));
    const auto target = d.allocate(4, dtype::f32);
    test::exec<memory::fill<float>> fill(memory::fill<float>{ref<float>::from_raw(target), 1.0f}, exec_options{});
    CHECK_FALSE(d.outcome_of(fill));
}

TEST_SUITE_BEGIN("nvtx_range");

TEST_CASE("with the option, a profiler sees a range for each launch, named like the op and the plan")
{
    work({.nvtx = true});
    CHECK(take_names() == std::vector<std::string>{"plan.run", "copying", "memory.fill<f32>"});
}

TEST_CASE("without the option it sees nothing")
{
    work({});
    CHECK(take_names().empty());
}

TEST_SUITE_END();

} // namespace
} // namespace test_cuda_nvtx_range

extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = &test_cuda_nvtx_range::attach;
}

#endif
