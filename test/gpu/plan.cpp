#include "cuda/factory.hpp"
#include "support/plan_parameter_cases.hpp"

// The plan ops on a GPU.
namespace {

class gpu_world final : public test::context_world {
public:
    coaccel::detail::context_factory factory() override { return coaccel::cuda::make_factory({}, 0); }
    void poison() override {}
    bool can_poison() const noexcept override { return false; }
};

} // namespace

std::vector<test::context_setting> test::plan_contexts()
{
    std::vector<context_setting> all;
    for (const auto& [name, options] : context_variants())
        if (options.completion == completion::adaptive)
            all.push_back({name, true, [options = options] {
                               auto made = std::make_unique<gpu_world>();
                               made->context = options;
                               return made;
                           }});
    return all;
}

TEST_SUITE_BEGIN("plan ops");

TEST_CASE("a chain of gemv is one graph, whose runs give what single ops give")
{
    for_each_plan_context([](context_world& w) {
        constexpr std::uint64_t n = 256;
        context_driver d(w);
        plan_maker m;
        const auto x = m.floats(slot_kind::input, n);
        const auto a = m.floats(slot_kind::constant, n * n);
        const auto t = m.floats(slot_kind::scratch, n);
        const auto y = m.floats(slot_kind::output, n);
        m.add(blas::gemv<float>{.a = a, .x = x, .y = t, .m = n, .n = n});
        m.add(blas::gemv<float>{.a = a, .x = t, .y = y, .m = n, .n = n});
        const auto data = m.finish();
        std::vector<float> matrix(n * n);
        // Twice the identity, with its rows in reverse order.
        for (std::uint64_t i = 0; i < n; ++i)
            matrix[i * n + (n - 1 - i)] = 2;
        std::vector<std::unique_ptr<test_instance>> all;
        for (std::uint64_t id = 1; id <= 8; ++id) {
            all.push_back(std::make_unique<test_instance>(d, data, id, id / 2 + 1));
            all.back()->set(all.back()->first_constant(), matrix);
            REQUIRE_FALSE(all.back()->load());
            CHECK(all.back()->recorded);
        }
        for (int round = 0; round < 50; ++round) {
            std::vector<std::unique_ptr<plan_run>> runs;
            for (std::size_t k = 0; k < all.size(); ++k) {
                runs.push_back(std::make_unique<plan_run>(
                    *all[k], test::float_arguments{std::vector<float>(n, float(round) + float(k))},
                    exec_options{.lane = static_cast<int>(k % 4)}));
                d.submit(*runs.back()->request);
            }
            d.run_until([&] { return d.ended.size() == runs.size(); });
            for (std::size_t k = 0; k < runs.size(); ++k) {
                CHECK_FALSE(d.outcome(*runs[k]->request));
                CHECK(runs[k]->outputs[0] == std::vector<float>(n, 4 * (float(round) + float(k))));
            }
            d.ended.clear();
        }
        for (auto& i : all)
            CHECK_FALSE(i->unload());
    });
}

TEST_CASE("ops on batches are part of the graph")
{
    for_each_plan_context([](context_world& w) {
        constexpr std::uint64_t n = 4, batch = 3, all = n * n * batch;
        context_driver d(w);
        plan_maker m;
        const auto given = m.floats(slot_kind::input, all);
        const auto inverse = m.floats(slot_kind::output, all);
        const auto solution = m.floats(slot_kind::output, all);
        const auto squares = m.floats(slot_kind::output, all);
        const auto a = m.floats(slot_kind::scratch, all);
        const auto tau = m.floats(slot_kind::scratch, n * batch);
        const auto pivots = m.slot<std::int32_t>(slot_kind::scratch, n * batch);
        const auto info = m.slot<std::int32_t>(slot_kind::scratch, batch);
        constexpr std::uint64_t stride = n * n;
        m.add(memory::copy<float>{given, a});
        m.add(blas::getrf_batched<float>{
            .a = a, .pivots = pivots, .info = info, .n = n, .batch = batch, .stride_a = stride});
        m.add(blas::getri_batched<float>{.a = a,
                                         .pivots = pivots,
                                         .c = inverse,
                                         .info = info,
                                         .n = n,
                                         .batch = batch,
                                         .stride_a = stride,
                                         .stride_c = stride});
        m.add(memory::copy<float>{given, solution});
        m.add(blas::getrs_batched<float>{.a = a,
                                         .pivots = pivots,
                                         .b = solution,
                                         .n = n,
                                         .nrhs = n,
                                         .batch = batch,
                                         .stride_a = stride,
                                         .stride_b = stride});
        m.add(memory::copy<float>{given, a});
        m.add(memory::copy<float>{given, squares});
        m.add(blas::gels_batched<float>{.a = a,
                                        .c = squares,
                                        .info = info,
                                        .m = n,
                                        .n = n,
                                        .nrhs = n,
                                        .batch = batch,
                                        .stride_a = stride,
                                        .stride_c = stride});
        m.add(blas::geqrf_batched<float>{.a = a, .tau = tau, .m = n, .n = n, .batch = batch, .stride_a = stride});
        m.add(blas::trsm_batched<float>{.a = squares,
                                        .b = solution,
                                        .m = n,
                                        .n = n,
                                        .batch = batch,
                                        .stride_a = stride,
                                        .stride_b = stride,
                                        .diag = blas::diag::unit});
        const auto data = m.finish();
        test_instance i(d, data, 1, 1);
        REQUIRE_FALSE(i.load());
        CHECK(i.recorded);
        for (const float by : {2.0f, 4.0f, 8.0f}) {
            std::vector<float> diagonal(all), one(all), reciprocal(all);
            for (std::uint64_t k = 0; k < batch; ++k)
                for (std::uint64_t j = 0; j < n; ++j) {
                    diagonal[k * stride + j * (n + 1)] = by;
                    reciprocal[k * stride + j * (n + 1)] = 1 / by;
                    one[k * stride + j * (n + 1)] = 1;
                }
            plan_run r(i, {diagonal});
            CHECK_FALSE(d.outcome_of(*r.request));
            CHECK(r.outputs[0] == reciprocal);
            CHECK(r.outputs[1] == one);
            CHECK(r.outputs[2] == one);
        }
        CHECK_FALSE(i.unload());
    });
}

TEST_SUITE_END();
