#include "op_times.hpp"
#include "random.hpp"
#include "rows.hpp"

#include <coaccel/ops/blas.hpp>

#include <vector>

namespace coaccel::bench {
namespace {

/// The reference's copy of data.
class raw_floats : public raw_memory {
public:
    raw_floats(const raw_gpu& raw, const std::vector<float>& data) : raw_memory(raw, data.size() * sizeof(float))
    {
        const auto inside = raw.enter();
        raw.check(raw.copy_in(address(), data.data(), data.size() * sizeof(float)), "cuMemcpyHtoD");
    }

    float* data() const noexcept { return static_cast<float*>(pointer()); }
};

/// A matrix whose diagonal dominates, so that systems of equations with it are well conditioned.
std::vector<float> dominant(std::uint64_t n)
{
    auto made = random_floats(n * n, 1);
    for (std::uint64_t i = 0; i < n; ++i)
        made[i * n + i] = static_cast<float>(n);
    return made;
}

} // namespace

/// Triangular equations of about 1 ms.
void blas_trsm_row(const stage& s, rows& table)
{
    constexpr std::uint64_t n = 2048;
    const auto triangle = dominant(n);
    const auto right = random_floats(n * n, 2);
    our_gpu ours(s.folder);
    const auto a = ours.get<buffer<float>>(ours.gpu().async_upload(triangle));
    const auto b = ours.get<buffer<float>>(ours.gpu().async_upload(right));
    const raw_floats raw_a(s.raw, triangle);
    const raw_floats raw_b(s.raw, right);
    const raw_blas theirs(s.raw);
    const float one = 1;
    const blas::trsm<float> op{.a = a, .b = b, .m = n, .n = n};
    add_large_op(table, "blas_trsm_2048", ours, op, s.raw, 1.05, "<= 1.05", [&] {
        theirs.check(theirs.api().cublasStrsm_64(theirs.handle(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                                                 CUBLAS_DIAG_NON_UNIT, n, n, &one, raw_a.data(), n, raw_b.data(), n),
                     "cublasStrsm");
    });
}

/// The solutions of many small systems of equations, whose matrices are in tables of addresses for cuBLAS.
void blas_trsm_batched_row(const stage& s, rows& table)
{
    constexpr std::uint64_t n = 64;
    constexpr std::uint64_t batch = 4096;
    const auto one_matrix = dominant(n);
    std::vector<float> triangles;
    for (std::uint64_t i = 0; i < batch; ++i)
        triangles.insert(triangles.end(), one_matrix.begin(), one_matrix.end());
    const auto right = random_floats(n * n * batch, 2);
    our_gpu ours(s.folder);
    const auto a = ours.get<buffer<float>>(ours.gpu().async_upload(triangles));
    const auto b = ours.get<buffer<float>>(ours.gpu().async_upload(right));
    const raw_floats raw_a(s.raw, triangles);
    const raw_floats raw_b(s.raw, right);
    std::vector<float*> addresses;
    for (const auto* const all : {&raw_a, &raw_b})
        for (std::uint64_t i = 0; i < batch; ++i)
            addresses.push_back(all->data() + i * n * n);
    const raw_memory tables(s.raw, addresses.size() * sizeof(float*));
    {
        const auto inside = s.raw.enter();
        s.raw.check(s.raw.copy_in(tables.address(), addresses.data(), addresses.size() * sizeof(float*)),
                    "cuMemcpyHtoD");
    }
    auto* const table_a = static_cast<float**>(tables.pointer());
    const raw_blas theirs(s.raw);
    const float one = 1;
    const blas::trsm_batched<float> op{
        .a = a, .b = b, .m = n, .n = n, .batch = batch, .stride_a = n * n, .stride_b = n * n};
    add_large_op(table, "blas_trsm_batched", ours, op, s.raw, 1.05, "<= 1.05", [&] {
        theirs.check(theirs.api().cublasStrsmBatched_64(theirs.handle(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER,
                                                        CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, n, &one, table_a, n,
                                                        table_a + batch, n, batch),
                     "cublasStrsmBatched");
    });
}

void blas_tiny_row(const stage& s, rows& table)
{
    constexpr std::uint64_t n = 64;
    const auto matrix = random_floats(n * n, 1);
    our_gpu ours(s.folder);
    const auto a = ours.get<buffer<float>>(ours.gpu().async_upload(matrix));
    const auto x = ours.get<buffer<float>>(ours.gpu().async_upload(random_floats(n, 2)));
    const auto y = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(n));
    const raw_floats raw_a(s.raw, matrix);
    const raw_floats raw_x(s.raw, random_floats(n, 2));
    const raw_floats raw_y(s.raw, random_floats(n, 3));
    const raw_blas theirs(s.raw);
    const float one = 1;
    const float zero = 0;
    const blas::gemv<float> op{.a = a, .x = x, .y = y, .m = n, .n = n};
    add_small_op(table, "blas_tiny", ours, op, s.raw, [&] {
        theirs.check(theirs.api().cublasSgemv_64(theirs.handle(), CUBLAS_OP_N, n, n, &one, raw_a.data(), n,
                                                 raw_x.data(), 1, &zero, raw_y.data(), 1),
                     "cublasSgemv");
    });
}

} // namespace coaccel::bench
