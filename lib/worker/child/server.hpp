#ifndef COACCEL_WORKER_CHILD_SERVER_HPP
#define COACCEL_WORKER_CHILD_SERVER_HPP

#include "context/context.hpp"
#include "worker/child/plan_instances.hpp"
#include "worker/child/received_kernels.hpp"
#include "worker/child/received_plans.hpp"
#include "worker/child/remote_request.hpp"
#include "worker/protocol/memory_frames.hpp"
#include "worker/transport/descriptor_socket.hpp"
#include "worker/transport/doorbell.hpp"
#include "worker/transport/ring.hpp"

#include <coaccel/host/fault_injector.hpp>

#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace coaccel::worker {

/// The resources that the worker process shares with its parent.
struct worker_endpoints {
    control_block& control;
    std::span<std::byte> request_ring;
    std::span<std::byte> reply_ring;
    std::span<std::byte> staging;
    doorbell& request_bell;
    doorbell& reply_bell;
    descriptor_socket& descriptors;
};

/// The main loop of a worker: reads requests from the ring, runs them in a context, and replies. On one thread.
class COACCEL_DECL server final : detail::context_events {
public:
    explicit server(const worker_endpoints& place);

    /// Makes the context and serves until it is lost or the parent violates the protocol. `faults` receives the faults
    /// that the requests contain; the context's backend must use the same injector.
    void run(const detail::context_factory& make, fault_injector& faults);

private:
    // context_events
    void finished(detail::request& r, error_code ec) noexcept override;
    void lost(error_code why, detail::loss_cause cause) noexcept override;
    void wake() noexcept override { place_.request_bell.interrupt(); }
    bool has_more() noexcept override { return false; }

    error_code begin(const detail::context_factory& make);
    /// Runs the ops with which the context prepares itself, on every lane of its policy.
    void warm_up();
    /// Runs requests that the parent did not send, and returns whether all of them succeeded.
    bool run_here(std::span<const std::span<bound_op>> requests);
    bool take_requests();
    bool obey(std::span<const std::byte> record);
    bool submit(const submit_frame& frame);
    bool load(const load_frame& frame);
    bool run(const run_frame& frame);
    bool import_memory(const import_frame& frame);
    bool export_memory(const export_frame& frame);
    bool release(const any_ref& buffer);
    bool add_plan(const plan_frame& frame);
    void inject(injected_fault f);
    /// Submits a request that was loaded with this result. Returns false for a protocol error.
    bool start(remote_request& r, const error_code& loaded);
    void note_plan_step(const remote_request& r, const error_code& ec);
    /// The rest of the reply follows in `out_`.
    void begin_answer(std::uint64_t id, const error_code& ec);
    void answer(std::uint64_t id, const error_code& ec, const remote_request* with);
    void answer_unsupported(const remote_request& r);
    void send();
    bool flush();
    void show_gauges();
    void show_use() noexcept;
    remote_request& spare();

    worker_endpoints place_;
    worker_setup setup_;
    fault_injector* faults_ = nullptr;
    ring_reader requests_;
    ring_writer replies_;
    received_kernels images_;
    received_plans plans_;
    plan_instances instances_;
    submit_frame frame_;
    load_frame load_;
    run_frame run_;
    std::vector<std::byte> record_;
    encoder out_;
    /// Replies for which the ring had no room.
    std::vector<std::vector<std::byte>> waiting_;
    std::deque<remote_request> requests_made_;
    std::vector<remote_request*> spare_;
    std::uint64_t submitted_ = 0;
    bool unannounced_ = false;
    /// The number of requests of the warm-up that have not ended.
    std::size_t warming_ = 0;
    /// None of them has failed.
    bool warmed_ = true;
    bool corrupted_ = false;
    bool lost_ = false;

    // Last member, because its ops use the requests until it is destroyed.
    std::unique_ptr<detail::context> context_;
};

} // namespace coaccel::worker

#endif
