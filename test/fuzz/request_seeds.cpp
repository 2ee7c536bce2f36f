#include "input.hpp"
#include "seeds.hpp"
#include "support/op_frames.hpp"
#include "support/plan_records.hpp"
#include "worker/child/remote_request.hpp"
#include "worker/protocol/memory_frames.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>

#include <algorithm>

namespace fuzz {

using namespace coaccel;
using namespace coaccel::worker;
using test::plain;
using test::submission;

namespace {

constexpr std::uint64_t kernel_number = 5;
constexpr std::uint64_t elements = 64;

bytes copy_of(const encoder& out)
{
    return {out.record().begin(), out.record().end()};
}

op_frame allocation(dtype type = dtype::f32)
{
    return test::allocation(elements, type);
}

op_frame transfer(op_kind what, const any_ref& ref, std::uint64_t offset = 256)
{
    return test::transfer(what, ref, offset, ref.size);
}

template <class Op>
bytes run(const Op& op)
{
    return submission({plain(op)});
}

/// A launch or a call; `first` replaces the first bytes where they name a kernel.
template <class Op>
bytes packed(const Op& op, std::span<const std::byte> first = {})
{
    bytes data(sizeof(op));
    std::memcpy(data.data(), &op, sizeof(op));
    std::ranges::copy(first, data.begin());
    op_frame f;
    f.what = op_kind::launch;
    f.id = info_of<Op>().id;
    f.data = data;
    f.operands = info_of<Op>().operands;
    return submission({f});
}

bytes image(std::uint64_t id, std::uint64_t total, std::uint64_t offset, std::size_t size)
{
    const bytes code(size, std::byte{1});
    image_frame f;
    f.id = id;
    f.name = "scale";
    f.symbol = "_Z5scalePKfPff";
    f.total = total;
    f.offset = offset;
    f.part = code;
    encoder out;
    put_image(out, f);
    return copy_of(out);
}

bytes adoption()
{
    encoder out;
    out.put(message_type::adopt);
    out.put(device);
    out.put(generation);
    return copy_of(out);
}

bytes release(const any_ref& ref)
{
    encoder out;
    out.put(message_type::release);
    out.put_ref(ref);
    return copy_of(out);
}

bytes exportable(std::uint64_t size)
{
    op_frame f = test::allocation(size, dtype::u8);
    f.kind = memory_kind::exportable;
    return submission({f});
}

bytes export_of(const any_ref& ref)
{
    encoder out;
    put_export(out, {.head = {9, {}, injected_fault::none}, .buffer = ref});
    return copy_of(out);
}

bytes import_without_descriptor()
{
    encoder out;
    put_import(out, {.head = {9, {}, injected_fault::none}, .buffer = {.count = 4096}});
    return copy_of(out);
}

/// An op with functions and addresses of this process, which no worker may run.
bytes user_call(op_kind what)
{
    static const std::byte data[sizeof(detail::user_op)]{};
    op_frame f;
    f.what = what;
    f.id = detail::user_op_id;
    f.data = data;
    return submission({f});
}

std::vector<std::vector<bytes>> conversations()
{
    const any_ref first = buffer(0, elements), second = buffer(1, elements), doubles = buffer(2, elements, dtype::f64);
    const any_ref here{.device = made_here, .slot = 0, .size = elements, .type = dtype::f32};
    const auto x = ref<float>::from_raw(first), y = ref<float>::from_raw(second), made = ref<float>::from_raw(here);
    const auto part = [&](std::uint64_t at) { return x.subspan(at, 16); };
    const auto raw = std::as_bytes(std::span(&kernel_number, 1));
    const bytes code = image(kernel_number, 64, 0, 64);
    const auto last = staging_size - elements * sizeof(float);
    const jit::launch_shape shape{{2}, {3}};
    // After the buffers of the opening.
    const any_ref memory = buffer(3, test::small_plan_instance, dtype::u8);
    const any_ref constant = buffer(4, test::small_plan_constant, dtype::u8);
    const bytes buffers =
        submission({test::allocation(memory.size, dtype::u8), test::allocation(constant.size, dtype::u8)});
    const auto plan = test::small_plan();
    const bytes load_plan = test::load_record(1, {memory, constant}), run_plan = test::run_record(1, memory);
    using launch = jit::launch_op<in<float>, out<float>, float>;
    struct pair {
        float a;
        std::int64_t b;
    };

    return {
        {submission({allocation(), plain(memory::fill<float>{made, 1})})},
        {submission({allocation(), transfer(op_kind::write, here)})},
        {submission({allocation(), transfer(op_kind::write, here), transfer(op_kind::read, here)})},
        {submission({transfer(op_kind::write, first, last)}), submission({transfer(op_kind::read, second, last)})},
        {submission({transfer(op_kind::write, first)}), submission({transfer(op_kind::read, first)})},
        {run(memory::fill<float>{x, 2}), run(memory::copy<float>{x, y}), submission({transfer(op_kind::read, second)})},
        {run(memory::trim{})},
        {run(blas::gemm<float>{.a = part(0), .b = part(16), .c = y.subspan(0, 16), .m = 4, .n = 4, .k = 4})},
        {run(blas::gemv<float>{.a = part(0), .x = part(16).first(4), .y = y.first(4), .m = 4, .n = 4})},
        {run(blas::dot<float>{.x = x, .y = y, .n = elements})},
        {run(blas::axpy<float>{.x = x, .y = y, .n = elements})},
        {code, packed(launch({}, shape, in<float>(x), out<float>(y), 1.5f), raw)},
        {image(kernel_number, 64, 0, 32), image(kernel_number, 64, 32, 32), run(jit::occupancy_op{kernel_number, 0})},
        {packed(plugin::call("scale", in<float>(x), out<float>(y), 1.5f))},
        {packed(plugin::call("fill_pairs", out<double>(ref<double>::from_raw(doubles)), pair{1, 2}, true))},
        {release(second), run(memory::fill<float>{y, 2})},
        {submission({plain(memory::fill<float>{x, 2})}, injected_fault::poison)},
        {submission({plain(memory::fill<float>{x, 2})}, injected_fault::hang)},
        {buffers, test::plan_record(*plan), load_plan, run_plan, run_plan, test::unload_record(1),
         test::forget_plan_record()},
        {buffers, test::plan_record(*plan, 0, 60), test::plan_record(*plan, 60), load_plan,
         test::load_record(2, {memory, constant}), test::forget_plan_record(), release(constant), run_plan,
         test::run_record(2, memory), test::unload_record(1), test::unload_record(2), run_plan},
        {exportable(4096), export_of(buffer(3, 4096, dtype::u8)), export_of(buffer(3, 4096, dtype::u8)),
         release(buffer(3, 4096, dtype::u8))},
        {export_of(first)},
        {import_without_descriptor()},
        {run(detail::plan_run_op{})},
        {user_call(op_kind::plain)},
        {user_call(op_kind::launch)},
        {run(detail::read_op<float>{.src = x, .dst = nullptr, .count = elements})},
        {run(detail::allocate_op{.count = elements, .type = dtype::f32})},
    };
}

} // namespace

std::vector<bytes> opening()
{
    return {adoption(), submission({allocation()}), submission({allocation()}), submission({allocation(dtype::f64)})};
}

std::vector<script> request_seeds()
{
    const auto add = [](script& s, request_step what) -> script& { return s.put(static_cast<std::uint8_t>(what)); };
    std::vector<script> seeds;
    for (const auto& one : conversations()) {
        script& s = seeds.emplace_back().put(std::uint8_t(opened));
        for (const bytes& record : one)
            add(s, request_step::record).put_record(record);
    }
    script& all = seeds.emplace_back().put(std::uint8_t(standby));
    for (const bytes& record : opening())
        add(all, request_step::record).put_record(record);

    script& odd = seeds.emplace_back().put(std::uint8_t(0));
    add(odd, request_step::scribble).put(std::uint16_t(256)).put_record(adoption());
    add(odd, request_step::idle);
    add(odd, request_step::deaf);
    add(odd, request_step::answers_taken).put(std::uint64_t(64));
    add(odd, request_step::record).put_record(submission({allocation()}));
    add(odd, request_step::position).put(std::uint64_t(4096));
    return seeds;
}

} // namespace fuzz
