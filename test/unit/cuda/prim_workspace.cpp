#include "cuda/prim/prim_workspace.hpp"

#include "prim_fixture.hpp"

#include <algorithm>
#include <numeric>

namespace test_cuda_prim_workspace {

// Ops of several launches, and the memory between them, over the fake driver.
namespace {

using namespace test_cuda_prim;

struct workspace_fixture : prim_fixture {
    workspace_fixture()
    {
        const auto together = block_threads::together;
        add("reduce<coaccel_prim::reduce_sum,coaccel_prim::f32>", code::reduce<code::reduce_sum, float>, together);
        add("arg_reduce<coaccel_prim::arg_max,coaccel_prim::i16>", code::arg_reduce<code::arg_max, code::i16>,
            together);
        add("segmented_reduce<coaccel_prim::reduce_max,coaccel_prim::f32>",
            code::segmented_reduce<code::reduce_max, float>, together);
        add("scan<coaccel_prim::reduce_sum,coaccel_prim::u16>", code::scan<code::reduce_sum, code::u16>, together);
        add("gather<coaccel_prim::c64>", code::gather<code::c64>);
        add("scatter<coaccel_prim::u8>", code::scatter<code::u8>);
        add("concat<coaccel_prim::f16>", code::concat<code::f16>);
        add("pad<coaccel_prim::i32>", code::pad<code::i32>);
        add("transpose<coaccel_prim::u16>", code::transpose<code::u16>, together);
        add("transpose<coaccel_prim::u8>", code::transpose<code::u8>);
        add("top_k<coaccel_prim::f32>", code::top_k<float>, together);
        add("sort<coaccel_prim::u16>", code::sort<code::u16>, together);
        add("sort_pairs<coaccel_prim::u8>", code::sort_pairs<code::u8>, together);
        add("select<coaccel_prim::u16>", code::select<code::u16>, together);
        add("unique<coaccel_prim::f16>", code::unique<code::f16>, together);
        add("run_length<coaccel_prim::u8>", code::run_length<code::u8>, together);
        add("histogram<coaccel_prim::u8>", code::histogram<code::u8>, together);
    }

    cuda::prim_workspace& workspace()
    {
        auto& s = lane->state();
        return s.resources.get<cuda::prim_workspace>(*made, s.native);
    }
};

constexpr std::uint64_t long_row = 3 * 8192;

std::vector<float> ones(std::uint64_t n)
{
    return std::vector<float>(n, 1.0f);
}

} // namespace

TEST_SUITE_BEGIN("cuda prim workspace");

TEST_CASE_FIXTURE(workspace_fixture, "a long row is reduced by two launches")
{
    constexpr std::uint64_t n = room / sizeof(float);
    float* x = upload(ones(n));
    float* y = upload(test::poisoned<float>(2));
    REQUIRE_FALSE(run(prim::reduce<float>{.x = elements<float>(100, 0), .y = elements<float>(1, 1)}, {x, y}));
    CHECK(y[0] == 100);
    CHECK(fake.calls("cuLaunchKernel") == 1);
    REQUIRE_FALSE(run(prim::reduce<float>{.x = elements<float>(n, 0), .y = elements<float>(1, 1)}, {x, y}));
    CHECK(y[0] == n);
    CHECK(fake.calls("cuLaunchKernel") == 3);
    CHECK(nvrtc.compilations().size() == 1);
}

TEST_CASE_FIXTURE(workspace_fixture, "each op passes its operands and fields to its kernel")
{
    auto* a = upload(std::vector<std::int16_t>{3, 9, 9, 1, 2, 8});
    auto* at = upload(test::poisoned<std::uint64_t>(2));
    REQUIRE_FALSE(run(prim::arg_reduce<std::int16_t>{.x = elements<std::int16_t>(6, 0),
                                                     .y = elements<std::uint64_t>(2, 1),
                                                     .shape = prim::layout<2>::matrix(2, 3).column(1)},
                      {a, at}));
    CHECK(at[0] == 1);
    CHECK(at[1] == 2);

    auto* x = upload(std::vector<float>{1, 5, 2, 7, 3});
    auto* offsets = upload(std::vector<std::uint64_t>{0, 2, 2, 9});
    auto* y = upload(test::poisoned<float>(3));
    REQUIRE_FALSE(run(prim::segmented_reduce<float>{.x = elements<float>(5, 0),
                                                    .offsets = elements<std::uint64_t>(4, 1),
                                                    .y = elements<float>(3, 2),
                                                    .rows = 5,
                                                    .segments = 3,
                                                    .what = prim::reduction::max},
                      {x, offsets, y}));
    CHECK(y[0] == 5);
    CHECK(y[1] == -HUGE_VALF);
    CHECK(y[2] == 7);

    auto* numbers = upload(std::vector<std::uint16_t>(long_row, 3));
    auto* sums = upload(test::poisoned<std::uint16_t>(long_row));
    REQUIRE_FALSE(run(prim::scan<std::uint16_t>{.x = elements<std::uint16_t>(long_row, 0),
                                                .y = elements<std::uint16_t>(long_row, 1),
                                                .range = prim::scan_range::exclusive,
                                                .n = long_row},
                      {numbers, sums}));
    std::size_t wrong = 0;
    for (std::uint64_t i = 0; i < long_row; ++i)
        wrong += sums[i] != static_cast<std::uint16_t>(3 * i);
    CHECK(wrong == 0);

    using complex = std::complex<float>;
    auto* table = upload(std::vector<complex>{{1, 2}, {3, 4}, {5, 6}});
    auto* indices = upload(std::vector<std::uint64_t>{2, 7, 0, 2});
    auto* found = upload(test::poisoned<complex>(4));
    REQUIRE_FALSE(run(prim::gather<complex>{.x = elements<complex>(3, 0),
                                            .indices = elements<std::uint64_t>(4, 1),
                                            .y = elements<complex>(4, 2),
                                            .n = 3,
                                            .m = 4},
                      {table, indices, found}));
    CHECK(std::vector<complex>(found, found + 4) == std::vector<complex>{{5, 6}, {0, 0}, {1, 2}, {5, 6}});

    auto* bytes = upload(std::vector<std::uint8_t>{10, 11, 12, 13});
    auto* placed = upload(std::vector<std::uint8_t>{1, 2, 3});
    REQUIRE_FALSE(run(prim::scatter<std::uint8_t>{.x = elements<std::uint8_t>(4, 0),
                                                  .indices = elements<std::uint64_t>(4, 1),
                                                  .y = elements<std::uint8_t>(3, 2),
                                                  .n = 3,
                                                  .m = 4},
                      {bytes, indices, placed}));
    CHECK(std::vector<int>(placed, placed + 3) == std::vector<int>{12, 2, 13});

    auto* left = upload(std::vector<half>{half(1.0f), half(2.0f)});
    auto* right = upload(std::vector<half>{half(3.0f), half(4.0f), half(5.0f), half(6.0f)});
    auto* both = upload(test::poisoned<half>(6));
    REQUIRE_FALSE(run(prim::concat<half>{.a = elements<half>(2, 0),
                                         .b = elements<half>(4, 1),
                                         .y = elements<half>(6, 2),
                                         .n = 1,
                                         .m = 2,
                                         .outer = 2},
                      {left, right, both}));
    CHECK(std::vector<float>(both, both + 6) == std::vector<float>{1, 3, 4, 2, 5, 6});

    auto* inner = upload(std::vector<std::int32_t>{1, 2});
    auto* padded = upload(test::poisoned<std::int32_t>(8));
    REQUIRE_FALSE(run(prim::pad<std::int32_t>{.x = elements<std::int32_t>(2, 0),
                                              .y = elements<std::int32_t>(8, 1),
                                              .rank = 2,
                                              .dims = {1, 2},
                                              .before = {1, 0},
                                              .after = {0, 2},
                                              .value = -7},
                      {inner, padded}));
    CHECK(std::vector<int>(padded, padded + 8) == std::vector<int>{-7, -7, -7, -7, 1, 2, -7, -7});

    auto* matrix = upload(std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6});
    auto* turned = upload(test::poisoned<std::uint16_t>(6));
    REQUIRE_FALSE(run(prim::transpose<std::uint16_t>{.x = elements<std::uint16_t>(6, 0),
                                                     .y = elements<std::uint16_t>(6, 1),
                                                     .dims = {2, 3}},
                      {matrix, turned}));
    CHECK(std::vector<int>(turned, turned + 6) == std::vector<int>{1, 4, 2, 5, 3, 6});
    auto* cube = upload(std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7});
    auto* moved = upload(test::poisoned<std::uint8_t>(8));
    REQUIRE_FALSE(run(prim::transpose<std::uint8_t>{.x = elements<std::uint8_t>(8, 0),
                                                    .y = elements<std::uint8_t>(8, 1),
                                                    .rank = 3,
                                                    .dims = {2, 2, 2},
                                                    .order = {1, 0, 2}},
                      {cube, moved}));
    CHECK(std::vector<int>(moved, moved + 8) == std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7});
}

TEST_CASE_FIXTURE(workspace_fixture, "ops that order elements, in one and in several slices")
{
    std::vector<float> scores(room / sizeof(float));
    std::iota(scores.begin(), scores.end(), 0.0f);
    scores[5000] = 1e9f;
    float* x = upload(scores);
    float* values = upload(test::poisoned<float>(2));
    auto* indices = upload(test::poisoned<std::uint64_t>(2));
    REQUIRE_FALSE(run(prim::top_k<float>{.x = elements<float>(scores.size(), 0),
                                         .values = elements<float>(2, 1),
                                         .indices = elements<std::uint64_t>(2, 2),
                                         .n = scores.size(),
                                         .k = 2},
                      {x, values, indices}));
    CHECK(values[0] == 1e9f);
    CHECK(indices[0] == 5000);
    CHECK(indices[1] == scores.size() - 1);
    CHECK(fake.calls("cuLaunchKernel") == 2);

    constexpr std::uint64_t n = 9000;
    std::vector<std::uint16_t> numbers(n);
    for (std::uint64_t i = 0; i < n; ++i)
        numbers[i] = static_cast<std::uint16_t>(i * 40503);
    auto* from = upload(numbers);
    auto* to = upload(test::poisoned<std::uint16_t>(n));
    REQUIRE_FALSE(run(prim::sort<std::uint16_t>{.x = elements<std::uint16_t>(n, 0),
                                                .y = elements<std::uint16_t>(n, 1),
                                                .n = n,
                                                .order = prim::sort_order::descending},
                      {from, to}));
    std::sort(numbers.rbegin(), numbers.rend());
    CHECK(std::vector<std::uint16_t>(to, to + n) == numbers);

    auto* keys = upload(std::vector<std::uint8_t>{3, 1, 3, 0});
    auto* payload = upload(std::vector<std::uint64_t>{10, 11, 12, 13});
    auto* sorted_keys = upload(test::poisoned<std::uint8_t>(4));
    auto* sorted_payload = upload(test::poisoned<std::uint64_t>(4));
    REQUIRE_FALSE(run(prim::sort_pairs<std::uint8_t>{.keys = elements<std::uint8_t>(4, 0),
                                                     .values = elements<std::uint64_t>(4, 1),
                                                     .sorted_keys = elements<std::uint8_t>(4, 2),
                                                     .sorted_values = elements<std::uint64_t>(4, 3),
                                                     .n = 4},
                      {keys, payload, sorted_keys, sorted_payload}));
    CHECK(std::vector<int>(sorted_keys, sorted_keys + 4) == std::vector<int>{0, 1, 3, 3});
    CHECK(std::vector<int>(sorted_payload, sorted_payload + 4) == std::vector<int>{13, 11, 10, 12});
}

TEST_CASE_FIXTURE(workspace_fixture, "ops that keep some elements, in one and in several slices")
{
    constexpr std::uint64_t n = 20000;
    std::vector<std::uint16_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), std::uint16_t(0));
    std::vector<std::uint8_t> every_third(n);
    for (std::uint64_t i = 0; i < n; i += 3)
        every_third[i] = 1;
    auto* x = upload(numbers);
    auto* mask = upload(every_third);
    auto* y = upload(test::poisoned<std::uint16_t>(7001));
    auto* count = upload(test::poisoned<std::uint64_t>(1));
    REQUIRE_FALSE(run(prim::select<std::uint16_t>{.x = elements<std::uint16_t>(n, 0),
                                                  .mask = elements<std::uint8_t>(n, 1),
                                                  .y = elements<std::uint16_t>(7000, 2),
                                                  .count = elements<std::uint64_t>(1, 3),
                                                  .n = n},
                      {x, mask, y, count}));
    CHECK(*count == n / 3 + 1);
    std::size_t wrong = 0;
    for (std::uint64_t i = 0; i < 7000; ++i)
        wrong += y[i] != (i <= n / 3 ? 3 * i : 0);
    CHECK(wrong == 0);
    CHECK(y[7000] == test::poisoned<std::uint16_t>(1)[0]);
    CHECK(fake.calls("cuLaunchKernel") == 4);

    auto* repeated = upload(std::vector<half>{half(1.0f), half(1.0f), half(2.0f), half(1.0f)});
    auto* different = upload(test::poisoned<half>(4));
    REQUIRE_FALSE(run(
        prim::unique<half>{
            .x = elements<half>(4, 0), .y = elements<half>(4, 1), .count = elements<std::uint64_t>(1, 2), .n = 4},
        {repeated, different, count}));
    CHECK(*count == 3);
    CHECK(std::vector<float>(different, different + 4) == std::vector<float>{1, 2, 1, 0});
    CHECK(fake.calls("cuLaunchKernel") == 6);

    auto* values = upload(test::poisoned<std::uint8_t>(3));
    auto* lengths = upload(test::poisoned<std::uint64_t>(3));
    REQUIRE_FALSE(run(prim::run_length<std::uint8_t>{.x = elements<std::uint8_t>(6, 0),
                                                     .values = elements<std::uint8_t>(3, 1),
                                                     .lengths = elements<std::uint64_t>(3, 2),
                                                     .count = elements<std::uint64_t>(1, 3),
                                                     .n = 6},
                      {upload(std::vector<std::uint8_t>{5, 5, 5, 0, 9, 9}), values, lengths, count}));
    CHECK(*count == 3);
    CHECK(std::vector<int>(values, values + 3) == std::vector<int>{5, 0, 9});
    CHECK(std::vector<int>(lengths, lengths + 3) == std::vector<int>{3, 1, 2});

    auto* counts = upload(test::poisoned<std::uint64_t>(4));
    REQUIRE_FALSE(run(prim::histogram<std::uint8_t>{.x = elements<std::uint8_t>(6, 0),
                                                    .counts = elements<std::uint64_t>(4, 1),
                                                    .n = 6,
                                                    .bins = 4,
                                                    .low = 100,
                                                    .high = 256},
                      {upload(std::vector<std::uint8_t>{99, 100, 138, 139, 255, 200}), counts}));
    CHECK(std::vector<int>(counts, counts + 4) == std::vector<int>{2, 1, 1, 1});
}

TEST_CASE_FIXTURE(workspace_fixture, "memory that a graph contains stays when an op needs more")
{
    const auto& api = fake.api();
    const CUstream s = lane->state().native;
    float* x = upload(ones(long_row / 2));
    float* y = upload(test::poisoned<float>(1));
    const prim::reduce<float> op{.x = elements<float>(room / sizeof(float), 0), .y = elements<float>(1, 1)};
    void* addresses[] = {x, y};
    bound_op bound{.info = &info_of<prim::reduce<float>>(), .op = &op, .operands = addresses};
    REQUIRE_FALSE(prepare(bound));
    void* const captured = workspace().memory();
    REQUIRE(captured);
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    REQUIRE(api.cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
    REQUIRE_FALSE(made->enqueue(*lane, bound));
    REQUIRE(api.cuStreamEndCapture(s, &graph) == CUDA_SUCCESS);
    REQUIRE(api.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    const auto memory_in_use = [&] { return made->memory_use().used; };
    const auto before = memory_in_use();
    // A larger one, then the graph with the first one.
    const auto grow = [&](std::size_t bytes) {
        for (;;) {
            const int rung = told.count();
            const auto ready = workspace().prepare(bytes);
            REQUIRE(ready);
            if (ready.value() == readiness::ready)
                return;
            told.wait_for(rung + 1);
        }
    };
    grow(1 << 16);
    CHECK(workspace().memory() != captured);
    CHECK(memory_in_use() >= before + (1 << 16));
    for (const float v : {1.0f, 2.0f}) {
        std::fill_n(x, room / sizeof(float), v);
        REQUIRE(api.cuGraphLaunch(exec, s) == CUDA_SUCCESS);
        synchronize();
        CHECK(*y == v * (room / sizeof(float)));
    }
    // Much memory is returned after an op that is not part of a graph.
    const auto kept = memory_in_use();
    grow(cuda::prim_workspace::most_kept + 1);
    CHECK_FALSE(workspace().launched());
    CHECK(workspace().memory() == nullptr);
    CHECK(memory_in_use() <= kept);
    CHECK(api.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
    CHECK_FALSE(made->finish(bound));
}

TEST_CASE_FIXTURE(workspace_fixture, "without memory for it, an op fails and the next one tries again")
{
    constexpr std::uint64_t n = room / sizeof(float);
    float* x = upload(ones(n));
    float* y = upload(test::poisoned<float>(1));
    const prim::reduce<float> op{.x = elements<float>(n, 0), .y = elements<float>(1, 1)};
    // The first attempt may be followed by another one on the thread pool.
    fake.fail_from("cuMemAllocFromPoolAsync", CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(run(op, {x, y}) == errc::out_of_memory);
    fake.forgive();
    CHECK_FALSE(run(op, {x, y}));
    CHECK(*y == n);
}

TEST_SUITE_END();

} // namespace test_cuda_prim_workspace
