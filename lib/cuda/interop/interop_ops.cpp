#include "cuda/backend.hpp"
#include "cuda/driver/error.hpp"
#include "cuda/op_libraries.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/ops/interop.hpp>

#include <string>

namespace coaccel::cuda {
namespace {

/// The driver refused an event. Its result can concern the event alone, for example because the event's own context was
/// destroyed; so the state of our context is asked separately.
error_code refused(backend& b, stream_state& s, std::string_view op, CUresult r)
{
    if (auto ec = b.check(b.api().cuStreamQuery(s.native)))
        return ec;
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        return b.check(r);
    return detail::op_error(errc::invalid_argument, op, {"the driver refuses event: ", make_error(r).message()});
}

error_code wait_for(backend& b, stream_state& s, std::string_view op, CUevent e)
{
    // Asked first: to wait for an event of a stream capture would make our stream a part of that capture.
    CUresult r = b.api().cuEventQuery(e);
    if (r == CUDA_ERROR_CAPTURED_EVENT)
        return detail::op_error(errc::invalid_argument, op, {"event was recorded in a stream capture"});
    if (r == CUDA_ERROR_NOT_READY)
        r = b.api().cuStreamWaitEvent(s.native, e, CU_EVENT_WAIT_DEFAULT);
    return r == CUDA_SUCCESS ? error_code() : refused(b, s, op, r);
}

template <element T>
error_code wait_event(backend& b, stream_state& s, bound_op& o)
{
    using op = interop::wait_event<T>;
    return wait_for(b, s, op::name, static_cast<CUevent>(o.as<op>().event));
}

template <element T>
error_code record_event(backend& b, stream_state& s, bound_op& o)
{
    using op = interop::record_event<T>;
    const CUresult r = b.api().cuEventRecord(static_cast<CUevent>(o.as<op>().event), s.native);
    return r == CUDA_SUCCESS ? error_code() : refused(b, s, op::name, r);
}

// Without their descriptions, so that no worker runs them: they contain handles of a process.
template <class... Ts>
void add_interop_ops_for(op_table& table, type_list<Ts...>)
{
    (table.add(info_of<interop::wait_event<Ts>>().id, {.enqueue = wait_event<Ts>}), ...);
    (table.add(info_of<interop::record_event<Ts>>().id, {.enqueue = record_event<Ts>}), ...);
}

void add_interop_ops(op_table& table)
{
    add_interop_ops_for(table, element_types{});
}

} // namespace

const op_library interop_ops{.add_ops = add_interop_ops};

} // namespace coaccel::cuda
