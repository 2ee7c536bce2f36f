#ifndef COACCEL_TEST_SUPPORT_PLAN_RECORDS_HPP
#define COACCEL_TEST_SUPPORT_PLAN_RECORDS_HPP

#include "support/op_frames.hpp"
#include "worker/protocol/plan_codec.hpp"
#include "worker/protocol/plan_frames.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/detail/plan_ops.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <algorithm>
#include <memory>
#include <vector>

// Records about plans that a parent process sends to its worker.
namespace test {

inline std::vector<std::byte> encoded(const coaccel::detail::plan_data& p)
{
    coaccel::worker::encoder out;
    coaccel::worker::encode_plan(out, p);
    return {out.record().begin(), out.record().end()};
}

/// y = c + 2 x, with four elements each. A load has two operands: the instance and the constant.
inline std::shared_ptr<const coaccel::detail::plan_data> small_plan()
{
    coaccel::plan_builder b("small");
    const auto x = b.input<float>(4);
    const auto c = b.constant<float>(std::vector<float>(4, 1));
    const auto y = b.output<float>(4);
    b.add(coaccel::memory::copy<float>{c, y});
    b.add(coaccel::blas::axpy<float>{.x = x, .y = y, .n = 4, .alpha = 2});
    return coaccel::detail::plan_access::data(b.finish().value());
}

/// The sizes of the buffers of small_plan.
inline constexpr std::uint64_t small_plan_instance = 512;
inline constexpr std::uint64_t small_plan_constant = 16;

inline constexpr std::uint64_t plan_number = 3;
inline constexpr std::uint64_t plan_chain = 2;

/// A part of the encoded plan, to its end unless `size` is less.
inline std::vector<std::byte> plan_record(const coaccel::detail::plan_data& p, std::size_t offset = 0,
                                          std::size_t size = std::size_t(-1))
{
    const auto bytes = encoded(p);
    const auto part = std::span(bytes).subspan(offset, std::min(size, bytes.size() - offset));
    coaccel::worker::encoder out;
    coaccel::worker::put_plan(out, {.number = plan_number, .total = bytes.size(), .offset = offset, .part = part});
    return {out.record().begin(), out.record().end()};
}

inline std::vector<std::byte> load_record(std::uint64_t instance, const std::vector<coaccel::any_ref>& refs)
{
    coaccel::worker::encoder out;
    coaccel::worker::load_frame f;
    f.head.id = 78;
    f.plan = plan_number;
    f.instance = instance;
    f.chain = plan_chain;
    f.refs = refs;
    coaccel::worker::put_load(out, f);
    return {out.record().begin(), out.record().end()};
}

/// A run of small_plan.
inline std::vector<std::byte> run_record(std::uint64_t instance, const coaccel::any_ref& memory)
{
    const auto plan = small_plan();
    coaccel::worker::encoder out;
    coaccel::worker::run_frame f;
    f.head.id = 79;
    f.memory = memory;
    f.instance = instance;
    f.chain = plan_chain;
    f.inputs = {{plan->staged_inputs, 256}};
    f.outputs = {{plan->staged_outputs, 1024}};
    coaccel::worker::put_run(out, f);
    return {out.record().begin(), out.record().end()};
}

inline std::vector<std::byte> unload_record(std::uint64_t instance)
{
    const coaccel::detail::plan_unload_op op{.instance = instance, .chain = plan_chain};
    return submission({plain(op)});
}

inline std::vector<std::byte> forget_plan_record()
{
    coaccel::worker::encoder out;
    out.put(coaccel::worker::message_type::forget_plan);
    out.put(plan_number);
    return {out.record().begin(), out.record().end()};
}

} // namespace test

#endif
