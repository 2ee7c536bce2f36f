#ifndef COACCEL_BENCH_CUDA_ROWS_HPP
#define COACCEL_BENCH_CUDA_ROWS_HPP

#include "raw.hpp"
#include "row.hpp"

#include <coaccel/core/context_options.hpp>

#include <string>

namespace coaccel::bench {

/// The objects that every row needs.
struct stage {
    const raw_gpu& raw;
    /// The folder for compiled kernels; empty at first, deleted at the end.
    std::string folder;
};

// Each function makes its own device, so that a failure does not affect the next one.
void round_trip_rows(const stage& s, rows& table);
void host_fn_row(const stage& s, rows& table);
void depth_vs_enqueue_row(const stage& s, rows& table);
void depth_vs_naive_row(const stage& s, rows& table);
void seq_row(const stage& s, rows& table);
void cpu_row(const stage& s, rows& table);
void growth_row(const stage& s, rows& table);
void rand_row(const stage& s, rows& table);
void sgemm_row(const stage& s, rows& table, std::int64_t n, completion how);
void blas_trsm_row(const stage& s, rows& table);
void blas_trsm_batched_row(const stage& s, rows& table);
void blas_tiny_row(const stage& s, rows& table);
void lt_fp8_row(const stage& s, rows& table);
void lt_bias_gelu_rows(const stage& s, rows& table);
void lt_tiny_row(const stage& s, rows& table);
void lt_tuned_row(const stage& s, rows& table);
void gemm_grouped_row(const stage& s, rows& table);
void transform_rows(const stage& s, rows& table);
void cub_rows(const stage& s, rows& table);
void prim_tiny_row(const stage& s, rows& table);
void prim_first_use_row(const stage& s, rows& table);
void pinned_rows(const stage& s, rows& table);
void pageable_rows(const stage& s, rows& table);
void alloc_row(const stage& s, rows& table);
void jit_row(const stage& s, rows& table);
void plan_graph_row(const stage& s, rows& table);
void plan_threads_rows(const stage& s, rows& table);
void plan_chain_graph_row(const stage& s, rows& table);
void plan_chain_threads_row(const stage& s, rows& table);
void plan_round_trip_row(const stage& s, rows& table);
void plan_load_row(const stage& s, rows& table);
void request_streams_row(const stage& s, rows& table);
void two_devices_row(const stage& s, rows& table);
void beside_runtime_row(const stage& s, rows& table);
void plan_worker_row(const stage& s, rows& table);
void batcher_threads_rows(const stage& s, rows& table);
void batcher_limit_row(const stage& s, rows& table);
void batcher_knob_rows(const stage& s, rows& table);
void worker_spin_row(const stage& s, rows& table);
void worker_block_row(const stage& s, rows& table);
void worker_depth_row(const stage& s, rows& table);
void worker_copy_rows(const stage& s, rows& table);
void worker_warm_row(const stage& s, rows& table);
void worker_cold_row(const stage& s, rows& table);
void plan_recover_row(const stage& s, rows& table);
void plan_recover_8g_row(const stage& s, rows& table);
void plan_trap_row(const stage& s, rows& table);
void plan_stall_row(const stage& s, rows& table);
void standby_memory_row(const stage& s, rows& table);
void worker_memory_row(const stage& s, rows& table);

/// Prints the cost of the individual steps.
void print_breakdown(const stage& s);

} // namespace coaccel::bench

#endif
