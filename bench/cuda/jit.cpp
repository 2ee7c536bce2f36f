#include "ours.hpp"
#include "rows.hpp"

namespace coaccel::bench {
namespace {

constexpr char source[] = R"(
#include <cuda_fp16.h>

template <class T>
__global__ void scale(T* x, float by, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] = T(float(x[i]) * by);
}
)";

double compile_time(our_gpu& ours, const std::string& folder, bool cached)
{
    jit::compile_options how("scale<__half>");
    how.cache_folder(folder);
    const auto began = clock::now();
    const auto made = ours.get<jit::kernel>(ours.gpu().async_compile(source, std::move(how)));
    const double took = seconds_since(began);
    if (made.from_cache() != cached)
        throw failure(cached ? "the cache was not used" : "the cache was not empty");
    return took;
}

} // namespace

void jit_row(const stage& s, rows& table)
{
    constexpr int rounds = 5;
    our_gpu ours(s.folder);
    std::vector<double> warm;
    std::vector<double> cold;
    for (int i = 0; i < rounds; ++i) {
        const std::string folder = s.folder + "/jit_row_" + std::to_string(i);
        cold.push_back(compile_time(ours, folder, false));
        warm.push_back(compile_time(ours, folder, true));
    }
    const pair p{median(warm), median(cold)};
    table.push_back(at_most("jit_warm", scaled(p, to_ms), 0.05, "ms", "<= 0.05"));
}

} // namespace coaccel::bench
