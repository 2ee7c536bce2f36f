#ifndef COACCEL_CORE_DETAIL_REQUEST_HPP
#define COACCEL_CORE_DETAIL_REQUEST_HPP

#include <coaccel/core/detail/async_op.hpp>
#include <coaccel/core/detail/mpsc_inbox.hpp>
#include <coaccel/core/exec_options.hpp>
#include <coaccel/core/op.hpp>

#include <boost/asio/error.hpp>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace coaccel::detail {

using set_hook = boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>,
                                                   boost::intrusive::optimize_size<true>>;
using list_hook = boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>>;

/// The kinds of calls of a device.
enum class request_kind : std::uint8_t {
    exec,
    start,
    stats,
    shutdown,
    replace,
    revive,
    pinned,
    compile,
    load,
    unload,
    revive_plan,
    durable,
    trust,
    part, ///< A step of loading or unloading a plan. The device makes it itself.
};

class graph_call;
class instance_pool;

/// Names a kind of request in the statistics.
struct request_title {
    std::string text;
    /// Distinguishes it from the ids of ops and from other titles.
    std::uint64_t key = 0;
};

/// Why the caller no longer waits for a started request.
enum class given_up : std::uint8_t { no, cancelled, expired };

inline error_code error_of(given_up how) noexcept
{
    return how == given_up::expired ? make_error_code(errc::deadline_exceeded)
                                    : error_code(asio::error::operation_aborted);
}

/// Whether a request was on a context that died, and is to run alone on the next one. In the order in which requests
/// run then.
enum class suspicion : std::uint8_t {
    suspect, ///< One of those that were on it.
    prime,   ///< It took longer than usual, so the others go first.
    none,    ///< No suspect.
};

/// A pending call of a device: its ops and options, with the type of its handler erased.
///
/// The device owns it from submission until it is completed exactly once, or destroyed because the execution context is
/// destroyed.
class request : public inbox_node, public async_op_base {
public:
    explicit request(request_kind k = request_kind::exec) noexcept : inbox_node(inbox_node::kind::request), call(k) {}

    /// Called before op i is bound, so that it can refer to memory that an earlier op of the request allocated. Called
    /// again when the request is run again.
    virtual void prepare(std::size_t) noexcept {}

    const request_kind call;
    /// Whether the device accesses memory that the caller may release once the handler is called.
    bool uses_callers_memory = true;
    std::span<bound_op> ops;
    exec_options options;
    /// Host bytes this request moves; admission counts them.
    std::uint64_t bytes = 0;
    /// Zero when the handler has no cancellation slot.
    std::uint64_t cancel_id = 0;
    /// For the run of a plan: the part of `bytes` that moves to the host.
    std::uint64_t bytes_to_host = 0;
    /// Null: its ops name it.
    const request_title* title = nullptr;
    /// For the run of a plan: the instances of the plan. Null for other requests.
    instance_pool* pool = nullptr;
    /// For the run of a graph: itself. Null for other requests.
    graph_call* graph = nullptr;

    // Used by the device and its context while they own the request.
    set_hook by_deadline;
    set_hook by_sequence;
    set_hook by_id;
    list_hook in_flight;
    std::chrono::steady_clock::time_point arrived{};
    std::chrono::steady_clock::time_point launched{};
    /// When its context detected its end.
    std::chrono::steady_clock::time_point ended{};
    /// Its number in the device's order of arrival.
    std::uint64_t sequence = 0;
    error_code outcome;
    /// Unless `no`, the handler was or will be called with this error instead of the outcome.
    detail::given_up given_up = detail::given_up::no;
    bool queued = false;
    /// It waits in its pool for an instance.
    bool parked = false;
    /// Unless it is parked: the index of its instance.
    std::uint32_t instance = 0;
    /// The handler was detached, and completes without this request.
    bool answered = false;
    detail::suspicion suspicion = detail::suspicion::none;
    /// How many contexts have died while it was on them.
    std::uint8_t losses = 0;
    /// The device has replaced refs of durable buffers in its ops by those of the context.
    bool uses_durable = false;
    /// It overwrites a whole durable buffer, so it may start although the buffer is suspect.
    bool overwrites_durable = false;
    /// Its device has moved to the standby once because it took long.
    bool was_overdue = false;

protected:
    ~request() = default;
};

} // namespace coaccel::detail

#endif
