#include "cuda/factory.hpp"
#include "support/batches.hpp"
#include "support/plan_parameter_cases.hpp"

#include <algorithm>

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

namespace {

constexpr std::uint64_t batch_count = 3;

/// Packed matrices, of which the largest elements are on the other diagonal, so that a factorization exchanges rows.
std::vector<float> exchanged_matrices(std::uint64_t n, test::engine& random)
{
    std::vector<float> made(n * n * batch_count);
    for (auto& x : made)
        x = test::random_element<float>(random);
    for (std::uint64_t k = 0; k < batch_count; ++k)
        for (std::uint64_t j = 0; j < n; ++j)
            made[k * n * n + j * n + n - 1 - j] += static_cast<float>(n + 1);
    return made;
}

test::reference<float> matrix_of(const std::vector<float>& packed, std::uint64_t n, std::uint64_t k)
{
    test::reference<float> made(n, n);
    std::copy_n(packed.begin() + static_cast<std::ptrdiff_t>(k * n * n), n * n, made.data.begin());
    return made;
}

/// Whether a * b is `wanted`, up to rounding.
bool is_product(const test::reference<float>& a, const test::reference<float>& b, const test::reference<float>& wanted)
{
    return (a * b - wanted).norm() <= test::tolerance<float>(2 * a.rows) * (a.norm() * b.norm() + wanted.norm());
}

detail::plan_data batches_plan(std::uint64_t n)
{
    constexpr auto batch = batch_count;
    const std::uint64_t stride = n * n, all = stride * batch;
    plan_maker m;
    const auto given = m.floats(slot_kind::input, all);
    const auto sides = m.floats(slot_kind::input, all);
    const auto inverse = m.floats(slot_kind::output, all);
    const auto solution = m.floats(slot_kind::output, all);
    const auto squares = m.floats(slot_kind::output, all);
    const auto qr = m.floats(slot_kind::output, all);
    const auto tau = m.floats(slot_kind::output, n * batch);
    const auto triangular = m.floats(slot_kind::output, all);
    const auto a = m.floats(slot_kind::scratch, all);
    const auto pivots = m.slot<std::int32_t>(slot_kind::scratch, n * batch);
    const auto info = m.slot<std::int32_t>(slot_kind::scratch, batch);
    m.add(memory::copy<float>{given, a});
    m.add(
        blas::getrf_batched<float>{.a = a, .pivots = pivots, .info = info, .n = n, .batch = batch, .stride_a = stride});
    m.add(blas::getri_batched<float>{.a = a,
                                     .pivots = pivots,
                                     .c = inverse,
                                     .info = info,
                                     .n = n,
                                     .batch = batch,
                                     .stride_a = stride,
                                     .stride_c = stride});
    m.add(memory::copy<float>{sides, solution});
    m.add(blas::getrs_batched<float>{.a = a,
                                     .pivots = pivots,
                                     .b = solution,
                                     .n = n,
                                     .nrhs = n,
                                     .batch = batch,
                                     .stride_a = stride,
                                     .stride_b = stride,
                                     .trans = blas::transpose::yes});
    m.add(memory::copy<float>{given, a});
    m.add(memory::copy<float>{sides, squares});
    m.add(blas::gels_batched<float>{.a = a,
                                    .c = squares,
                                    .info = info,
                                    .m = n,
                                    .n = n,
                                    .nrhs = n,
                                    .batch = batch,
                                    .stride_a = stride,
                                    .stride_c = stride});
    m.add(memory::copy<float>{given, qr});
    m.add(blas::geqrf_batched<float>{.a = qr, .tau = tau, .m = n, .n = n, .batch = batch, .stride_a = stride});
    m.add(memory::copy<float>{sides, triangular});
    m.add(blas::trsm_batched<float>{.a = qr,
                                    .b = triangular,
                                    .m = n,
                                    .n = n,
                                    .batch = batch,
                                    .stride_a = stride,
                                    .stride_b = stride,
                                    .side = blas::side::right,
                                    .uplo = blas::uplo::upper,
                                    .trans = blas::transpose::yes});
    return m.finish();
}

} // namespace

TEST_CASE("ops on batches are part of the graph")
{
    const auto seed = test::fresh_seed();
    CAPTURE(seed);
    test::engine random(seed);
    for_each_plan_context([&](context_world& w) {
        for (const std::uint64_t n : {4, 96}) {
            CAPTURE(n);
            context_driver d(w);
            const auto data = batches_plan(n);
            test_instance i(d, data, 1, 1);
            REQUIRE_FALSE(i.load());
            CHECK(i.recorded);
            for (int run = 0; run < 3; ++run) {
                const auto given = exchanged_matrices(n, random), sides = exchanged_matrices(n, random);
                plan_run r(i, {given, sides});
                REQUIRE_FALSE(d.outcome_of(*r.request));
                for (std::uint64_t k = 0; k < batch_count; ++k) {
                    const auto a = matrix_of(given, n, k), b = matrix_of(sides, n, k);
                    const auto result = [&](std::size_t output) { return matrix_of(r.outputs[output], n, k); };
                    CHECK(is_product(a, result(0), test::reference<float>::identity(n)));
                    CHECK(is_product(a.adjoint(), result(1), b));
                    CHECK(is_product(a, result(2), b));
                    const auto factors = result(3), upper = test::upper_of(factors);
                    CHECK((test::times_q(factors, r.outputs[4].data() + k * n, upper) - a).norm() <=
                          test::tolerance<float>(2 * n) * a.norm());
                    CHECK(is_product(result(5), upper.adjoint(), b));
                }
            }
            CHECK_FALSE(i.unload());
        }
    });
}

TEST_SUITE_END();
