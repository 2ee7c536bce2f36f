#ifndef COACCEL_WORKER_CHILD_SERVER_HPP
#define COACCEL_WORKER_CHILD_SERVER_HPP

#include "context/context.hpp"
#include "worker/child/remote_request.hpp"
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
    void lost(error_code why) noexcept override;
    void wake() noexcept override { place_.request_bell.interrupt(); }
    bool has_more() noexcept override { return false; }

    error_code begin(const detail::context_factory& make);
    /// Runs the ops with which the context prepares itself.
    void warm_up();
    /// Runs an op that the parent did not send.
    void run_here(bound_op op);
    bool take_requests();
    bool obey(std::span<const std::byte> record);
    bool submit(const submit_frame& frame);
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
    submit_frame frame_;
    std::vector<std::byte> record_;
    encoder out_;
    /// Replies for which the ring had no room.
    std::vector<std::vector<std::byte>> waiting_;
    std::deque<remote_request> requests_made_;
    std::vector<remote_request*> spare_;
    std::uint64_t submitted_ = 0;
    bool unannounced_ = false;
    bool warming_ = false;
    bool corrupted_ = false;
    bool lost_ = false;

    // Last member, because its ops use the requests until it is destroyed.
    std::unique_ptr<detail::context> context_;
};

} // namespace coaccel::worker

#endif
