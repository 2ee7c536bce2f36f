#include "op_times.hpp"
#include "random.hpp"
#include "rows.hpp"

#include <coaccel/ops/blas.hpp>

#include <cmath>

namespace coaccel::bench {
namespace {

double goal_of(std::int64_t n)
{
    return n <= 1024 ? 1.05 : n <= 2048 ? 1.01 : 1.005;
}

const char* goal_text_of(std::int64_t n)
{
    return n <= 1024 ? "<= 1.05" : n <= 2048 ? "<= 1.01" : "<= 1.005";
}

void fill(const raw_gpu& raw, const raw_memory& target, const std::vector<float>& data)
{
    const auto inside = raw.enter();
    raw.check(raw.copy_in(target.address(), data.data(), data.size() * sizeof(float)), "cuMemcpyHtoD");
}

} // namespace

void sgemm_row(const stage& s, rows& table, std::int64_t n, completion how)
{
    const auto elements = static_cast<std::size_t>(n * n);
    const std::size_t bytes = elements * sizeof(float);
    const auto size = static_cast<std::uint64_t>(n);
    const auto a_data = random_floats(elements, 1);
    const auto b_data = random_floats(elements, 2);

    const raw_memory a(s.raw, bytes);
    const raw_memory b(s.raw, bytes);
    const raw_memory c(s.raw, bytes);
    fill(s.raw, a, a_data);
    fill(s.raw, b, b_data);
    const raw_blas theirs(s.raw);

    device_options options;
    options.context.completion = how;
    our_gpu ours(s.folder, options);
    const auto our_a = ours.get<buffer<float>>(ours.gpu().async_upload(a_data));
    const auto our_b = ours.get<buffer<float>>(ours.gpu().async_upload(b_data));
    const auto our_c = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(elements));
    const blas::gemm<float> op{.a = our_a, .b = our_b, .c = our_c, .m = size, .n = size, .k = size};
    const int count = n <= 1024 ? 40 : n <= 2048 ? 12 : 4;
    const auto all =
        awaited_against(ours, op, s.raw, {.rounds = 25, .count = count}, [&] { theirs.multiply(n, a, b, c); });
    const std::string name = "sgemm_" + std::to_string(n) + (how == completion::polled ? "_polled" : "");
    table.push_back(at_most(name, scaled(all.middle(), to_ms), goal_of(n), "ms p50", goal_text_of(n)));

    const auto our_result = ours.get<std::vector<float>>(ours.gpu().async_download(our_c));
    std::vector<float> raw_result(elements);
    const auto inside = s.raw.enter();
    s.raw.check(s.raw.copy_out(raw_result.data(), c.address(), bytes), "cuMemcpyDtoH");
    for (std::size_t i = 0; i < elements; ++i)
        if (!(std::abs(our_result[i] - raw_result[i]) <= 1e-2f))
            throw failure("the two products differ");
}

} // namespace coaccel::bench
