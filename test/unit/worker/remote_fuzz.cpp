#include "buffer_ref.hpp"
#include "fake_worker.hpp"
#include "large_run.hpp"
#include "mutator.hpp"
#include "support/plan_context.hpp"
#include "support/plan_records.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <optional>

namespace test_worker_remote_fuzz {

// Mutated records for the parent. A failure message contains the seed, which reproduces the records.
namespace {

using namespace coaccel;
using namespace coaccel::worker;
using test::buffer_ref;
using test::bytes;
using test::context_driver;
using test::exec;
using test::fuzz_time;
using test::generator;
using test::mutated;
using clock_type = std::chrono::steady_clock;

/// The correct reply to a submission; empty for other records.
bytes right_answer(const bytes& record)
{
    decoder in(record);
    message_type what{};
    submit_frame frame;
    load_frame load;
    run_frame run;
    if (!in.get(what, message_type::adopt, message_type::export_memory))
        return {};
    encoder out;
    if (what == message_type::load || what == message_type::run) {
        const bool is_load = what == message_type::load;
        REQUIRE((is_load ? get_load(in, load) : get_run(in, run)));
        out.put(message_type::ended);
        out.put(is_load ? load.head.id : run.head.id);
        out.put_error({});
        if (is_load)
            out.put(std::uint8_t(1));
        return {out.record().begin(), out.record().end()};
    }
    if (what != message_type::submit || !get_submit(in, frame))
        return {};
    out.put(message_type::ended);
    out.put(frame.id);
    out.put_error({});
    for (std::size_t i = 0; i < frame.size; ++i) {
        const bytes reply(frame.ops[i].what == op_kind::plain ? frame.ops[i].reply_size : 0);
        if (frame.ops[i].what == op_kind::allocate)
            out.put_ref(buffer_ref(context_driver::device, 9, frame.ops[i].count, frame.ops[i].type));
        out.put_bytes(reply);
    }
    return {out.record().begin(), out.record().end()};
}

struct everything {
    everything()
    {
        fill.emplace(memory::fill<float>{x, 1}, exec_options{});
        dot.emplace(blas::dot<float>{.x = x.first(8), .y = y.first(8), .n = 8}, exec_options{});
        small_write.emplace(detail::write_op<float>{x.first(100), data.data(), 100}, exec_options{});
        small_read.emplace(detail::read_op<float>{x.first(100), few.data(), 100}, exec_options{});
        large_write.emplace(detail::write_op<float>{x, data.data(), data.size()}, exec_options{});
        large_read.emplace(detail::read_op<float>{y, other.data(), other.size()}, exec_options{});
        iamax.emplace(blas::iamax<float>{.x = x.first(8), .n = 8}, exec_options{});
        behind.emplace(memory::fill<float>{x, 1}, exec_options{});
        detail::plan_run_op op;
        op.memory = ref<std::uint8_t>::from_raw(memory);
        op.instance = op.chain = 1;
        op.inputs = &input;
        op.outputs = &output;
        op.input_count = op.output_count = 1;
        run.emplace(op, exec_options{});
        unload.emplace(detail::plan_unload_op{.instance = 1, .chain = 1}, exec_options{});
        all = {&*fill, &*dot,         &*iamax,      &made,    &*small_write, &*small_read, &load,
               &*run,  &*large_write, &*large_read, &*behind, &big,          &*unload};
    }

    std::vector<float> data = std::vector<float>(100000);
    std::vector<float> other = std::vector<float>(100000);
    std::vector<float> few = std::vector<float>(100);
    const ref<float> x = ref<float>::from_raw(buffer_ref(context_driver::device, 1, data.size()));
    const ref<float> y = ref<float>::from_raw(buffer_ref(context_driver::device, 2, data.size()));
    const any_ref memory = buffer_ref(context_driver::device, 3, 600'000, dtype::u8);
    const any_ref constant = buffer_ref(context_driver::device, 4, test::small_plan_constant, dtype::u8);
    const std::shared_ptr<const detail::plan_data> plan = test::small_plan();
    test::load_request load{{.instance = 1, .chain = 1, .plan = plan.get()}, {memory, constant}};
    test::large_run big{1, 1, memory, 300'000};
    std::byte x_bytes[16]{}, y_bytes[16]{};
    detail::run_argument input{x_bytes, {0, 16}}, output{y_bytes, {256, 16}};
    std::optional<exec<detail::plan_run_op>> run;
    std::optional<exec<detail::plan_unload_op>> unload;
    test::allocate_request made{64};
    std::optional<exec<memory::fill<float>>> fill, behind;
    std::optional<exec<blas::dot<float>>> dot;
    std::optional<exec<blas::iamax<float>>> iamax;
    std::optional<exec<detail::write_op<float>>> small_write, large_write;
    std::optional<exec<detail::read_op<float>>> small_read, large_read;
    std::vector<detail::request*> all;
};

// A worker writes at any time, which is a data race only because it is simulated in this process.
__attribute__((no_sanitize("thread"))) void scribble(void* memory, std::uint64_t what)
{
    auto* at = static_cast<volatile std::uint8_t*>(memory);
    for (int i = 0; i < 64; ++i)
        at[i] = static_cast<std::uint8_t>(what);
}

} // namespace

TEST_SUITE_BEGIN("wire_fuzz");

TEST_CASE("with a worker that writes garbage every request ends once and the staging memory is released")
{
    const auto end = clock_type::now() + fuzz_time(4);
    std::uint64_t rounds = 0, lost = 0, good = 0, bad = 0;
    for (std::uint64_t seed = 1; clock_type::now() < end; ++seed, ++rounds) {
        INFO("seed ", seed);
        generator random(seed);
        everything requests;
        test::remote_world world({.staging_bytes = std::uint64_t(1) << 20});
        context_driver driver(world);
        auto& worker = world.worker;
        test::make_buffers(driver, worker, {requests.x.raw(), requests.y.raw(), requests.memory, requests.constant});
        std::vector<bytes> said(1, bytes(16, std::byte{7}));
        std::size_t submitted = 0;
        const auto odds = std::uint64_t(2) << random() % 14;
        const auto step = [&] {
            if (submitted < requests.all.size() && random() % 2)
                driver.submit(*requests.all[submitted++]);
            bytes record;
            const auto got = worker.requests.read(record);
            bytes answer;
            if (got && got.value())
                answer = right_answer(record);
            if (!answer.empty())
                said.push_back(answer);
            if (random() % odds == 0)
                answer = mutated(said[random() % said.size()], random, said);
            if (random() % (odds * 20) == 0)
                worker.block->replies.written = random();
            if (random() % (odds * 20) == 0)
                worker.block->requests.taken = random() & ~std::uint64_t(7);
            if (random() % 50 == 0)
                scribble(world.memory->at(random() % 4096), random());
            if (!answer.empty())
                (void)worker.replies.write(answer);
            return driver.losses > 0 || driver.ended.size() == requests.all.size();
        };
        driver.run_until(step);
        lost += static_cast<std::uint64_t>(driver.losses);
        for (; submitted < requests.all.size(); ++submitted)
            driver.submit(*requests.all[submitted]);
        driver.run_until([&] { return driver.ended.size() == requests.all.size(); });
        for (auto& [request, codes] : driver.ended) {
            REQUIRE(codes.size() == 1);
            ++(codes[0] ? bad : good);
            for (const bound_op& o : request->ops)
                REQUIRE((codes[0] || !o.info->accepts || o.info->accepts(o.op, o.reply)));
        }
        REQUIRE(driver.losses <= 1);
        REQUIRE((driver.losses == 0 || driver.reason));
        driver.context.reset();
        REQUIRE(world.memory->take(world.memory->bytes()));
    }
    MESSAGE("rounds ", rounds, ", lost ", lost, ", good ", good, ", bad ", bad);
    CHECK(lost > 0);
    CHECK(good > 0);
    CHECK(bad > 0);
}

TEST_SUITE_END();

} // namespace test_worker_remote_fuzz
