#ifndef COACCEL_BENCH_CUDA_ROWS_HPP
#define COACCEL_BENCH_CUDA_ROWS_HPP

#include "raw.hpp"
#include "row.hpp"

#include <coaccel/core/context_options.hpp>

#include <string>

namespace coaccel::bench {

/// What every row needs.
struct stage {
    const raw_gpu& raw;
    /// For compiled kernels; empty at first, and gone afterwards.
    std::string folder;
};

// Each makes a device of its own, so that what goes wrong in one does not reach the next.
void round_trip_rows(const stage& s, rows& table);
void host_fn_row(const stage& s, rows& table);
void depth_vs_enqueue_row(const stage& s, rows& table);
void depth_vs_naive_row(const stage& s, rows& table);
void seq_row(const stage& s, rows& table);
void cpu_row(const stage& s, rows& table);
void growth_row(const stage& s, rows& table);
void sgemm_row(const stage& s, rows& table, std::int64_t n, completion how);
void pinned_rows(const stage& s, rows& table);
void pageable_rows(const stage& s, rows& table);
void alloc_row(const stage& s, rows& table);
void jit_row(const stage& s, rows& table);
void worker_spin_row(const stage& s, rows& table);
void worker_block_row(const stage& s, rows& table);
void worker_depth_row(const stage& s, rows& table);
void worker_copy_rows(const stage& s, rows& table);
void worker_warm_row(const stage& s, rows& table);
void worker_cold_row(const stage& s, rows& table);
void worker_memory_row(const stage& s, rows& table);

/// Prints what the parts cost.
void print_breakdown(const stage& s);

} // namespace coaccel::bench

#endif
