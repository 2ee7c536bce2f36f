#ifndef COACCEL_TEST_UNIT_WORKER_WIRE_RECORDS_HPP
#define COACCEL_TEST_UNIT_WORKER_WIRE_RECORDS_HPP

#include "buffer_ref.hpp"
#include "mutator.hpp"
#include "served.hpp"
#include "support/op_frames.hpp"
#include "support/plan_records.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <sys/mman.h>
#include <vector>

// Valid records for a worker, from which tests make invalid ones.
namespace test {

/// Between inaccessible pages. Never freed, because a context that hangs may use it longer than its test.
inline std::span<std::byte> guarded_staging()
{
    constexpr std::size_t page = 4096, size = 16 * page;
    static std::byte* const base = [] {
        void* const all = ::mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(all != MAP_FAILED);
        auto* const inner = static_cast<std::byte*>(all) + page;
        REQUIRE(::mprotect(inner, size, PROT_READ | PROT_WRITE) == 0);
        return inner;
    }();
    return {base, size};
}

inline coaccel::worker::op_frame transfer(coaccel::worker::op_kind what, const coaccel::any_ref& ref)
{
    return transfer(what, ref, 256, ref.size);
}

inline constexpr std::uint64_t kernel_number = 5;

inline bytes image_record()
{
    coaccel::worker::encoder out;
    coaccel::worker::image_frame f;
    f.id = kernel_number;
    f.name = "scale";
    f.symbol = "_Z5scalePKfPff";
    const bytes code(64, std::byte{1});
    f.total = code.size();
    f.part = code;
    coaccel::worker::put_image(out, f);
    return {out.record().begin(), out.record().end()};
}

inline bytes launch_record(const coaccel::any_ref& a, const coaccel::any_ref& b)
{
    using launch = coaccel::jit::launch_op<coaccel::in<float>, coaccel::out<float>, float>;
    launch op({}, {{2}, {3}}, coaccel::in<float>(coaccel::ref<float>::from_raw(a)),
              coaccel::out<float>(coaccel::ref<float>::from_raw(b)), 1.5f);
    bytes data(sizeof(op));
    std::memcpy(data.data(), &op, sizeof(op));
    std::memcpy(data.data(), &kernel_number, sizeof(kernel_number));
    coaccel::worker::op_frame f;
    f.what = coaccel::worker::op_kind::launch;
    f.id = coaccel::jit::launch_op_id;
    f.data = data;
    f.operands = coaccel::info_of<launch>().operands;
    return submission({f});
}

inline const coaccel::any_ref instance_memory =
    buffer_ref(context_driver::device, 2, small_plan_instance, coaccel::dtype::u8);
inline const coaccel::any_ref instance_constant =
    buffer_ref(context_driver::device, 3, small_plan_constant, coaccel::dtype::u8);

/// Records after which a worker has two buffers of floats and a loaded plan.
inline std::vector<bytes> opening()
{
    std::vector<bytes> all{adopt_record()};
    all.push_back(submission({allocation(64)}));
    all.push_back(submission({allocation(64)}));
    all.push_back(submission({allocation(instance_memory.size, coaccel::dtype::u8)}));
    all.push_back(submission({allocation(instance_constant.size, coaccel::dtype::u8)}));
    all.push_back(plan_record(*small_plan()));
    all.push_back(load_record(1, {instance_memory, instance_constant}));
    return all;
}

/// Requests about the plan of opening().
inline std::vector<bytes> plan_requests()
{
    coaccel::worker::encoder out;
    out.put(coaccel::worker::message_type::release);
    out.put_ref(instance_constant);
    const bytes release(out.record().begin(), out.record().end());
    return {run_record(1, instance_memory), run_record(1, instance_memory), run_record(2, instance_memory),
            unload_record(2), release};
}

/// Requests of every message type that is sent to the worker.
inline std::vector<bytes> valid_requests()
{
    constexpr auto device = context_driver::device;
    const coaccel::any_ref here = buffer_ref(coaccel::worker::made_here, 0, 64);
    const auto made = coaccel::ref<float>::from_raw(here);
    const coaccel::any_ref first = buffer_ref(device, 0, 64), second = buffer_ref(device, 1, 64);
    const auto x = coaccel::ref<float>::from_raw(first), y = coaccel::ref<float>::from_raw(second);
    std::vector<bytes> all;
    all.push_back(adopt_record());
    all.push_back(submission({allocation(64)}));
    all.push_back(submission({allocation(64), plain(coaccel::memory::fill<float>{made, 1})}));
    all.push_back(submission({allocation(64), transfer(coaccel::worker::op_kind::write, here)}));
    all.push_back(submission({allocation(64), transfer(coaccel::worker::op_kind::write, here),
                              transfer(coaccel::worker::op_kind::read, here)}));
    all.push_back(submission({transfer(coaccel::worker::op_kind::write, first)}));
    all.push_back(submission({transfer(coaccel::worker::op_kind::read, second)}));
    all.push_back(submission({plain(coaccel::memory::fill<float>{x, 2})}));
    all.push_back(submission({plain(coaccel::memory::copy<float>{x, y})}));
    all.push_back(submission({plain(coaccel::memory::trim{})}));
    all.push_back(submission({plain(coaccel::blas::gemm<float>{
        .a = x.subspan(0, 16), .b = x.subspan(16, 16), .c = y.subspan(0, 16), .m = 4, .n = 4, .k = 4})}));
    all.push_back(submission({plain(coaccel::blas::dot<float>{.x = x, .y = y, .n = 64})}));
    all.push_back(image_record());
    all.push_back(launch_record(first, second));
    coaccel::worker::encoder out;
    out.put(coaccel::worker::message_type::release);
    out.put_ref(second);
    all.emplace_back(out.record().begin(), out.record().end());
    out.clear();
    coaccel::worker::put_export(out, {.head = {}, .buffer = buffer_ref(device, 0, 64, coaccel::dtype::u8)});
    all.emplace_back(out.record().begin(), out.record().end());
    for (const bytes& r : plan_requests())
        all.push_back(r);
    return all;
}

/// Every valid record, including those that are valid only once.
inline std::vector<bytes> every_record()
{
    auto all = valid_requests();
    coaccel::worker::encoder out;
    coaccel::worker::put_import(out, {.head = {}, .buffer = {.count = 4096}});
    all.emplace_back(out.record().begin(), out.record().end());
    const auto plan = small_plan();
    for (const bytes& r : opening())
        all.push_back(r);
    for (const bytes& r : {plan_record(*plan, 0, 50), plan_record(*plan, 50), unload_record(1),
                           load_record(2, {instance_memory, instance_constant}), forget_plan_record()})
        all.push_back(r);
    return all;
}

} // namespace test

#endif
