#include "isolation.hpp"
#include "rows.hpp"

#include <coaccel/ops/jit.hpp>

namespace coaccel::bench {
namespace {

constexpr char source[] = R"(
extern "C" __global__ void empty() {}
extern "C" __global__ void trap() { asm volatile("trap;"); }
)";

device_options gpu_device()
{
    device_options o;
    o.kind = device_kind::cuda;
    return o;
}

jit::kernel compile(one_device& on, const stage& s, const char* name)
{
    jit::compile_options how(name);
    how.cache_folder(s.folder);
    return on.get<jit::kernel>(on.gpu().async_compile(source, std::move(how)));
}

/// A device and a compiled kernel.
struct launching {
    launching(const stage& s, const device_options& o) : on(o), kernel(compile(on, s, "empty")) {}

    auto start() const
    {
        return [gpu = &on.gpu(), op = jit::launch(kernel, jit::launch_shape{})] { return gpu->async_exec(op); };
    }

    one_device on;
    jit::kernel kernel;
};

void round_trip(const stage& s, rows& table, const char* name, std::chrono::nanoseconds spin, double goal,
                const char* goal_text)
{
    launching ours(s, isolated(gpu_device(), spin));
    launching theirs(s, gpu_device());
    round_trip_rows(table, name, ours, theirs, goal, goal_text);
}

struct trap {
    const stage* s;

    void operator()(one_device& on) const
    {
        const auto kernel = compile(on, *s, "trap");
        if (on.outcome_of<void>(on.gpu().async_exec(jit::launch(kernel, jit::launch_shape{}))))
            throw failure("a kernel that traps has succeeded");
    }
};

} // namespace

void worker_spin_row(const stage& s, rows& table)
{
    round_trip(s, table, "worker_rtt_spin", spinning, 3, "<= +3");
}

void worker_block_row(const stage& s, rows& table)
{
    round_trip(s, table, "worker_rtt_block", blocking, 25, "<= +25");
}

void worker_depth_row(const stage& s, rows& table)
{
    launching ours(s, isolated(gpu_device()));
    launching theirs(s, gpu_device());
    depth_row(table, ours, theirs);
}

void worker_copy_rows(const stage&, rows& table)
{
    copy_rows(table, gpu_device());
}

void worker_warm_row(const stage& s, rows& table)
{
    recovery_row(table, gpu_device(), {"recover_warm", 1, 30, "<= 30 ms", 7, std::chrono::seconds(2), trap{&s}});
}

void worker_cold_row(const stage& s, rows& table)
{
    recovery_row(table, gpu_device(),
                 {"recover_cold", 0, 600, "<= 600 ms", 7, std::chrono::milliseconds(100), trap{&s}});
}

void worker_memory_row(const stage&, rows& table)
{
    memory_row(table, gpu_device());
}

} // namespace coaccel::bench
