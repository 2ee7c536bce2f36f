#include "report.hpp"

int main(int argc, char** argv)
{
    using namespace coaccel::bench;
    const auto how = parse(argc, argv, extras::none);
    if (!how)
        return 2;
    const std::vector<measurement> all = {
        // First, while no freed memory can be reused.
        {"worker_memory", worker_memory_row},
        {"gemm_vs_eigen", gemm_rows},
        {"symm_vs_eigen syrk_vs_eigen trsm_vs_eigen gemv_vs_eigen lu_batched_vs_eigen qr_batched_vs_eigen", dense_rows},
        {"mailbox_vs_caf_1to1 mailbox_vs_channel_1to1 mailbox_vs_caf_4to1 mailbox_vs_channel_4to1", mailbox_rows},
        {"exec_vs_post exec_depth64_vs_post pending_growth bytes_per_pending_op allocations_per_op "
         "allocations_per_op_depth64",
         exec_rows},
        {"telemetry_cost trace_cost telemetry_allocations", telemetry_rows},
        {"plan_host_vs_ops allocations_per_run allocations_per_run_depth64", plan_rows},
        {"plan_recover_warm plan_fault_stall plan_repeatable", plan_fault_rows},
        {"batcher_overhead batcher_idle_delay replica_balance", batcher_rows},
        {"fair_share_error", fair_share_row},
        {"hot_swap_lost hot_swap_latency", hot_swap_rows},
        {"serve_http_rps_binary serve_http_rps_json", http_request_rows},
        {"serve_vs_triton", other_server_row},
        {"serve_fault_failed serve_fault_stall", http_fault_row},
        {"serve_idle_memory", idle_connection_row},
        {"worker_rtt_spin worker_rtt_spin_p99 worker_rtt_block worker_rtt_block_p99", worker_round_trip_rows},
        {"worker_depth64", worker_depth_row},
        {"worker_h2d_64m worker_d2h_64m worker_h2d_64m_pinned worker_d2h_64m_pinned", worker_copy_rows},
        {"recover_warm recover_cold", worker_recovery_rows},
    };
    return report(all, *how) ? 0 : 1;
}
