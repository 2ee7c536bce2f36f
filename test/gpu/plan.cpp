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

TEST_SUITE_END();
