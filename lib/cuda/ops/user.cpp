#include "cuda/backend.hpp"
#include "plugin/plugins.hpp"

#include <coaccel/detail/transfer_ops.hpp>
#include <coaccel/ops/plugin_call.hpp>

namespace coaccel::cuda {
namespace {

result<progress> call_user(backend&, stream_state& s, bound_op& o)
{
    const auto& op = o.as<detail::user_op>();
    op.call(op.object, o, native_stream{"cuda", s.native});
    return progress::passed;
}

// What a function had put on the stream before it failed is waited for all the same.
result<progress> call_plugin(backend&, stream_state& s, bound_op& o)
{
    o.status = plugin::run(o, {"cuda", s.native});
    return progress::passed;
}

} // namespace

void add_user_ops(op_table& table)
{
    table.add(detail::user_op_id, {call_user});
    table.add(plugin::call_op_id, {call_plugin});
}

} // namespace coaccel::cuda
