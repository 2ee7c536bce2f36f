#include "device/devices.hpp"
#include "row.hpp"

#include <coaccel/ops/blas.hpp>

#include <Eigen/Core>

namespace coaccel::bench {

void gemm_rows(rows& table)
{
    constexpr std::uint64_t n = 512;
    const Eigen::MatrixXf a = Eigen::MatrixXf::Random(n, n);
    const Eigen::MatrixXf b = Eigen::MatrixXf::Random(n, n);
    Eigen::MatrixXf c(n, n);

    asio::io_context io;
    auto gpu = make_device(io, host_mode::pool);
    const std::span<const float> a_data(a.data(), n * n);
    const std::span<const float> b_data(b.data(), n * n);
    auto da = await<buffer<float>>(io, gpu.async_upload(a_data));
    auto db = await<buffer<float>>(io, gpu.async_upload(b_data));
    auto dc = await<buffer<float>>(io, gpu.async_alloc<float>(n * n));

    using clock = std::chrono::steady_clock;
    auto milliseconds = [](auto f) {
        const auto began = clock::now();
        f();
        return std::chrono::duration<double, std::milli>(clock::now() - began).count();
    };
    const auto p = side_by_side(
        81,
        [&] {
            return milliseconds([&] {
                await<void>(io, gpu.async_exec(blas::gemm<float>{.a = da, .b = db, .c = dc, .m = n, .n = n, .k = n}));
            });
        },
        [&] { return milliseconds([&] { c.noalias() = a * b; }); });
    table.push_back(at_most("gemm_vs_eigen", p, 1.05, "ms", "<= 1.05"));
}

} // namespace coaccel::bench
