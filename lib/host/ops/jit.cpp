#include "host/ops/libraries.hpp"
#include "jit/registry.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>

#include <algorithm>
#include <array>
#include <thread>

namespace coaccel::host {
namespace {

error_code no_host_function(const jit::launch_head& head) noexcept
{
    const auto image = jit::find_image(head.kernel);
    return detail::op_error(errc::unsupported_op, "jit.launch",
                            {"the kernel ", image ? std::string_view(image->name) : "",
                             " has no host function, and this device is the CPU; give it one with "
                             "compile_options::host, or use a GPU"});
}

error_code launch(bound_op& o) noexcept
{
    const auto& head = o.as<jit::launch_head>();
    // Not looked up through the kernel, which may no longer exist.
    const auto host = jit::find_host_function(head.host);
    if (!host)
        return no_host_function(head);
    std::array<void*, jit::max_arguments> arguments{};
    auto* base = const_cast<char*>(static_cast<const char*>(o.op));
    for (std::uint32_t i = 0; i < head.count; ++i) {
        const auto& a = head.arguments()[i];
        const bool is_operand = a.operand != jit::launch_argument::no_operand;
        arguments[i] = is_operand ? static_cast<void*>(&o.operands[a.operand]) : base + a.offset;
    }
    return host.invoke(host.function, head.shape, arguments.data());
}

struct jit_ops {
    static jit::occupancy_info run(const jit::occupancy_op&, const bound_op&)
    {
        return {1, std::max(1, static_cast<int>(std::thread::hardware_concurrency())), 1};
    }
};

} // namespace

void add_jit(op_table& table)
{
    table.add(jit::launch_op_id, {.run = [](bound_op& o) noexcept { o.status = launch(o); }});
    add_ops<jit_ops>(table, type_list<jit::occupancy_op>{});
}

} // namespace coaccel::host
