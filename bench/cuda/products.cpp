#include "op_times.hpp"
#include "random.hpp"
#include "raw_lt.hpp"
#include "rows.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/prim.hpp>

#include <array>
#include <string>
#include <tuple>
#include <vector>

namespace coaccel::bench {
namespace {

/// Random elements of any type, on our device and in memory of the reference.
template <element T>
class both_sides {
public:
    both_sides(our_gpu& ours, const raw_gpu& raw, std::size_t count, std::uint32_t seed)
        : ours_(ours.get<buffer<T>>(ours.gpu().template async_alloc<T>(count))), raw_(raw, count * sizeof(T))
    {
        const auto values = ours.get<buffer<float>>(ours.gpu().async_upload(random_floats(count, seed)));
        if constexpr (std::same_as<T, float>)
            ours.get<void>(ours.gpu().async_exec(memory::copy<float>{.src = values, .dst = ours_}));
        else
            ours.get<void>(ours.gpu().async_exec(prim::cast<float, T>{.x = values, .y = ours_}));
        const auto bytes = ours.get<std::vector<T>>(ours.gpu().async_download(ours_));
        const auto inside = raw.enter();
        raw.check(raw.copy_in(raw_.address(), bytes.data(), count * sizeof(T)), "cuMemcpyHtoD");
    }

    const buffer<T>& ours() const noexcept { return ours_; }
    void* raw() const noexcept { return raw_.pointer(); }

private:
    buffer<T> ours_;
    raw_memory raw_;
};

template <element T>
std::vector<float> as_floats(our_gpu& ours, const buffer<T>& b)
{
    const auto made = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(b.size()));
    ours.get<void>(ours.gpu().async_exec(prim::cast<T, float>{.x = b, .y = made}));
    return ours.get<std::vector<float>>(ours.gpu().async_download(made));
}

constexpr std::uint64_t large = 4096;
constexpr std::uint64_t small = 64;

} // namespace

/// fp8 factors with scales, results in bf16.
void lt_fp8_row(const stage& s, rows& table)
{
    our_gpu ours(s.folder);
    const both_sides<float8_e4m3> a(ours, s.raw, large * large, 1);
    const both_sides<float8_e4m3> b(ours, s.raw, large * large, 2);
    const both_sides<bfloat16> c(ours, s.raw, large * large, 3);
    const both_sides<float> scale(ours, s.raw, 1, 4);
    const raw_lt theirs(s.raw, {.n = large, .factors = CUDA_R_8F_E4M3, .result = CUDA_R_16BF},
                        {.a = a.raw(), .b = b.raw(), .c = c.raw(), .scale = scale.raw()});
    const blas::matmul<float8_e4m3, bfloat16> op{.a = a.ours(),
                                                 .b = b.ours(),
                                                 .d = c.ours(),
                                                 .scale_a = scale.ours(),
                                                 .scale_b = scale.ours(),
                                                 .m = large,
                                                 .n = large,
                                                 .k = large,
                                                 .trans_a = blas::transpose::yes};
    add_large_op(table, "lt_matmul_fp8_4096", ours, op, s.raw, 1.02, "<= 1.02", [&] { theirs.multiply(); });
}

/// A product with bias and gelu in one pass, against the plain call, and against two ops.
void lt_bias_gelu_rows(const stage& s, rows& table)
{
    our_gpu ours(s.folder);
    const both_sides<bfloat16> a(ours, s.raw, large * large, 1);
    const both_sides<bfloat16> b(ours, s.raw, large * large, 2);
    const both_sides<bfloat16> c(ours, s.raw, large * large, 3);
    const both_sides<bfloat16> bias(ours, s.raw, large, 4);
    const raw_lt theirs(
        s.raw, {.n = large, .factors = CUDA_R_16BF, .result = CUDA_R_16BF, .epilogue = CUBLASLT_EPILOGUE_GELU_BIAS},
        {.a = a.raw(), .b = b.raw(), .c = c.raw(), .bias = bias.raw()});
    const blas::matmul<bfloat16> op{.a = a.ours(),
                                    .b = b.ours(),
                                    .d = c.ours(),
                                    .bias = bias.ours(),
                                    .m = large,
                                    .n = large,
                                    .k = large,
                                    .trans_a = blas::transpose::yes,
                                    .activation = blas::activation::gelu};
    add_large_op(table, "lt_bias_gelu_bf16_4096", ours, op, s.raw, 1.02, "<= 1.02", [&] { theirs.multiply(); });

    const blas::gemm<bfloat16> product{.a = a.ours(),
                                       .b = b.ours(),
                                       .c = c.ours(),
                                       .m = large,
                                       .n = large,
                                       .k = large,
                                       .trans_a = blas::transpose::yes};
    // Column-major with one bias for each row: row-major with one for each column.
    const prim::bias_activation<bfloat16> after{.x = c.ours(),
                                                .bias = bias.ours(),
                                                .y = c.ours(),
                                                .rows = large,
                                                .columns = large,
                                                .what = prim::activation::gelu};
    const auto fused = [&] { return ours.gpu().async_exec(op); };
    const auto separate = [&] { return ours.gpu().async_exec(seq(product, after)); };
    const auto time = [&](const auto& start) {
        return [&](auto& times) {
            ours.run(1, [&] { return time_each(start, of_large_op.skip, of_large_op.count, &times); });
        };
    };
    const auto all = collect(of_large_op.rounds, time(fused), time(separate));
    table.push_back(without_goal("lt_fused_vs_separate", scaled(all.middle(), to_ms), "ms p50"));
}

void lt_tiny_row(const stage& s, rows& table)
{
    our_gpu ours(s.folder);
    const both_sides<bfloat16> a(ours, s.raw, small * small, 1);
    const both_sides<bfloat16> b(ours, s.raw, small * small, 2);
    const both_sides<bfloat16> c(ours, s.raw, small * small, 3);
    const raw_lt theirs(s.raw, {.n = small, .factors = CUDA_R_16BF, .result = CUDA_R_16BF},
                        {.a = a.raw(), .b = b.raw(), .c = c.raw()});
    const blas::matmul<bfloat16> op{.a = a.ours(),
                                    .b = b.ours(),
                                    .d = c.ours(),
                                    .m = small,
                                    .n = small,
                                    .k = small,
                                    .trans_a = blas::transpose::yes};
    add_small_op(table, "lt_tiny", ours, op, s.raw, [&] { theirs.multiply(); });
    const auto& made = as_floats(ours, c.ours());
    std::vector<bfloat16> reference(small * small);
    const auto inside = s.raw.enter();
    s.raw.check(s.raw.copy_out(reference.data(), reinterpret_cast<CUdeviceptr>(c.raw()), reference.size() * 2),
                "cuMemcpyDtoH");
    for (std::size_t i = 0; i < made.size(); ++i)
        if (made[i] != static_cast<float>(reference[i]))
            throw failure("lt_tiny: the two products differ");
}

/// The fastest algorithm against the one that cuBLASLt proposes first, both measured by async_tune.
void lt_tuned_row(const stage& s, rows& table)
{
    constexpr std::uint64_t m = 384, n = 1000, k = 4096;
    our_gpu ours(s.folder);
    const both_sides<bfloat16> a(ours, s.raw, m * k, 1);
    const both_sides<bfloat16> b(ours, s.raw, k * n, 2);
    const both_sides<bfloat16> d(ours, s.raw, m * n, 3);
    const blas::matmul<bfloat16> op{
        .a = a.ours(), .b = b.ours(), .d = d.ours(), .m = m, .n = n, .k = k, .trans_a = blas::transpose::yes};
    const auto found = ours.get<tuning>(ours.gpu().async_tune(op));
    if (found.candidates == 0)
        throw failure("lt_tuned_vs_first: no algorithm was measured");
    table.push_back(without_goal("lt_tuned_vs_first", {found.best_us, found.first_us}, "us"));
}

/// Products of different sizes as one op, against one gemm for each.
void gemm_grouped_row(const stage& s, rows& table)
{
    constexpr std::size_t count = 16;
    our_gpu ours(s.folder);
    std::vector<buffer<float>> matrices;
    const auto make = [&](std::uint64_t elements) {
        const auto seed = static_cast<std::uint32_t>(matrices.size() + 1);
        matrices.push_back(ours.get<buffer<float>>(ours.gpu().async_upload(random_floats(elements, seed))));
        return matrices.back().ref();
    };
    std::array<blas::gemm<float>, count> products;
    blas::gemm_grouped<float> grouped;
    for (std::size_t i = 0; i < count; ++i) {
        // From 128 to 488, in another order for each side.
        const auto side = [i](std::size_t step) { return 128 + 24 * (i * step % count); };
        const std::uint64_t m = side(1), n = side(5), k = side(11);
        products[i] = {.a = make(m * k), .b = make(k * n), .c = make(m * n), .m = m, .n = n, .k = k};
        grouped.add(products[i]);
    }
    const auto one_by_one = std::apply([](const auto&... each) { return seq(each...); }, products);
    const auto time = [&](const auto& what) {
        return [&](auto& times) {
            const auto start = [gpu = &ours.gpu(), op = &what] { return gpu->async_exec(*op); };
            ours.run(1, [&] { return time_each(start, of_small_op.skip, of_small_op.count, &times); });
        };
    };
    const auto all = collect(of_small_op.rounds, time(grouped), time(one_by_one));
    table.push_back(without_goal("gemm_grouped", scaled(all.middle(), to_us), "us p50"));
}

} // namespace coaccel::bench
