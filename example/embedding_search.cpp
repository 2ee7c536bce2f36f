// Search over embeddings as a plan: the documents whose vectors are most similar to that of a question.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <random>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

constexpr std::size_t documents = 5000;
constexpr std::size_t length = 48;
constexpr std::size_t questions = 4;
constexpr std::size_t wanted = 5;

//[embedding_search_build
// For each question, the `wanted` documents with the greatest scalar products, and these products. The vectors have
// length 1, so the products are cosines. One document is a column of the column-major matrix of gemm.
ca::result<ca::plan_description> make_search(const std::vector<float>& embeddings)
{
    ca::plan_builder b("search");
    const auto table = b.constant<float>(embeddings, "embeddings");
    const auto q = b.input<float>(length * questions, "questions");
    const auto scores = b.scratch<float>(documents * questions, "scores");
    const auto best = b.output<float>(wanted * questions, "best");
    const auto found = b.output<std::uint64_t>(wanted * questions, "found");
    b.add(ca::blas::gemm<float>{.a = table,
                                .b = q,
                                .c = scores,
                                .m = documents,
                                .n = questions,
                                .k = length,
                                .trans_a = ca::blas::transpose::yes});
    b.add(ca::prim::top_k<float>{
        .x = scores, .values = best, .indices = found, .n = documents, .k = wanted, .outer = questions});
    return b.finish();
}
//]

// Random vectors of length 1.
std::vector<float> directions(std::size_t count, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> made(count * length);
    for (auto v = made.begin(); v != made.end(); v += length) {
        std::generate_n(v, length, [&] { return normal(random); });
        const float size = std::sqrt(std::inner_product(v, v + length, v, 0.0f));
        std::for_each_n(v, length, [size](float& x) { x /= size; });
    }
    return made;
}

double similarity(const std::vector<float>& table, std::size_t document, const std::vector<float>& q, std::size_t i)
{
    double sum = 0;
    for (std::size_t k = 0; k < length; ++k)
        sum += double(table[document * length + k]) * double(q[i * length + k]);
    return sum;
}

// Compares with a sort of all documents.
bool is_right(const std::vector<float>& table, const std::vector<float>& q, const std::vector<float>& best,
              const std::vector<std::uint64_t>& found)
{
    for (std::size_t i = 0; i < questions; ++i) {
        std::vector<double> all(documents);
        for (std::size_t d = 0; d < documents; ++d)
            all[d] = similarity(table, d, q, i);
        std::sort(all.rbegin(), all.rend());
        for (std::size_t k = 0; k < wanted; ++k) {
            const std::size_t at = i * wanted + k;
            if (found[at] >= documents || !(std::abs(similarity(table, found[at], q, i) - all[k]) < 1e-5) ||
                !(std::abs(double(best[at]) - all[k]) < 1e-5))
                return false;
        }
    }
    return true;
}

asio::awaitable<ca::result<bool>> run()
{
    const ca::device_options options{.kind = ca::device_kind::host};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(co_await asio::this_coro::executor, options));
    const auto table = directions(documents, 1);
    BOOST_OUTCOME_CO_TRY(const auto description, make_search(table));
    BOOST_OUTCOME_CO_TRY(const auto search, co_await gpu.async_load(description));
    auto q = directions(questions, 2);
    // The first question is a document of the table.
    std::copy_n(table.begin() + 1234 * std::ptrdiff_t(length), length, q.begin());
    std::vector<float> best(wanted * questions);
    std::vector<std::uint64_t> found(wanted * questions);
    BOOST_OUTCOME_CO_TRYV(co_await search.async_run(ca::from(q), ca::to(best), ca::to(found)));
    std::cout << "document " << found[0] << " has the cosine " << best[0] << ", " << found[1] << " has " << best[1]
              << '\n';
    co_return found[0] == 1234 && is_right(table, q, best, found);
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
