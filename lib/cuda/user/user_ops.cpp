#include "cuda/backend.hpp"
#include "cuda/op_libraries.hpp"
#include "plugin/plugins.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/plugin.hpp>

namespace coaccel::cuda {
namespace {

error_code call_user(backend& b, stream_state& s, bound_op& o)
{
    const auto& op = o.as<detail::user_op>();
    op.call(op.object, o, native_stream{"cuda", s.native});
    b.make_current();
    return {};
}

error_code call_plugin(backend& b, stream_state& s, bound_op& o)
{
    const auto ec = plugin::run(o, {"cuda", s.native});
    b.make_current();
    return ec;
}

void add_user_ops(op_table& table)
{
    table.add(detail::user_op_id, {.enqueue = call_user});
    table.add(plugin::call_op_id, {.enqueue = call_plugin});
}

} // namespace

const op_library user_ops{.add_ops = add_user_ops};

} // namespace coaccel::cuda
