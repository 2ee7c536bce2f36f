#include "host/ops/libraries.hpp"
#include "plugin/plugins.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>
#include <coaccel/ops/plugin.hpp>

namespace coaccel::host {
namespace {

constexpr native_stream here{"host", nullptr};

} // namespace

void add_user(op_table& table)
{
    table.add(detail::user_op_id, {.run = [](bound_op& o) noexcept {
                  const auto& op = o.as<detail::user_op>();
                  op.call(op.object, o, here);
              }});
    table.add(plugin::call_op_id, {.run = [](bound_op& o) noexcept { o.status = plugin::run(o, here); }});
}

} // namespace coaccel::host
