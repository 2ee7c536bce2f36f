#include "support/host_world.hpp"
#include "wire_records.hpp"
#include "worker/child/received_kernels.hpp"
#include "worker/child/remote_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <span>

namespace test_worker_wire_fuzz {

// Mutated records for the worker. A failure message contains the seed, which reproduces the records.
namespace {

using namespace coaccel;
using namespace coaccel::worker;
using test::bytes;
using test::fuzz_time;
using test::generator;
using test::mutated;
using clock_type = std::chrono::steady_clock;

} // namespace

TEST_SUITE_BEGIN("wire_fuzz");

TEST_CASE("a mutated record is decoded to exactly its content or refused")
{
    const auto seeds = test::every_record();
    const auto end = clock_type::now() + fuzz_time(4);
    generator random(1);
    std::uint64_t taken = 0, refused = 0, wrong = 0;
    encoder out;
    while (clock_type::now() < end)
        for (int i = 0; i < 500; ++i) {
            const bytes r = mutated(seeds[random() % seeds.size()], random, seeds);
            const std::span<const std::byte> body = std::span(r).subspan(1);
            out.clear();
            submit_frame submit;
            image_frame image;
            plan_frame plan;
            load_frame load;
            run_frame run;
            import_frame imported;
            export_frame exported;
            hardware_info hardware;
            error_code ec;
            any_ref ref;
            decoder as_plan(body), as_load(body), as_run(body), as_import(body), as_export(body);
            decoder as_submit(body), as_image(body), as_hardware(body), as_error(body), as_ref(body);
            const bool is_submit = get_submit(as_submit, submit);
            if (is_submit) {
                put_submit_head(out, submit.id, submit.how, submit.injected_fault,
                                static_cast<std::uint8_t>(submit.size));
                for (std::size_t n = 0; n < submit.size; ++n)
                    put_op(out, submit.ops[n]);
            } else if (get_image(as_image, image)) {
                put_image(out, image);
            } else if (get_plan(as_plan, plan)) {
                put_plan(out, plan);
            } else if (get_load(as_load, load)) {
                put_load(out, load);
            } else if (get_run(as_run, run)) {
                put_run(out, run);
            } else if (get_import(as_import, imported)) {
                put_import(out, imported);
            } else if (get_export(as_export, exported)) {
                put_export(out, exported);
            }
            const bool same = out.record().empty() || std::ranges::equal(out.record().subspan(1), body);
            wrong += !same;
            ++(out.record().empty() ? refused : taken);
            (void)get_hardware(as_hardware, hardware);
            (void)as_error.get_error(ec);
            (void)as_ref.get_ref(ref);
        }
    MESSAGE("taken ", taken, ", refused ", refused);
    CHECK(wrong == 0);
    CHECK(taken > 0);
    CHECK(refused > 0);
}

TEST_CASE("a request from a mutated record is run or refused by the context")
{
    const auto seeds = test::valid_requests();
    const auto end = clock_type::now() + fuzz_time(4);
    std::uint64_t ran = 0, failed = 0, refused = 0;
    for (std::uint64_t seed = 1; clock_type::now() < end; ++seed) {
        INFO("seed ", seed);
        generator random(seed);
        test::host_world world(host_options{.mode = host_mode::inline_, .memory_limit = std::uint64_t(1) << 20});
        test::context_driver driver(world);
        received_kernels images;
        submit_frame frame;
        remote_request request;
        for (int i = 0; i < 300; ++i) {
            const bytes r = i < static_cast<int>(seeds.size()) ? seeds[static_cast<std::size_t>(i)]
                                                               : mutated(seeds[random() % seeds.size()], random, seeds);
            decoder in{std::span(r).subspan(1)};
            image_frame image;
            if (static_cast<message_type>(r[0]) == message_type::image) {
                if (get_image(in, image))
                    (void)images.add(image);
                continue;
            }
            if (static_cast<message_type>(r[0]) != message_type::submit || !get_submit(in, frame))
                continue;
            const auto ec = request.load(frame, *driver.context, images, test::guarded_staging());
            if (ec) {
                ++refused;
                continue;
            }
            const auto outcome = driver.outcome_of(request);
            ++(outcome ? failed : ran);
            encoder out;
            request.put_replies(out, !outcome);
            for (std::size_t n = 0; n < frame.size; ++n)
                if (frame.ops[n].what == op_kind::allocate && random() % 2)
                    driver.context->release(request.made(n));
        }
    }
    MESSAGE("ran ", ran, ", failed ", failed, ", refused ", refused);
    CHECK(ran > 0);
    CHECK(failed > 0);
    CHECK(refused > 0);
}

TEST_SUITE_END();

} // namespace test_worker_wire_fuzz
