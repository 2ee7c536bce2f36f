#include "isolation.hpp"
#include "rows.hpp"

#include <coaccel/device/plan.hpp>
#include <coaccel/ops/jit.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <array>
#include <memory>
#include <vector>

// Plans on isolated GPUs with faults, and the memory of their constants.
namespace coaccel::bench {
namespace {

constexpr std::size_t length = 64;
constexpr std::uint64_t gibibyte = std::uint64_t(1) << 30;
constexpr double mebibyte = 1 << 20;

using vector = std::array<float, length>;
using float_list = std::shared_ptr<const std::vector<float>>;

constexpr char source[] = R"(
extern "C" __global__ void trap() { asm volatile("trap;"); }
)";

/// So many GiB of constants, of which a run reads some elements. They are different parts of the same host memory.
plan_description copying(std::size_t gibibytes)
{
    constexpr std::size_t each = gibibyte / sizeof(float);
    plan_builder b("copying");
    const auto y = b.output<float>(length);
    b.add(memory::copy<float>{b.input<float>(length), y});
    if (gibibytes > 0) {
        std::vector<float> all(each + gibibytes);
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = static_cast<float>(i % 1000003);
        const float_list words = std::make_shared<const std::vector<float>>(std::move(all));
        for (std::size_t i = 0; i < gibibytes; ++i)
            b.add(memory::copy<float>{b.constant<float>(std::span(*words).subspan(i, each), words).first(1),
                                      y.subspan(i, 1)});
    }
    return value_of(b.finish(), "coaccel");
}

device_options gpu_device(int standby)
{
    device_options o;
    o.kind = device_kind::cuda;
    o = isolated(o);
    o.standby = standby;
    return o;
}

/// A device whose plan recovers from faults.
class recovering {
public:
    recovering(const stage& s, std::size_t gibibytes)
        : on_(gpu_device(1)), kernel_(compile(s)),
          plan_(on_.get<plan>(on_.gpu().async_load(copying(gibibytes), {.instances = 1})))
    {}

    /// From the message about the loss to the end of the first run after it.
    double time()
    {
        while (on_.get<device_stats>(on_.gpu().async_stats()).standby_plans == 0)
            on_.idle_for(std::chrono::milliseconds(1));
        const auto before = on_.gpu().status().generation;
        forget_losses();
        if (on_.outcome_of<void>(on_.gpu().async_exec(jit::launch(kernel_, jit::launch_shape{}))))
            throw failure("a kernel that traps has succeeded");
        const vector x{1};
        vector y{};
        do
            on_.get<void>(plan_.async_run(from(x), to(y)));
        while (on_.gpu().status().generation == before);
        return seconds_from_loss(clock::now());
    }

private:
    jit::kernel compile(const stage& s)
    {
        jit::compile_options how("trap");
        how.cache_folder(s.folder);
        return on_.get<jit::kernel>(on_.gpu().async_compile(source, std::move(how)));
    }

    one_device on_;
    jit::kernel kernel_;
    plan plan_;
};

struct recover_goal {
    const char* name;
    std::size_t gibibytes;
    int rounds;
    double milliseconds;
    const char* text;
};

void recover_row(const stage& s, rows& table, const recover_goal& g)
{
    recovering ours(s, g.gibibytes);
    std::vector<double> times;
    for (int i = 0; i < g.rounds; ++i)
        times.push_back(ours.time() * to_ms);
    table.push_back(at_most(g.name, {median(times), g.milliseconds}, 1, "ms from loss", g.text));
}

/// The memory of the GPU that is free when workers that have ended have given theirs back.
double settled(one_device& on, one_device& observer)
{
    constexpr int enough = 60;
    std::uint64_t last = 0;
    for (int same = 0; same < enough; on.idle_for(std::chrono::milliseconds(5))) {
        const auto now = observer.get<device_stats>(observer.gpu().async_stats()).memory.free;
        same = now == last ? same + 1 : 0;
        last = now;
    }
    return static_cast<double>(last);
}

/// The memory that a plan with 1 GiB of constants needs on a device with so many standbys.
double memory_of_plan(int standby)
{
    one_device on(gpu_device(standby));
    // In this process, which asks the driver each time; a worker reports its memory now and then.
    device_options in_process;
    in_process.kind = device_kind::cuda;
    one_device observer(in_process);
    const auto wait_for = [&](std::uint64_t plans) {
        while (standby > 0 && on.get<device_stats>(on.gpu().async_stats()).standby_plans != plans)
            on.idle_for(std::chrono::milliseconds(1));
    };
    // Without constants: shows when the standby is ready.
    const auto first = on.get<plan>(on.gpu().async_load(copying(0), {.instances = 1}));
    wait_for(1);
    const double before = settled(on, observer);
    const auto second = on.get<plan>(on.gpu().async_load(copying(1), {.instances = 1}));
    wait_for(2);
    return before - settled(on, observer);
}

} // namespace

void plan_recover_row(const stage& s, rows& table)
{
    recover_row(s, table, {"plan_recover_warm", 0, 7, 10, "<= 10 ms"});
}

void plan_recover_8g_row(const stage& s, rows& table)
{
    recover_row(s, table, {"plan_recover_8g", 8, 5, 30, "<= 30 ms"});
}

void standby_memory_row(const stage&, rows& table)
{
    constexpr double goal = 64;
    const double without = memory_of_plan(0);
    const double more = (memory_of_plan(1) - without) / mebibyte;
    table.push_back(at_most("standby_memory", {more, goal}, 1, "MiB", "<= 64"));
}

} // namespace coaccel::bench
