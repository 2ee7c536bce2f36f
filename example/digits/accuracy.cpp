// Runs a file of images through the model on the CPU, with each of its plans, and prints how many digits are right:
//   accuracy models/digits/1/model.plan data/test.txt 0.95
// Exits with 1 if the accuracy is below the number.

#include "text_files.hpp"

#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace ca = coaccel;

/// The probabilities of all images, `rows` at a time. The last batch is filled up with zeros.
asio::awaitable<ca::result<std::vector<float>>> classify(ca::plan_set model, std::size_t rows,
                                                         std::span<const float> images)
{
    const auto count = images.size() / digits::pixels;
    std::vector<float> all;
    std::vector<float> x(rows * digits::pixels);
    std::vector<float> y(rows * digits::classes);
    for (std::size_t from = 0; from < count; from += rows) {
        const auto n = std::min(rows, count - from);
        std::ranges::fill(x, 0.0f);
        std::ranges::copy(images.subspan(from * digits::pixels, n * digits::pixels), x.begin());
        BOOST_OUTCOME_CO_TRYV(co_await model["rows" + std::to_string(rows)].async_run(ca::from(x), ca::to(y)));
        all.insert(all.end(), y.begin(), y.begin() + static_cast<std::ptrdiff_t>(n * digits::classes));
    }
    co_return all;
}

asio::awaitable<ca::result<bool>> run(std::string plan, digits::images test, double least)
{
    const ca::device_options options{.kind = ca::device_kind::host};
    BOOST_OUTCOME_CO_TRY(auto cpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    BOOST_OUTCOME_CO_TRY(const auto description, ca::plan_set_description::load(plan));
    BOOST_OUTCOME_CO_TRY(const auto model, co_await cpu.async_load(description));
    bool good = true;
    for (const std::size_t rows : {1, 8, 64}) {
        BOOST_OUTCOME_CO_TRY(const auto y, co_await classify(model, rows, test.values));
        std::size_t right = 0;
        for (std::size_t i = 0; i < test.digits.size(); ++i) {
            const auto* row = y.data() + i * digits::classes;
            right += std::max_element(row, row + digits::classes) - row == test.digits[i] ? 1 : 0;
        }
        const double accuracy = static_cast<double>(right) / static_cast<double>(test.digits.size());
        std::cout << "batches of " << rows << ": " << right << " of " << test.digits.size() << " right, accuracy "
                  << accuracy << '\n';
        good = good && accuracy >= least;
    }
    co_return good;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 4) {
        std::cerr << "usage: accuracy PLAN IMAGES LEAST\n";
        return 2;
    }
    auto test = digits::read_images(argv[2]);
    if (!test) {
        std::cerr << argv[2] << ": no images\n";
        return 1;
    }
    asio::io_context io;
    auto running = asio::co_spawn(io, run(argv[1], std::move(*test), std::atof(argv[3])), asio::use_future);
    io.run();
    const auto good = running.get();

    if (!good)
        std::cerr << good.error().message() << '\n';
    return good && good.value() ? 0 : 1;
}
