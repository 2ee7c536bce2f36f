// Statistics of a table, for each group of rows and each column: the number of rows, least, greatest and mean value.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

constexpr std::size_t rows = 20000;
constexpr std::size_t columns = 3;
constexpr std::size_t groups = 12;

// One row of the table: the group, such as a month, and a number for each column.
struct table {
    std::vector<std::uint32_t> group;
    std::vector<float> values;
};

struct statistics {
    std::vector<float> least, greatest, mean;
};

//[table_statistics_run
// The rows are sorted by their groups first: sort_pairs gives the numbers of the sorted rows, and gather fetches them.
// The rows of a group are then adjacent, from offsets[g] to offsets[g + 1].
asio::awaitable<ca::result<statistics>> compute(ca::device gpu, const table& t,
                                                const std::vector<std::uint64_t>& offsets)
{
    using ca::prim::reduction;
    BOOST_OUTCOME_CO_TRY(const auto group, co_await gpu.async_upload(t.group));
    BOOST_OUTCOME_CO_TRY(const auto values, co_await gpu.async_upload(t.values));
    BOOST_OUTCOME_CO_TRY(const auto begins, co_await gpu.async_upload(offsets));
    BOOST_OUTCOME_CO_TRY(const auto numbers, co_await gpu.async_alloc<std::uint64_t>(rows));
    BOOST_OUTCOME_CO_TRY(const auto sorted_group, co_await gpu.async_alloc<std::uint32_t>(rows));
    BOOST_OUTCOME_CO_TRY(const auto order, co_await gpu.async_alloc<std::uint64_t>(rows));
    BOOST_OUTCOME_CO_TRY(const auto sorted, co_await gpu.async_alloc<float>(rows * columns));
    BOOST_OUTCOME_CO_TRY(const auto result, co_await gpu.async_alloc<float>(groups * columns));

    ca::op_list prepare;
    prepare.add(ca::prim::sequence<std::uint64_t>{.dst = numbers, .start = 0, .step = 1});
    prepare.add(ca::prim::sort_pairs<std::uint32_t>{
        .keys = group, .values = numbers, .sorted_keys = sorted_group, .sorted_values = order, .n = rows});
    prepare.add(
        ca::prim::gather<float>{.x = values, .indices = order, .y = sorted, .n = rows, .m = rows, .inner = columns});
    BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(std::move(prepare)));

    statistics s;
    for (const auto& [what, to] : {std::pair(reduction::min, &s.least), std::pair(reduction::max, &s.greatest),
                                   std::pair(reduction::sum, &s.mean)}) {
        const ca::prim::segmented_reduce<float> op{.x = sorted,
                                                   .offsets = begins,
                                                   .y = result,
                                                   .rows = rows,
                                                   .segments = groups,
                                                   .columns = columns,
                                                   .what = what};
        BOOST_OUTCOME_CO_TRYV(co_await gpu.async_exec(op));
        to->resize(groups * columns);
        BOOST_OUTCOME_CO_TRYV(co_await gpu.async_read(result, *to));
    }
    for (std::size_t i = 0; i < s.mean.size(); ++i)
        s.mean[i] /= static_cast<float>(offsets[i / columns + 1] - offsets[i / columns]);
    co_return s;
}
//]

table make_table()
{
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    table t;
    for (std::size_t row = 0; row < rows; ++row) {
        t.group.push_back(static_cast<std::uint32_t>(random() % groups));
        for (std::size_t c = 0; c < columns; ++c)
            t.values.push_back(normal(random) + static_cast<float>(t.group.back() * (c + 1)));
    }
    return t;
}

// Where each group begins in the sorted table, and the end.
std::vector<std::uint64_t> offsets_of(const table& t)
{
    std::vector<std::uint64_t> made(groups + 1);
    for (const std::uint32_t g : t.group)
        ++made[g + 1];
    for (std::size_t g = 0; g < groups; ++g)
        made[g + 1] += made[g];
    return made;
}

// Compares with loops over the table as it is.
bool is_right(const table& t, const statistics& s)
{
    for (std::size_t g = 0; g < groups; ++g)
        for (std::size_t c = 0; c < columns; ++c) {
            double sum = 0, count = 0;
            float least = HUGE_VALF, greatest = -HUGE_VALF;
            for (std::size_t row = 0; row < rows; ++row)
                if (t.group[row] == g) {
                    const float v = t.values[row * columns + c];
                    sum += double(v);
                    ++count;
                    least = std::min(least, v);
                    greatest = std::max(greatest, v);
                }
            const std::size_t at = g * columns + c;
            if (s.least[at] != least || s.greatest[at] != greatest ||
                !(std::abs(double(s.mean[at]) - sum / count) < 1e-4))
                return false;
        }
    return true;
}

asio::awaitable<ca::result<bool>> run()
{
    const ca::device_options options{.kind = ca::device_kind::host};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    const table t = make_table();
    const auto offsets = offsets_of(t);
    BOOST_OUTCOME_CO_TRY(const auto s, co_await compute(gpu, t, offsets));
    std::cout << "group 3, column 0: " << offsets[4] - offsets[3] << " rows from " << s.least[3 * columns] << " to "
              << s.greatest[3 * columns] << ", mean " << s.mean[3 * columns] << '\n';
    co_return is_right(t, s);
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
