#include "isolated.hpp"

#include <coaccel/plan/plan_builder.hpp>

#include <memory>
#include <numeric>

namespace test_gpu_exported_constants {

// Constants of plans in GPU memory that exists once and outlives the workers, under real faults.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using namespace test;
using namespace test::isolated;

constexpr std::uint64_t mib = std::uint64_t(1) << 20;
/// Each ends two contexts, and takes about a second: the driver reports both, and the standby is replaced twice.
constexpr int faults = 50;
/// Memory that the driver keeps for a context beyond what it is asked for.
constexpr std::uint64_t tolerance = 64 * mib;

/// What the input tells the kernel to do.
enum class input : std::uint32_t { harmless = 0, illegal_address = 1, write_to_constant = 2 };

/// y += x[0] + all words of w, each multiplied by a factor that depends on its place.
constexpr const char* source = R"(
extern "C" __global__ void mix(const unsigned* x, const unsigned* w, unsigned* y, unsigned long long n)
{
    const unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (x[0] == 1)
        y[1ull << 44] = 1;
    if (x[0] == 2)
        const_cast<unsigned*>(w)[first] = 0;
    unsigned sum = first == 0 ? x[0] : 0;
    for (unsigned long long i = first; i < n; i += gridDim.x * (unsigned long long)blockDim.x)
        sum += w[i] * (unsigned)(i % 1021 + 1);
    atomicAdd(y, sum);
}
)";

class weights {
public:
    explicit weights(std::uint64_t bytes, std::uint32_t seed = 1)
        : words_(std::make_shared<std::vector<std::uint32_t>>(bytes / sizeof(std::uint32_t)))
    {
        for (std::size_t i = 0; i < words_->size(); ++i) {
            (*words_)[i] = static_cast<std::uint32_t>(i) * 2654435761u + seed;
            mixed_ += (*words_)[i] * static_cast<std::uint32_t>(i % 1021 + 1);
        }
    }

    std::uint64_t bytes() const { return words_->size() * sizeof(std::uint32_t); }
    std::uint32_t mixed() const { return mixed_; }

    plan_description plan(const jit::kernel& kernel, const char* name = "mix") const
    {
        plan_builder b(name);
        const auto x = b.input<std::uint32_t>(1);
        const auto w = b.constant<std::uint32_t>(std::span<const std::uint32_t>(*words_), words_);
        const auto y = b.output<std::uint32_t>(1);
        b.add(memory::fill<std::uint32_t>{.dst = y, .value = 0});
        b.add(pure(jit::launch(kernel, {.grid = {512}, .block = {256}}, in(x), in(w), inout(y),
                               static_cast<std::uint64_t>(words_->size()))));
        return b.finish().value();
    }

private:
    std::shared_ptr<std::vector<std::uint32_t>> words_;
    std::uint32_t mixed_ = 0;
};

const weights& one_gibibyte()
{
    static const weights w(1024 * mib);
    return w;
}

struct fixture : world {
    explicit fixture(int standby = 1) : gpu(make(isolated_options(standby))), kernel(compile(io, gpu, source, "mix")) {}

    device_stats stats() { return await(io, gpu.async_stats()).value(); }

    plan load(const plan_description& d)
    {
        auto made = await(io, gpu.async_load(d, {.instances = 1, .poison_limit = 1000}));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    void wait_for_standby(std::uint64_t plans)
    {
        run_until(io, [&] { return stats().standby_plans == plans; });
    }

    error_code run(const plan& p, input what, std::uint32_t& y)
    {
        const std::array x{static_cast<std::uint32_t>(what)};
        std::array<std::uint32_t, 1> got{};
        const auto ended = await(io, p.async_run(from(x), to(got)));
        y = got[0];
        return ended ? error_code() : ended.error();
    }

    /// All of the constant is read.
    void check_content(const plan& p, const weights& w)
    {
        std::uint32_t y = 0;
        const auto ec = run(p, input::harmless, y);
        REQUIRE_MESSAGE(!ec, ec.message());
        CHECK(y == w.mixed());
    }

    void fault(const plan& p, input what)
    {
        const auto before = gpu.status().generation;
        std::uint32_t y = 0;
        CHECK(run(p, what, y) == errc::context_lost);
        run_until(io, [&] { return gpu.status().generation > before; });
    }

    /// The free memory of the GPU, when workers that have ended have given theirs back.
    std::uint64_t settled()
    {
        auto last = free_memory(observer);
        for (int same = 0; same < 60;) {
            io.run_for(5ms);
            io.restart();
            const auto now = free_memory(observer);
            same = now == last ? same + 1 : 0;
            last = now;
        }
        return last;
    }

    device gpu;
    jit::kernel kernel;
    /// In this process, which asks the driver each time; a worker reports its memory now and then.
    device observer = make(gpu_options());
};

/// A plan that shows when the standby is ready, without a kernel of its own.
plan_description trivial_plan()
{
    plan_builder b("trivial");
    b.add(memory::copy<float>{b.input<float>(16), b.output<float>(16)});
    return b.finish().value();
}

/// The memory that the plan needs on a device with so many standbys.
std::uint64_t memory_for_plan(int standby, const weights& w)
{
    fixture f(standby);
    const plan small = f.load(trivial_plan());
    f.wait_for_standby(standby == 0 ? 0 : 1);
    const auto before = f.settled();
    const plan p = f.load(w.plan(f.kernel));
    f.wait_for_standby(standby == 0 ? 0 : 2);
    return before - f.settled();
}

TEST_SUITE_BEGIN("gpu isolated");

TEST_CASE("constants and a durable counter survive faults, and the memory is back in the end")
{
    const weights& w = one_gibibyte();
    fixture f;
    const auto made = await(f.io, f.gpu.async_alloc_durable<float>(1));
    REQUIRE_MESSAGE(made, (made ? std::string() : made.error().message()));
    const auto& counter = made.value();
    const auto one = await(f.io, f.gpu.async_alloc_durable<float>(1));
    REQUIRE(one);
    REQUIRE(await(f.io, f.gpu.async_clear(counter)));
    float counted = 0;
    // After a fault the device does not know whether the faulting kernel has written to durable memory.
    const auto count = [&] {
        for (const auto* b : {&counter, &one.value()})
            REQUIRE(await(f.io, f.gpu.async_trust(*b)));
        const std::vector<float> value{1};
        REQUIRE(await(f.io, f.gpu.async_write(one.value().ref(), std::span<const float>(value))));
        const auto added = await(
            f.io, f.gpu.async_exec(blas::axpy<float>{.x = one.value().ref(), .y = counter.ref(), .n = 1, .alpha = 1}));
        REQUIRE_MESSAGE(added, (added ? std::string() : added.error().message()));
        CHECK(await(f.io, f.gpu.async_download(counter.ref())).value() == std::vector<float>{++counted});
    };
    const plan small = f.load(trivial_plan());
    f.wait_for_standby(1);
    // Loads the plan, lets it fault and unloads it. Returns the free memory with it and without it.
    const auto durable = f.stats().memory.shared;
    const auto round = [&](int times) {
        plan p = f.load(w.plan(f.kernel));
        f.check_content(p, w);
        CHECK(f.stats().memory.shared == w.bytes() + durable);
        for (int i = 0; i < times; ++i) {
            CAPTURE(i);
            f.wait_for_standby(2);
            f.fault(p, input::illegal_address);
            f.check_content(p, w);
            count();
            CHECK(f.stats().memory.shared == w.bytes() + durable);
        }
        f.wait_for_standby(2);
        const auto with = f.settled();
        REQUIRE(await(f.io, p.async_unload()));
        f.wait_for_standby(1);
        CHECK(f.stats().memory.shared == durable);
        return std::pair(with, f.settled());
    };
    // Contexts that are made after a fault of the GPU are larger than the first ones, by 190 MiB on an H200.
    const auto level = round(1).second;
    const auto [with, after] = round(faults);
    MESSAGE("free: " << level / mib << " MiB before, " << with / mib << " MiB with the plan, " << after / mib
                     << " MiB after");
    CHECK(with + w.bytes() + tolerance > level);
    CHECK(after + tolerance > level);
    CHECK(f.stats().convicted == faults + 1);
    CHECK(f.stats().failed == faults + 1);
}

TEST_CASE("a kernel that writes to a constant faults and changes nothing")
{
    const weights w(64 * mib);
    fixture f;
    const plan p = f.load(w.plan(f.kernel));
    f.check_content(p, w);
    // In the worker that has filled the constant, and in those that have mapped it.
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        f.wait_for_standby(1);
        f.fault(p, input::write_to_constant);
        f.check_content(p, w);
    }
    CHECK(f.stats().memory.shared == w.bytes());
}

TEST_CASE("constants survive a worker that is killed, also without a standby")
{
    const weights w(64 * mib);
    fixture f(0);
    const plan p = f.load(w.plan(f.kernel));
    for (int i = 0; i < 3; ++i) {
        f.check_content(p, w);
        const auto before = f.gpu.status().generation;
        REQUIRE(::kill(f.process_of(f.gpu), SIGKILL) == 0);
        run_until(f.io, [&] { return f.gpu.status().generation > before; });
    }
    f.check_content(p, w);
    CHECK(f.stats().memory.shared == w.bytes());
}

TEST_CASE("a standby has no copy of the constants")
{
    const weights& w = one_gibibyte();
    const auto without = memory_for_plan(0, w);
    const auto with = memory_for_plan(1, w);
    MESSAGE("the plan needs " << without / mib << " MiB, with a standby " << with / mib << " MiB");
    CHECK(without >= w.bytes());
    CHECK(with <= without + 64 * mib);
}

TEST_CASE("two devices have constants of their own, and a fault of one does not affect the other")
{
    const weights w(64 * mib), other(32 * mib, 7);
    fixture f, g;
    const plan p = f.load(w.plan(f.kernel));
    const plan q = g.load(w.plan(g.kernel)), r = g.load(other.plan(g.kernel, "other"));
    for (int i = 0; i < 2; ++i) {
        f.wait_for_standby(1);
        f.fault(p, input::illegal_address);
        f.check_content(p, w);
        g.check_content(q, w);
        g.check_content(r, other);
    }
    CHECK(g.gpu.status().generation == 1);
    CHECK(f.stats().memory.shared == w.bytes());
    CHECK(g.stats().memory.shared == w.bytes() + other.bytes());
}

TEST_CASE("a limit of memory holds for exported constants")
{
    const weights w(64 * mib), other(64 * mib, 7);
    world all;
    auto o = isolated_options(0);
    o.cuda.memory_limit = 100 * mib;
    const device gpu = all.make(o);
    const auto kernel = compile(all.io, gpu, source, "mix");
    const auto p = await(all.io, gpu.async_load(w.plan(kernel)));
    REQUIRE_MESSAGE(p, p.error().message());
    const auto q = await(all.io, gpu.async_load(other.plan(kernel)));
    CHECK(errc_of(q.error()) == errc::out_of_memory);
}

TEST_SUITE_END();

} // namespace

} // namespace test_gpu_exported_constants
