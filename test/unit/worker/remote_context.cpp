#include "fake_worker.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/interop.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace test_worker_remote_context {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using test::exec;
using bytes = std::vector<std::byte>;
using fixture = test::remote_fixture;

exec<memory::fill<float>> fill(ref<float> r)
{
    return exec<memory::fill<float>>(memory::fill<float>{r, 1.0f}, exec_options{});
}

bytes unsupported(std::uint64_t id, std::uint32_t position)
{
    encoder out;
    out.put(message_type::unsupported);
    out.put(id);
    out.put(position);
    return {out.record().begin(), out.record().end()};
}

} // namespace

TEST_SUITE_BEGIN("remote_context");

TEST_CASE("an op is sent as its bytes and completes with the reply")
{
    fixture f;
    exec_options how;
    how.lane = 2;
    how.priority = priority::low;
    const memory::fill<float> op{f.floats(3, 10), 2.0f};
    exec<memory::fill<float>> r(op, how);
    f.driver.submit(r);
    const auto& s = f.next();
    REQUIRE(s.size == 1);
    CHECK(s.how.lane == 2);
    CHECK(s.how.priority == priority::low);
    CHECK(s.injected_fault == injected_fault::none);
    CHECK(s.ops[0].what == op_kind::plain);
    CHECK(s.ops[0].id == info_of<memory::fill<float>>().id);
    REQUIRE(s.ops[0].data.size() == sizeof(op));
    CHECK(std::memcmp(s.ops[0].data.data(), &op, sizeof(op)) == 0);
    CHECK_FALSE(f.driver.has_ended(r));
    f.answer(s.id);
    CHECK_FALSE(f.driver.outcome(r));
}

TEST_CASE("an op whose optional operands have no buffer is sent as its bytes")
{
    fixture f;
    blas::matmul<float> op{
        .a = f.floats(3, 4), .b = f.floats(4, 4), .d = f.floats(5, 4), .bias = f.floats(6, 2), .m = 2, .n = 2, .k = 2};
    exec<blas::matmul<float>> r(op, exec_options{});
    f.driver.submit(r);
    const auto& s = f.next();
    REQUIRE(s.size == 1);
    CHECK(s.ops[0].id == info_of<blas::matmul<float>>().id);
    REQUIRE(s.ops[0].data.size() == sizeof(op));
    blas::matmul<float> sent;
    std::memcpy(&sent, s.ops[0].data.data(), sizeof(sent));
    CHECK(sent.bias.raw == op.bias.raw);
    CHECK_FALSE(sent.c.has_value());
    CHECK_FALSE(sent.amax_d.has_value());
    f.answer(s.id);
    CHECK_FALSE(f.driver.outcome(r));
    // The type of an absent operand is sent too.
    op.c.raw.type = dtype(99);
    exec<blas::matmul<float>> wrong(op, exec_options{});
    f.driver.submit(wrong);
    CHECK(f.driver.outcome(wrong) == errc::invalid_argument);
    CHECK(f.silent());
    CHECK(f.driver.context->accepting());
}

TEST_CASE("a failed op completes with the worker's error")
{
    fixture f;
    auto r = fill(f.floats(3, 10));
    f.driver.submit(r);
    f.answer(f.next().id, make_error_with_message(errc::out_of_bounds, "beyond"));
    CHECK(f.driver.outcome(r) == errc::out_of_bounds);
    CHECK(f.driver.outcome(r).message() == "beyond");
    CHECK(f.driver.context->accepting());
}

TEST_CASE("an op that the worker's backend does not implement is named")
{
    fixture f({.backend = "host"});
    auto r = fill(f.floats(3, 10));
    f.driver.submit(r);
    f.world.worker.say(unsupported(f.next().id, 0));
    f.turn();
    CHECK(f.driver.outcome(r) == errc::unsupported_op);
    CHECK(f.driver.outcome(r).message() == "memory.fill<f32>: the host backend does not implement it");
    CHECK(f.driver.context->accepting());
}

TEST_CASE("a reply is stored in the request's reply memory")
{
    fixture f;
    exec<blas::dot<float>> r(blas::dot<float>{.x = f.floats(1, 4), .y = f.floats(2, 4), .n = 4}, exec_options{});
    f.driver.submit(r);
    const auto& s = f.next();
    REQUIRE(s.ops[0].reply_size == sizeof(float));
    const float result = 2.5f;
    f.answer(s.id, {}, std::as_bytes(std::span(&result, 1)));
    REQUIRE_FALSE(f.driver.outcome(r));
    CHECK(*static_cast<const float*>(r.ops[0].reply) == 2.5f);
}

TEST_CASE("an allocation returns the worker's buffer, and a release is sent to the worker")
{
    fixture f;
    test::allocate_request r(16);
    f.driver.submit(r);
    const auto& s = f.next();
    CHECK(s.ops[0].what == op_kind::allocate);
    CHECK(s.ops[0].count == 16);
    CHECK(s.ops[0].type == dtype::f32);
    f.answer_made(s.id, f.buffer(5, 16));
    REQUIRE_FALSE(f.driver.outcome(r));
    CHECK(r.made.ref == f.buffer(5, 16));
    CHECK(f.driver.context->live_buffers() == 1);

    any_ref other = r.made.ref;
    ++other.generation;
    f.driver.context->release(other);
    CHECK(f.silent());
    CHECK(f.driver.context->live_buffers() == 1);
    f.driver.context->release(r.made.ref);
    CHECK_FALSE(f.silent());
    decoder in(f.record);
    message_type what{};
    any_ref released;
    CHECK(in.get(what, message_type::release, message_type::release));
    CHECK(in.get_ref(released));
    CHECK(in.at_end());
    CHECK(released == r.made.ref);
    CHECK(f.driver.context->live_buffers() == 0);
}

TEST_CASE("an allocation reply that does not match its request is a corrupted worker")
{
    struct lie {
        const char* what;
        void (*change)(any_ref&);
    };
    for (const auto& l :
         {lie{"device", [](any_ref& r) { ++r.device; }}, lie{"no device", [](any_ref& r) { r.device = 0; }},
          lie{"made here", [](any_ref& r) { r.device = made_here; }},
          lie{"generation", [](any_ref& r) { --r.generation; }}, lie{"offset", [](any_ref& r) { r.offset = 1; }},
          lie{"size", [](any_ref& r) { --r.size; }}, lie{"type", [](any_ref& r) { r.type = dtype::i32; }},
          lie{"no type", [](any_ref& r) { r.type = dtype(0); }}}) {
        INFO(std::string(l.what));
        fixture f;
        test::allocate_request r(16);
        f.driver.submit(r);
        any_ref made = f.buffer(5, 16);
        l.change(made);
        f.answer_made(f.next().id, made);
        f.expect_loss(errc::worker_corrupted);
        CHECK(f.driver.outcome(r) == errc::context_lost);
        CHECK(r.made.ref == any_ref{});
    }
}

TEST_CASE("an unexpected or malformed reply is a corrupted worker")
{
    struct wrong {
        const char* what;
        bytes (*make)(std::uint64_t id, const bytes& good);
    };
    const auto number = [](bytes r, std::size_t at, std::uint64_t n) {
        std::memcpy(r.data() + at, &n, sizeof(n));
        return r;
    };
    static const auto set = number;
    for (const auto& w :
         {wrong{"another slot", [](std::uint64_t id, const bytes& g) { return set(g, 1, id + 1); }},
          wrong{"a slot that there is not", [](std::uint64_t, const bytes& g) { return set(g, 1, ~std::uint64_t(0)); }},
          wrong{"another serial",
                [](std::uint64_t id, const bytes& g) { return set(g, 1, id + (std::uint64_t(1) << 32)); }},
          wrong{"serial zero", [](std::uint64_t id, const bytes& g) { return set(g, 1, id & 0xffffffff); }},
          wrong{"more than an answer",
                [](std::uint64_t, const bytes& g) {
                    auto r = g;
                    r.push_back(std::byte{0});
                    return r;
                }},
          wrong{"another verb",
                [](std::uint64_t, const bytes& g) {
                    auto r = g;
                    r[0] = std::byte(message_type::ready);
                    return r;
                }},
          wrong{"an unsupported op that the request does not have",
                [](std::uint64_t id, const bytes&) { return unsupported(id, 1); }},
          wrong{"an unsupported op of another request",
                [](std::uint64_t id, const bytes&) { return unsupported(id + 1, 0); }},
          wrong{"an unsupported op without its position",
                [](std::uint64_t id, const bytes&) {
                    auto r = unsupported(id, 0);
                    r.pop_back();
                    return r;
                }},
          wrong{"no verb", [](std::uint64_t, const bytes&) { return bytes(1); }},
          wrong{"half an answer", [](std::uint64_t, const bytes& g) { return bytes(g.begin(), g.begin() + 9); }},
          wrong{"a loss without a reason",
                [](std::uint64_t, const bytes&) { return bytes{std::byte(message_type::lost), std::byte{0}}; }}}) {
        INFO(std::string(w.what));
        fixture f;
        auto r = fill(f.floats(3, 10));
        f.driver.submit(r);
        const auto id = f.next().id;
        encoder out;
        out.put(message_type::ended);
        out.put(id);
        out.put_error({});
        f.world.worker.say(w.make(id, {out.record().begin(), out.record().end()}));
        f.expect_loss(errc::worker_corrupted);
        CHECK(f.driver.outcome(r) == errc::context_lost);
    }
}

TEST_CASE("a second reply to one request is a corrupted worker")
{
    fixture f;
    auto r = fill(f.floats(3, 10));
    f.driver.submit(r);
    const auto id = f.next().id;
    f.answer(id);
    CHECK_FALSE(f.driver.outcome(r));
    auto second = fill(f.floats(3, 10));
    f.driver.submit(second);
    f.answer(id);
    f.expect_loss(errc::worker_corrupted);
    CHECK_FALSE(f.driver.outcome(r));
    CHECK(f.driver.outcome(second) == errc::context_lost);
}

TEST_CASE("an invalid ring position is a corrupted worker")
{
    for (const bool of_replies : {true, false}) {
        fixture f;
        auto r = fill(f.floats(3, 10));
        f.driver.submit(r);
        if (of_replies)
            f.world.worker.block->replies.written = 7;
        else
            f.world.worker.block->requests.taken = ~std::uint64_t(0) - 6;
        // The writer reads the position of the other side only when its ring seems full.
        std::deque<exec<memory::fill<float>>> more;
        while (f.driver.losses == 0 && more.size() < 20000) {
            f.driver.submit(more.emplace_back(memory::fill<float>{f.floats(3, 10), 1.0f}, exec_options{}));
            f.turn();
        }
        f.expect_loss(errc::worker_corrupted);
        CHECK(f.driver.outcome(r) == errc::context_lost);
        for (auto& m : more)
            CHECK(f.driver.outcome(m) == errc::context_lost);
    }
}

TEST_CASE("a loss reported by the worker keeps its reason")
{
    fixture f;
    auto r = fill(f.floats(3, 10));
    f.driver.submit(r);
    encoder out;
    out.put(message_type::lost);
    out.put_error(make_error_with_message(errc::device_lost, "fell off the bus"));
    f.world.worker.say(out.record());
    f.driver.run_until([&] { return f.driver.losses > 0; });
    CHECK(f.driver.reason.message() == "fell off the bus");
    // It says nothing about the request.
    CHECK(f.driver.lost_by == detail::loss_cause::hardware);
    CHECK(f.driver.outcome(r) == errc::context_lost);
    auto late = fill(f.floats(3, 10));
    CHECK(f.driver.outcome_of(late) == errc::context_lost);
}

TEST_CASE("a loss reported by the worker is a fault of its work unless the hardware is gone")
{
    fixture f;
    auto r = fill(f.floats(3, 10));
    f.driver.submit(r);
    encoder out;
    out.put(message_type::lost);
    out.put_error(make_error_with_message(errc::context_lost, "an illegal address"));
    f.world.worker.say(out.record());
    f.driver.run_until([&] { return f.driver.losses > 0; });
    CHECK(f.driver.lost_by == detail::loss_cause::fault);
}

TEST_CASE("ops that need the calling process are refused immediately")
{
    fixture f;
    test::allocate_request managed(16, dtype::f32, memory_kind::managed);
    CHECK(f.driver.outcome_of(managed) == errc::not_isolatable);
    test::hold<inout<float>> user(test::hold_lane{&f.world, {}}, std::tuple(inout<float>(f.floats(1, 4))));
    CHECK(f.driver.outcome_of(user) == errc::not_isolatable);
    std::byte memory[16];
    CHECK(f.driver.context->pin(memory) == errc::not_isolatable);
    float data[4]{};
    const auto owner = std::make_shared<int>(1);
    test::manual<detail::adopt_request<float>> adopts(data, 4, owner);
    CHECK(f.driver.outcome_of(adopts) == errc::not_isolatable);
    CHECK(owner.use_count() == 2);
    exec<interop::wait_event<float>> waits(interop::wait_event<float>{.event = data, .data = f.floats(1, 4)},
                                           exec_options{});
    CHECK(f.driver.outcome_of(waits) == errc::not_isolatable);
    exec<interop::record_event<float>> records(interop::record_event<float>{.event = data, .data = f.floats(1, 4)},
                                               exec_options{});
    CHECK(f.driver.outcome_of(records) == errc::not_isolatable);
    CHECK(f.silent());
}

TEST_CASE("more requests than fit into the ring are all sent, in order")
{
    fixture f;
    std::deque<exec<memory::fill<float>>> all;
    for (int i = 0; i < 5000; ++i)
        f.driver.submit(all.emplace_back(memory::fill<float>{f.floats(3, 10), static_cast<float>(i)}, exec_options{}));
    for (int i = 0; i < 5000; ++i) {
        const auto& s = f.next();
        memory::fill<float> op;
        REQUIRE(s.ops[0].data.size() == sizeof(op));
        std::memcpy(&op, s.ops[0].data.data(), sizeof(op));
        REQUIRE(op.value == static_cast<float>(i));
        f.answer(s.id);
    }
    for (auto& r : all)
        CHECK_FALSE(f.driver.outcome(r));
}

TEST_CASE("more releases than fit into the ring are all sent, without any other request")
{
    fixture f;
    constexpr std::uint32_t count = 20000;
    for (std::uint32_t i = 0; i < count; ++i)
        f.driver.context->release(f.buffer(i, 10));
    std::uint32_t seen = 0;
    while (f.driver.context->turn(detail::clock::now()).when == detail::next_turn::kind::again)
        while (!f.world.worker.take().empty())
            ++seen;
    while (!f.world.worker.take().empty())
        ++seen;
    CHECK(seen == count);
}

TEST_CASE("requests outstanding at the close of the device are returned, and their staging memory is released")
{
    const auto memory = [] {
        fixture f;
        std::vector<float> data(std::size_t(1) << 20);
        auto plain = fill(f.floats(3, 10));
        exec<detail::read_op<float>> small(detail::read_op<float>{f.made(4, 10), data.data(), 10}, exec_options{});
        exec<detail::write_op<float>> large(detail::write_op<float>{f.made(5, data.size()), data.data(), data.size()},
                                            exec_options{});
        auto held = fill(f.floats(5, 10));
        for (detail::request* r : {static_cast<detail::request*>(&plain), static_cast<detail::request*>(&small),
                                   static_cast<detail::request*>(&large), static_cast<detail::request*>(&held)})
            f.driver.submit(*r);
        detail::async_op_list left;
        f.driver.context->drop(left);
        int count = 0;
        while (left.pop_front())
            ++count;
        CHECK(count == 4);
        CHECK(f.driver.ended.empty());
        CHECK(f.driver.losses == 0);
        auto kept = f.world.memory;
        f.driver.context.reset();
        return kept;
    }();
    CHECK(memory->take(memory->bytes()));
}

TEST_CASE("the loss of the worker fails every outstanding request once and releases its staging memory")
{
    const auto memory = [] {
        fixture f;
        std::vector<float> data(std::size_t(1) << 20);
        auto plain = fill(f.floats(3, 10));
        exec<detail::read_op<float>> small(detail::read_op<float>{f.made(4, 10), data.data(), 10}, exec_options{});
        exec<detail::read_op<float>> large(detail::read_op<float>{f.made(5, data.size()), data.data(), data.size()},
                                           exec_options{});
        auto held = fill(f.floats(5, 10));
        test::allocate_request made(16);
        f.driver.submit(plain);
        f.driver.submit(small);
        f.driver.submit(large);
        f.driver.submit(held);
        f.driver.submit(made);
        f.world.worker.block->replies.written = 1;
        f.expect_loss(errc::worker_corrupted);
        for (detail::request* r : {static_cast<detail::request*>(&plain), static_cast<detail::request*>(&small),
                                   static_cast<detail::request*>(&large), static_cast<detail::request*>(&held),
                                   static_cast<detail::request*>(&made)})
            CHECK(f.driver.outcome(*r) == errc::context_lost);
        auto kept = f.world.memory;
        f.driver.context.reset();
        return kept;
    }();
    CHECK(memory->take(memory->bytes()));
}

TEST_SUITE_END();

} // namespace test_worker_remote_context
