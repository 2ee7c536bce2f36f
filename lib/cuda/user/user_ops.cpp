#include "cuda/backend.hpp"
#include "plugin/plugins.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/plugin.hpp>

namespace coaccel::cuda {
namespace {

result<progress> call_user(backend& b, stream_state& s, bound_op& o)
{
    const auto& op = o.as<detail::user_op>();
    op.call(op.object, o, native_stream{"cuda", s.native});
    b.make_current();
    return progress::passed;
}

result<progress> call_plugin(backend& b, stream_state& s, bound_op& o)
{
    const auto ec = plugin::run(o, {"cuda", s.native});
    b.make_current();
    if (ec)
        return ec;
    return progress::passed;
}

} // namespace

void add_user_ops(op_table& table)
{
    table.add(detail::user_op_id, {call_user});
    table.add(plugin::call_op_id, {call_plugin});
}

} // namespace coaccel::cuda
