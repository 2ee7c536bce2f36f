#include "cuda/loader/table.hpp"
#include "ours.hpp"
#include "report.hpp"
#include "rows.hpp"
#include "watchdog.hpp"

#include <coaccel/core/context_options.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace {

using namespace coaccel::bench;

constexpr std::chrono::seconds limit(30);

class temporary_folder {
public:
    temporary_folder()
    {
        std::string made = (std::filesystem::temp_directory_path() / "coaccel_bench_XXXXXX").string();
        if (!mkdtemp(made.data()))
            throw failure("cannot make the folder " + made);
        path_ = made;
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;

    ~temporary_folder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

void print_machine(const stage& s)
{
    our_gpu ours(s.folder);
    const auto stats = ours.get<coaccel::device_stats>(ours.gpu().async_stats());
    std::string release;
    std::ifstream("/sys/module/nvidia/version") >> release;
    std::printf("%s, compute capability %d.%d, %d multiprocessors, driver %s (CUDA %s)\n", stats.hardware.name.c_str(),
                stats.hardware.compute_capability / 10, stats.hardware.compute_capability % 10,
                stats.hardware.multiprocessors, release.empty() ? "of unknown release" : release.c_str(),
                coaccel::cuda::version_text(s.raw.api().version).c_str());
    std::fflush(stdout);
}

measurement watched(std::string names, const stage& s, void (*measure)(const stage&, rows&),
                    std::chrono::seconds at_most = limit)
{
    return {names, [names, &s, measure, at_most](rows& table) {
                const watchdog guard(names, at_most);
                measure(s, table);
            }};
}

template <std::int64_t N, coaccel::completion How = coaccel::completion::adaptive>
void sgemm(const stage& s, rows& table)
{
    sgemm_row(s, table, N, How);
}

std::vector<measurement> all_of(const stage& s)
{
    return {
        // First, while no freed memory can be reused.
        watched("worker_memory", s, worker_memory_row),
        watched("rtt_vs_sync rtt_vs_sync_p99", s, round_trip_rows),
        watched("hostfn_rtt_vs_naive", s, host_fn_row),
        watched("depth64_vs_enqueue", s, depth_vs_enqueue_row),
        watched("depth64_vs_naive", s, depth_vs_naive_row),
        watched("seq16_vs_enqueue", s, seq_row),
        watched("sgemm_1024", s, sgemm<1024>),
        watched("sgemm_2048", s, sgemm<2048>),
        watched("sgemm_4096", s, sgemm<4096>),
        // Compares with polling: the cost of letting the executor sleep.
        watched("sgemm_2048_polled", s, sgemm<2048, coaccel::completion::polled>),
        watched("sgemm_4096_polled", s, sgemm<4096, coaccel::completion::polled>),
        watched("rand_vs_curand", s, rand_row),
        watched("blas_trsm_2048", s, blas_trsm_row),
        watched("blas_trsm_batched", s, blas_trsm_batched_row),
        watched("blas_tiny", s, blas_tiny_row),
        watched("lt_matmul_fp8_4096", s, lt_fp8_row),
        watched("lt_bias_gelu_bf16_4096 lt_fused_vs_separate", s, lt_bias_gelu_rows),
        watched("lt_tiny", s, lt_tiny_row),
        watched("lt_tuned_vs_first", s, lt_tuned_row),
        watched("gemm_grouped", s, gemm_grouped_row),
        watched("prim_transform prim_unary prim_cast_f16 prim_softmax", s, transform_rows),
        watched("prim_reduce prim_scan prim_sort prim_sort_pairs", s, cub_rows),
        watched("prim_tiny", s, prim_tiny_row),
        watched("prim_first_use", s, prim_first_use_row),
        watched("h2d_64m d2h_64m", s, pinned_rows),
        watched("h2d_64m_pageable d2h_64m_pageable", s, pageable_rows),
        watched("alloc_free", s, alloc_row),
        watched("jit_warm", s, jit_row),
        watched("cpu_per_op", s, cpu_row),
        watched("growth", s, growth_row),
        watched("plan_vs_graph", s, plan_graph_row),
        watched("plan_vs_threads plan_vs_threads_cpu", s, plan_threads_rows),
        watched("plan_chain12_vs_graph", s, plan_chain_graph_row),
        watched("plan_chain12_vs_threads", s, plan_chain_threads_row),
        watched("plan_rtt_vs_graph", s, plan_round_trip_row),
        watched("plan_load", s, plan_load_row),
        watched("request_vs_streams", s, request_streams_row),
        watched("two_devices", s, two_devices_row),
        watched("device_beside_runtime", s, beside_runtime_row),
        watched("batcher_vs_threads batcher_p99", s, batcher_threads_rows),
        watched("batcher_vs_limit", s, batcher_limit_row),
        watched("batcher_knobs", s, batcher_knob_rows, 2 * limit),
        watched("worker_rtt_spin worker_rtt_spin_p99", s, worker_spin_row),
        watched("worker_rtt_block worker_rtt_block_p99", s, worker_block_row),
        watched("worker_depth64", s, worker_depth_row),
        watched("plan_worker_vs_inproc", s, plan_worker_row),
        watched("worker_h2d_64m worker_d2h_64m worker_h2d_64m_pinned worker_d2h_64m_pinned", s, worker_copy_rows),
        watched("recover_warm", s, worker_warm_row),
        watched("recover_cold", s, worker_cold_row),
        watched("plan_recover_warm", s, plan_recover_row),
        // Most of its time it makes and uploads the constants.
        watched("plan_recover_8g", s, plan_recover_8g_row, 3 * limit),
        watched("plan_recover_trap", s, plan_trap_row),
        // A fault in each of 30 seconds.
        watched("plan_fault_stall plan_fault_stall_runs", s, plan_stall_row, 4 * limit),
        watched("standby_memory", s, standby_memory_row),
    };
}

bool measure(const coaccel::cuda::driver_api& api, const arguments& how)
{
    const temporary_folder folder;
    std::optional<watchdog> guard(std::in_place, "the start", limit);
    const raw_gpu raw(api);
    const stage s{raw, folder.path()};
    print_machine(s);
    guard.reset();

    const bool fine = report(all_of(s), how);
    if (how.breakdown) {
        guard.emplace("the breakdown", 2 * limit);
        print_breakdown(s);
    }
    return fine;
}

} // namespace

int main(int argc, char** argv)
{
    const auto how = parse(argc, argv, extras::breakdown);
    if (!how)
        return 2;
    const auto driver = coaccel::cuda::driver_api::load();
    if (!driver) {
        std::printf("no GPU here: %s\n", driver.error().message().c_str());
        return 77;
    }
    try {
        return measure(*driver.value(), *how) ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
