#include "gpu.hpp"

#include <algorithm>
#include <array>
#include <random>

// Random graphs of ops over a few buffers, on random lanes, without awaiting any of them. The result must be the same
// as if they had run one after another. The numbers are small integers, which floats add exactly.
namespace {

using namespace coaccel;
using test::gpu_fixture;

constexpr std::size_t buffer_count = 5;
constexpr std::size_t length = 512;
constexpr int ops_per_graph = 14;

constexpr const char* source = R"(
extern "C" __global__ void blend(const float* x, float* y, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = y[i] - x[i] + 1.0f;
}
)";

class graph {
public:
    graph(gpu_fixture& f, const jit::kernel& blend, std::uint64_t seed) : f_(f), blend_(blend), random_(seed) {}

    bool run()
    {
        for (auto& m : model_)
            m.assign(length, 0.0f);
        for (std::size_t b = 0; b < buffer_count; ++b) {
            buffers_[b] = f_.alloc<float>(length);
            f_.gpu.async_exec(memory::fill<float>{.dst = buffers_[b], .value = 0}, done());
        }
        for (int i = 0; i < ops_per_graph; ++i)
            step();
        for (std::size_t b = 0; b < buffer_count; ++b) {
            got_[b].resize(length);
            f_.gpu.async_read(buffers_[b], std::span(got_[b]), done());
        }
        test::run_until(f_.io, [this] { return outstanding_ == 0; });
        return failures_ == 0 && got_ == model_;
    }

private:
    struct completion {
        graph* self;

        void operator()(error_code ec) const
        {
            --self->outstanding_;
            self->failures_ += ec ? 1 : 0;
        }
    };

    completion done()
    {
        ++outstanding_;
        return {this};
    }

    std::size_t below(std::size_t n) { return random_() % n; }

    void step()
    {
        const std::size_t a = below(buffer_count);
        const std::size_t b = (a + 1 + below(buffer_count - 1)) % buffer_count;
        const std::size_t first = below(length / 2);
        const std::size_t n = 1 + below(length - first);
        const exec_options how{.priority = static_cast<priority>(below(3)), .lane = static_cast<int>(below(5)) - 1};
        auto& x = model_[a];
        auto& y = model_[b];
        const auto rx = buffers_[a].subspan(first, n);
        const auto ry = buffers_[b].subspan(first, n);
        switch (below(6)) {
        case 0: {
            const auto value = static_cast<float>(below(16));
            f_.gpu.with(how).async_exec(memory::fill<float>{.dst = ry, .value = value}, done());
            std::fill_n(y.begin() + static_cast<long>(first), n, value);
            break;
        }
        case 1:
            f_.gpu.with(how).async_exec(memory::copy<float>{.src = rx, .dst = ry}, done());
            std::copy_n(x.begin() + static_cast<long>(first), n, y.begin() + static_cast<long>(first));
            break;
        case 2:
            f_.gpu.with(how).async_exec(blas::axpy<float>{.x = rx, .y = ry, .n = n, .alpha = -1}, done());
            for (std::size_t i = first; i < first + n; ++i)
                y[i] -= x[i];
            break;
        case 3:
            f_.gpu.with(how).async_exec(blas::swap<float>{.x = rx, .y = ry, .n = n}, done());
            std::swap_ranges(x.begin() + static_cast<long>(first), x.begin() + static_cast<long>(first + n),
                             y.begin() + static_cast<long>(first));
            break;
        case 4:
            f_.gpu.with(how).async_exec(
                seq(memory::copy<float>{.src = rx, .dst = ry}, blas::axpy<float>{.x = ry, .y = rx, .n = n, .alpha = 1}),
                done());
            for (std::size_t i = first; i < first + n; ++i) {
                y[i] = x[i];
                x[i] += y[i];
            }
            break;
        default:
            f_.gpu.with(how).async_exec(
                jit::launch(blend_, {.grid = {2}, .block = {256}}, in(rx), inout(ry), static_cast<std::uint32_t>(n)),
                done());
            for (std::size_t i = first; i < first + n; ++i)
                y[i] = y[i] - x[i] + 1.0f;
        }
    }

    gpu_fixture& f_;
    const jit::kernel& blend_;
    std::mt19937_64 random_;
    std::array<buffer<float>, buffer_count> buffers_;
    std::array<std::vector<float>, buffer_count> model_, got_;
    int outstanding_ = 0;
    int failures_ = 0;
};

TEST_SUITE_BEGIN("gpu hazards");

TEST_CASE("10,000 random graphs of ops have the results of sequential execution")
{
    struct setting {
        lane_policy lanes;
        completion how;
        int graphs;
    };
    const setting settings[] = {
        {lane_policy::chained(4), completion::adaptive, 3000},    {lane_policy::chained(8), completion::host_fn, 1000},
        {lane_policy::per_library(), completion::adaptive, 2000}, {lane_policy::pooled(4), completion::adaptive, 2000},
        {lane_policy::pooled(8), completion::host_fn, 1000},      {lane_policy::single(), completion::polled, 500},
        {lane_policy::per_library(), completion::sync, 500}};
    for (const auto& s : settings) {
        auto o = test::gpu_options();
        o.context.lanes = s.lanes;
        o.context.completion = s.how;
        gpu_fixture f(o);
        const auto blend = test::compile(f.io, f.gpu, source, "blend");
        const std::uint64_t seed = std::random_device{}();
        for (int g = 0; g < s.graphs; ++g) {
            CAPTURE(seed);
            CAPTURE(g);
            REQUIRE(graph(f, blend, seed + static_cast<std::uint64_t>(g)).run());
        }
    }
}

TEST_SUITE_END();

} // namespace
