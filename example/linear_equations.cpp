// Many small systems of linear equations at once: LU factorizations and solutions of a batch, some matrices singular.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

//[linear_equations
// One for each system; std::nullopt if its matrix is singular.
using solutions = std::vector<std::optional<std::vector<float>>>;

// Solves a[i] * x = b[i] for each i, where a[i] has n rows and n columns.
asio::awaitable<ca::result<solutions>> solve(ca::device gpu, const std::vector<float>& matrices,
                                             const std::vector<float>& right_sides, std::size_t n)
{
    const std::size_t systems = right_sides.size() / n;
    BOOST_OUTCOME_CO_TRY(const auto a, co_await gpu.async_upload(matrices));
    BOOST_OUTCOME_CO_TRY(const auto b, co_await gpu.async_upload(right_sides));
    BOOST_OUTCOME_CO_TRY(const auto pivots, co_await gpu.async_alloc<std::int32_t>(n * systems));
    BOOST_OUTCOME_CO_TRY(const auto info, co_await gpu.async_alloc<std::int32_t>(systems));

    const ca::blas::getrf_batched<float> factorize{
        .a = a, .pivots = pivots, .info = info, .n = n, .batch = systems, .stride_a = n * n};
    const ca::blas::getrs_batched<float> substitute{
        .a = a, .pivots = pivots, .b = b, .n = n, .nrhs = 1, .batch = systems, .stride_a = n * n, .stride_b = n};
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(ca::seq(factorize, substitute)));
    BOOST_OUTCOME_CO_TRY(const auto zero_pivot, co_await gpu.async_download(info));
    BOOST_OUTCOME_CO_TRY(const auto x, co_await gpu.async_download(b));

    solutions found(systems);
    for (std::size_t i = 0; i < systems; ++i)
        if (zero_pivot[i] == 0) // otherwise the elements of x are infinite or NaN
            found[i].emplace(&x[i * n], &x[i * n] + n);
    co_return found;
}
//]

constexpr std::size_t systems = 50;
constexpr std::size_t n = 4;

// Each tenth matrix has two equal rows.
bool is_singular(std::size_t system)
{
    return system % 10 == 3;
}

// Column-major: element (row, column) of matrix i is at row + column * n + i * n * n. The diagonal is not the largest
// element of each column, so that rows are exchanged.
std::vector<float> make_matrices()
{
    std::vector<float> made(systems * n * n);
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = static_cast<float>(i * 7919 % 2003) / 1000 - 1;
    for (std::size_t i = 0; i < systems; ++i)
        for (std::size_t column = 0; column < n; ++column) {
            float* const elements = &made[column * n + i * n * n];
            elements[(column + i) % n] += 4;
            if (is_singular(i))
                elements[1] = elements[0];
        }
    return made;
}

// Compares A * x with b.
bool is_right(const std::vector<float>& a, const std::vector<float>& b, const solutions& all)
{
    for (std::size_t i = 0; i < systems; ++i) {
        if (all[i].has_value() == is_singular(i))
            return false;
        for (std::size_t row = 0; all[i] && row < n; ++row) {
            double sum = 0;
            for (std::size_t column = 0; column < n; ++column)
                sum += double(a[row + column * n + i * n * n]) * double((*all[i])[column]);
            if (!(std::abs(sum - double(b[row + i * n])) < 1e-4))
                return false;
        }
    }
    return true;
}

asio::awaitable<ca::result<bool>> run()
{
    const ca::device_options options{.kind = ca::device_kind::host};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    const auto a = make_matrices();
    std::vector<float> b(systems * n);
    for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = static_cast<float>(i % 13) - 6;
    BOOST_OUTCOME_CO_TRY(const auto found, co_await solve(gpu, a, b, n));
    const auto singular = std::count(found.begin(), found.end(), std::nullopt);
    std::cout << singular << " of " << found.size() << " matrices are singular\n";
    co_return is_right(a, b, found);
}

} // namespace

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto right = running.get();

    if (!right)
        std::cerr << right.error().message() << '\n';
    return right && right.value() ? 0 : 1;
}
