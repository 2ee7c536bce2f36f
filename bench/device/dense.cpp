#include "device/devices.hpp"
#include "row.hpp"

#include <coaccel/ops/blas.hpp>

#include <Eigen/Dense>

#include <string>
#include <utility>

namespace coaccel::bench {
namespace {

using matrix = Eigen::MatrixXf;
using column = Eigen::VectorXf;

/// Ops on the CPU beside the same calls of Eigen.
class eigen_rows {
public:
    explicit eigen_rows(rows& table) : table_(table), gpu_(make_device(io_, host_mode::pool)) {}

    buffer<float> upload(const Eigen::Ref<const matrix>& data)
    {
        return await<buffer<float>>(io_,
                                    gpu_.async_upload(std::span(data.data(), static_cast<std::size_t>(data.size()))));
    }

    template <element T>
    buffer<T> alloc(Eigen::Index count)
    {
        return await<buffer<T>>(io_, gpu_.async_alloc<T>(static_cast<std::size_t>(count)));
    }

    template <op Op, class Theirs>
    void add(std::string name, const Op& o, Theirs theirs)
    {
        const auto p = side_by_side(
            31, [&] { return milliseconds([&] { await<void>(io_, gpu_.async_exec(o)); }); },
            [&] { return milliseconds(theirs); });
        table_.push_back(at_most(std::move(name), p, 1.1, "ms", "<= 1.1"));
    }

private:
    template <class F>
    static double milliseconds(F f)
    {
        using clock = std::chrono::steady_clock;
        const auto began = clock::now();
        f();
        return std::chrono::duration<double, std::milli>(clock::now() - began).count();
    }

    rows& table_;
    asio::io_context io_;
    device gpu_;
};

/// With a dominant diagonal, so that factorizing it again and again keeps its magnitude.
matrix dominant(Eigen::Index n)
{
    matrix m = matrix::Random(n, n);
    m.diagonal().setConstant(static_cast<float>(n));
    return m;
}

void matrix_rows(eigen_rows& all)
{
    constexpr Eigen::Index n = 512;
    constexpr std::uint64_t size = n;
    const matrix a = dominant(n);
    matrix b = matrix::Random(n, n);
    matrix c = matrix::Zero(n, n);
    const auto da = all.upload(a), db = all.upload(b), dc = all.upload(c);
    all.add("symm_vs_eigen", blas::symm<float>{.a = da, .b = db, .c = dc, .m = size, .n = size},
            [&] { c.noalias() = a.selfadjointView<Eigen::Lower>() * b; });
    all.add("syrk_vs_eigen", blas::syrk<float>{.a = da, .c = dc, .n = size, .k = size, .beta = 1},
            [&] { c.selfadjointView<Eigen::Lower>().rankUpdate(a); });
    all.add("trsm_vs_eigen", blas::trsm<float>{.a = da, .b = db, .m = size, .n = size},
            [&] { a.triangularView<Eigen::Lower>().solveInPlace(b); });
}

void vector_rows(eigen_rows& all)
{
    constexpr Eigen::Index n = 2048;
    const matrix a = matrix::Random(n, n);
    const column x = column::Random(n);
    column y = column::Zero(n);
    const auto da = all.upload(a), dx = all.upload(x), dy = all.upload(y);
    all.add("gemv_vs_eigen", blas::gemv<float>{.a = da, .x = dx, .y = dy, .m = n, .n = n},
            [&] { y.noalias() = a * x; });
}

void batch_rows(eigen_rows& all)
{
    constexpr Eigen::Index n = 64;
    constexpr Eigen::Index count = 100;
    matrix matrices(n, n * count);
    for (Eigen::Index i = 0; i < count; ++i)
        matrices.middleCols(i * n, n) = dominant(n);
    const auto da = all.upload(matrices), tau = all.alloc<float>(n * count);
    const auto pivots = all.alloc<std::int32_t>(n * count), info = all.alloc<std::int32_t>(count);
    const auto each = [&](const auto& f) {
        for (Eigen::Index i = 0; i < count; ++i) {
            Eigen::Ref<matrix> one = matrices.middleCols(i * n, n);
            f(one);
        }
    };
    all.add(
        "lu_batched_vs_eigen",
        blas::getrf_batched<float>{.a = da, .pivots = pivots, .info = info, .n = n, .batch = count, .stride_a = n * n},
        [&] { each([](Eigen::Ref<matrix>& m) { const Eigen::PartialPivLU<Eigen::Ref<matrix>> done(m); }); });
    all.add("qr_batched_vs_eigen",
            blas::geqrf_batched<float>{.a = da, .tau = tau, .m = n, .n = n, .batch = count, .stride_a = n * n},
            [&] { each([](Eigen::Ref<matrix>& m) { const Eigen::HouseholderQR<Eigen::Ref<matrix>> done(m); }); });
}

} // namespace

void dense_rows(rows& table)
{
    eigen_rows all(table);
    matrix_rows(all);
    vector_rows(all);
    batch_rows(all);
}

} // namespace coaccel::bench
