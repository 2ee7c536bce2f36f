#ifndef COACCEL_TEST_UNIT_WORKER_FAKE_WORKER_HPP
#define COACCEL_TEST_UNIT_WORKER_FAKE_WORKER_HPP

#include "support/context_driver.hpp"
#include "worker/parent/remote_context.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace test {

/// A process that only sleeps, with the rings of a worker; the test is at their other end.
class fake_worker {
public:
    fake_worker() : fake_worker(quiet_plan()) {}

    explicit fake_worker(const coaccel::worker::link_plan& plan)
        : fake_worker(plan, coaccel::detail::shared_memory::create(coaccel::worker::control_bytes, "test").value())
    {}

    fake_worker(const coaccel::worker::link_plan& plan, coaccel::detail::shared_memory control)
        : memory(control.bytes()), block(new(memory.data()) coaccel::worker::control_block)
    {
        using namespace coaccel::detail;
        using namespace coaccel::worker;
        auto child = child_process::start(
            {.program = "/bin/sleep", .arguments = {"1000"}, .environment = {}, .descriptors = {}});
        REQUIRE(child);
        link = std::make_unique<worker_link>(plan, std::move(control), doorbell::create().value(),
                                             doorbell::create().value(), unique_fd(), std::move(sockets.first),
                                             std::move(child).value(), process_monitor::shared());
    }

    static coaccel::worker::link_plan quiet_plan()
    {
        return {.program = {},
                .setup = {},
                .start_timeout = std::chrono::hours(1),
                .heartbeat = {},
                .log = [](std::string_view) {}};
    }

    /// The next record that the parent has written; empty if there is none.
    std::vector<std::byte> take()
    {
        std::vector<std::byte> record;
        auto got = requests.read(record);
        REQUIRE(got);
        return got.value() ? record : std::vector<std::byte>();
    }

    void say(std::span<const std::byte> record)
    {
        REQUIRE(replies.write(record) == coaccel::worker::written::yes);
        link_bell();
    }

    void link_bell()
    {
        if (replies.wants_bell() && link)
            link->reply_bell().ring();
    }

    // In the memory of the link, which must outlive these.
    std::span<std::byte> memory;
    coaccel::worker::control_block* block;
    std::pair<coaccel::worker::descriptor_socket, coaccel::worker::descriptor_socket> sockets =
        coaccel::worker::descriptor_socket::create().value();
    /// The end of the worker.
    coaccel::worker::descriptor_socket& descriptors = sockets.second;
    std::unique_ptr<coaccel::worker::worker_link> link;
    coaccel::worker::ring_reader requests{block->requests,
                                          memory.subspan(coaccel::worker::ring_offset, coaccel::worker::ring_bytes)};
    coaccel::worker::ring_writer replies{
        block->replies,
        memory.subspan(coaccel::worker::ring_offset + coaccel::worker::ring_bytes, coaccel::worker::ring_bytes)};
};

struct remote_settings {
    coaccel::worker::link_plan plan = fake_worker::quiet_plan();
    // Never armed with polling, because the io_context does not run.
    coaccel::completion completion = coaccel::completion::polled;
    std::chrono::nanoseconds spin{};
    std::uint64_t staging_bytes = std::uint64_t(4) << 20;
    /// The backend that the worker reports; empty: it has reported nothing.
    std::string backend{};
    coaccel::worker::exporting exporting = coaccel::worker::exporting::no;
    coaccel::worker::image_limits images{};
    std::chrono::nanoseconds hang_timeout{};
};

/// A context whose worker is simulated by the test.
class remote_world final : public context_world {
public:
    explicit remote_world(const remote_settings& how = {})
        : spin(how.spin), images(how.images), memory(coaccel::worker::staging::create(how.staging_bytes).value()),
          worker(how.plan)
    {
        context.completion = how.completion;
        context.hang_timeout = how.hang_timeout;
        if (!how.backend.empty())
            greet(how.backend, how.exporting);
    }

    coaccel::detail::context_factory factory() override
    {
        return
            [this](coaccel::detail::context_identity identity, coaccel::detail::context_events& events,
                   const coaccel::context_options& how) -> coaccel::result<std::unique_ptr<coaccel::detail::context>> {
                using namespace coaccel::worker;
                auto watch = doorbell_waiter::create(io.get_executor(), worker.link->reply_bell().wait_fd(), events);
                REQUIRE(watch);
                remote_setup setup;
                setup.identity = identity;
                setup.memory = memory;
                setup.spin = spin;
                setup.copy_threads = 2;
                setup.images = images;
                return std::make_unique<remote_context>(std::move(worker.link), std::move(watch), events, how,
                                                        std::move(setup));
            };
    }

    void poison() override {}

    void greet(const std::string& backend, coaccel::worker::exporting exporting = coaccel::worker::exporting::no)
    {
        coaccel::worker::encoder out;
        out.put(coaccel::worker::message_type::ready);
        out.put_text(backend);
        coaccel::worker::put_hardware(out, {});
        out.put(exporting);
        worker.say(out.record());
        REQUIRE_FALSE(worker.link->wait_until_ready());
    }

    boost::asio::io_context io;
    std::chrono::nanoseconds spin;
    coaccel::worker::image_limits images;
    std::shared_ptr<coaccel::worker::staging> memory;
    fake_worker worker;
};

/// Makes the worker create these buffers.
inline void make_buffers(context_driver& driver, fake_worker& worker, std::initializer_list<coaccel::any_ref> buffers)
{
    using namespace coaccel::worker;
    for (const coaccel::any_ref& b : buffers) {
        allocate_request r(b.size, b.type);
        driver.submit(r);
        submit_frame asked;
        for (message_type what{}; what != message_type::submit;) {
            const auto record = worker.take();
            decoder in(record);
            REQUIRE(in.get(what, message_type::adopt, message_type::image));
            if (what == message_type::submit)
                REQUIRE(get_submit(in, asked));
        }
        encoder out;
        out.put(message_type::ended);
        out.put(asked.id);
        out.put_error({});
        out.put_ref(b);
        worker.say(out.record());
        driver.context->turn(coaccel::detail::clock::now());
        CHECK_FALSE(driver.outcome(r));
        driver.ended.clear();
    }
}

/// A context and its worker, which the test controls.
struct remote_fixture {
    explicit remote_fixture(const remote_settings& how = {}) : world(how)
    {
        coaccel::worker::decoder in(adopted);
        coaccel::worker::message_type what{};
        std::uint32_t device = 0, generation = 0;
        REQUIRE(in.get(what, coaccel::worker::message_type::adopt, coaccel::worker::message_type::adopt));
        REQUIRE(in.get(device));
        REQUIRE(in.get(generation));
        CHECK(in.at_end());
        CHECK(device == context_driver::device);
        CHECK(generation == context_driver::generation);
    }

    void turn() { driver.context->turn(coaccel::detail::clock::now()); }

    /// Waits for the next submission.
    const coaccel::worker::submit_frame& next()
    {
        record.clear();
        driver.run_until([&] {
            if (record.empty())
                record = world.worker.take();
            return !record.empty();
        });
        return decoded();
    }

    const coaccel::worker::submit_frame& decoded()
    {
        coaccel::worker::decoder in(record);
        coaccel::worker::message_type what{};
        REQUIRE(in.get(what, coaccel::worker::message_type::submit, coaccel::worker::message_type::submit));
        REQUIRE(coaccel::worker::get_submit(in, frame));
        return frame;
    }

    bool silent()
    {
        for (int i = 0; i < 10; ++i)
            turn();
        record = world.worker.take();
        return record.empty();
    }

    void answer(std::uint64_t id, const coaccel::error_code& ec = {}, std::span<const std::byte> replies = {})
    {
        coaccel::worker::encoder out;
        out.put(coaccel::worker::message_type::ended);
        out.put(id);
        out.put_error(ec);
        out.put_bytes(replies);
        world.worker.say(out.record());
        turn();
    }

    void answer_made(std::uint64_t id, const coaccel::any_ref& made)
    {
        coaccel::worker::encoder out;
        out.put_ref(made);
        answer(id, {}, out.record());
    }

    coaccel::any_ref buffer(std::uint32_t slot, std::uint64_t size, coaccel::dtype type = coaccel::dtype::f32) const
    {
        return {.device = context_driver::device,
                .generation = context_driver::generation,
                .slot = slot,
                .version = 1,
                .offset = 0,
                .size = size,
                .type = type};
    }

    coaccel::ref<float> floats(std::uint32_t slot, std::uint64_t size) const
    {
        return coaccel::ref<float>::from_raw(buffer(slot, size));
    }

    /// Like floats(), with a buffer that the worker has made.
    coaccel::ref<float> made(std::uint32_t slot, std::uint64_t size)
    {
        make_buffers(driver, world.worker, {buffer(slot, size)});
        return floats(slot, size);
    }

    /// Checks that no request is outstanding and that the reason is reported.
    void expect_loss(coaccel::errc why)
    {
        driver.run_until([&] { return driver.losses > 0; });
        CHECK(driver.losses == 1);
        CHECK(driver.reason == why);
        CHECK_FALSE(driver.context->accepting());
    }

    remote_world world;
    context_driver driver{world};
    const std::vector<std::byte> adopted = world.worker.take();
    std::vector<std::byte> record;
    coaccel::worker::submit_frame frame;
};

} // namespace test

#endif
