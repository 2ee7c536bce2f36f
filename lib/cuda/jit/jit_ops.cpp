#include "cuda/backend.hpp"
#include "cuda/op_libraries.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>

#include <array>
#include <utility>

namespace coaccel::cuda {
namespace {

// Null while the kernel is being loaded.
result<loaded_kernel*> ready_kernel(backend& b, bound_op& o, std::uint64_t id)
{
    if (!o.state) {
        BOOST_OUTCOME_TRY(auto* acquired, b.modules().acquire(id));
        o.state = acquired;
    }
    auto* k = static_cast<loaded_kernel*>(o.state);
    switch (k->where.load(std::memory_order_acquire)) {
    case loaded_kernel::stage::loading: return nullptr;
    case loaded_kernel::stage::ready: return k;
    default: return k->error;
    }
}

error_code check_parameters(const loaded_kernel& k, const jit::launch_head& head)
{
    if (k.parameters.size() > jit::max_arguments)
        return make_error_with_message(errc::argument_mismatch,
                                       k.name + ": the kernel takes " + std::to_string(k.parameters.size()) +
                                           " arguments, a launch has at most " + std::to_string(jit::max_arguments));
    if (k.parameters.size() != head.count)
        return make_error_with_message(errc::argument_mismatch, k.name + ": the kernel takes " +
                                                                    std::to_string(k.parameters.size()) +
                                                                    " arguments, given " + std::to_string(head.count));
    for (std::uint32_t i = 0; i < head.count; ++i)
        if (const std::size_t given = head.arguments()[i].type.size; given != k.parameters[i])
            return make_error_with_message(errc::argument_mismatch, k.name + ": argument " + std::to_string(i + 1) +
                                                                        " has " + std::to_string(k.parameters[i]) +
                                                                        " bytes, given " + std::to_string(given));
    return {};
}

error_code allow_shared_memory(backend& b, loaded_kernel& k, std::uint32_t bytes)
{
    const int wanted = static_cast<int>(bytes);
    if (wanted + k.static_shared_bytes <= k.dynamic_shared_bytes)
        return {};
    if (auto ec =
            b.check(b.api().cuFuncSetAttribute(k.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wanted)))
        return ec;
    k.dynamic_shared_bytes = wanted + k.static_shared_bytes;
    return {};
}

result<readiness> prepare_launch(backend& b, stream_state&, bound_op& o)
{
    const auto& head = o.as<jit::launch_head>();
    BOOST_OUTCOME_TRY(auto* k, ready_kernel(b, o, head.kernel));
    if (!k)
        return readiness::pending;
    if (auto ec = check_parameters(*k, head))
        return ec;
    if (auto ec = k->check(head.shape))
        return ec;
    if (auto ec = allow_shared_memory(b, *k, head.shape.shared_bytes))
        return ec;
    return readiness::ready;
}

using argument_addresses = std::array<void*, jit::max_arguments>;

argument_addresses arguments_of(const bound_op& o) noexcept
{
    const auto& head = o.as<jit::launch_head>();
    argument_addresses made;
    auto* base = const_cast<char*>(static_cast<const char*>(o.op));
    for (std::uint32_t i = 0; i < head.count; ++i) {
        const auto& a = head.arguments()[i];
        const bool is_operand = a.operand != jit::launch_argument::no_operand;
        made[i] = is_operand ? static_cast<void*>(&o.operands[a.operand]) : base + a.offset;
    }
    return made;
}

error_code launch(backend& b, stream_state& s, bound_op& o)
{
    const auto* k = static_cast<const loaded_kernel*>(o.state);
    auto arguments = arguments_of(o);
    const auto& [grid, block, shared] = o.as<jit::launch_head>().shape;
    return b.check(b.api().cuLaunchKernel(k->function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
                                          s.native, arguments.data(), nullptr));
}

error_code update(backend& b, CUgraphExec graph, CUgraphNode node, bound_op& o)
{
    auto arguments = arguments_of(o);
    const auto& [grid, block, shared] = o.as<jit::launch_head>().shape;
    CUDA_KERNEL_NODE_PARAMS values{};
    values.func = static_cast<const loaded_kernel*>(o.state)->function;
    values.gridDimX = grid.x;
    values.gridDimY = grid.y;
    values.gridDimZ = grid.z;
    values.blockDimX = block.x;
    values.blockDimY = block.y;
    values.blockDimZ = block.z;
    values.sharedMemBytes = shared;
    values.kernelParams = arguments.data();
    return b.check(b.api().cuGraphExecKernelNodeSetParams(graph, node, &values));
}

result<readiness> prepare_occupancy(backend& b, stream_state&, bound_op& o)
{
    const auto& op = o.as<jit::occupancy_op>();
    BOOST_OUTCOME_TRY(auto* k, ready_kernel(b, o, op.kernel));
    if (!k)
        return readiness::pending;
    if (auto ec = k->check({.shared_bytes = op.shared_bytes}))
        return ec;
    if (auto ec = allow_shared_memory(b, *k, op.shared_bytes))
        return ec;
    return readiness::ready;
}

error_code ask_occupancy(backend& b, stream_state&, bound_op& o)
{
    const auto& op = o.as<jit::occupancy_op>();
    const auto* k = static_cast<const loaded_kernel*>(o.state);
    jit::occupancy_info found;
    if (auto ec = b.check(b.api().cuOccupancyMaxPotentialBlockSize(&found.min_grid_size, &found.block_size, k->function,
                                                                   nullptr, op.shared_bytes, 0)))
        return ec;
    if (auto ec = b.check(b.api().cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &found.blocks_per_multiprocessor, k->function, found.block_size, op.shared_bytes)))
        return ec;
    *static_cast<jit::occupancy_info*>(o.reply) = found;
    return {};
}

error_code finish(backend& b, bound_op& o) noexcept
{
    if (o.state)
        b.modules().release(*static_cast<loaded_kernel*>(std::exchange(o.state, nullptr)));
    return o.status;
}

void add_jit_ops(op_table& table)
{
    table.add(jit::launch_op_id, {.prepare = prepare_launch, .enqueue = launch, .finish = finish, .update = update});
    table.add<jit::occupancy_op>({.prepare = prepare_occupancy, .enqueue = ask_occupancy, .finish = finish});
}

} // namespace

const op_library jit_ops{.add_ops = add_jit_ops};

} // namespace coaccel::cuda
