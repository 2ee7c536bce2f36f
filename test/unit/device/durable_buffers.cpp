#include "durable_fixture.hpp"

#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas/matmul.hpp>

namespace test_device_durable_buffers {

using namespace test::durable;

TEST_SUITE_BEGIN("durable_buffers");

TEST_CASE("a buffer is allocated, filled and exported as bytes, and then imported with its type")
{
    fixture f;
    call c;
    f.all.add(c);
    CHECK(f.all.bytes() == 0);
    CHECK(f.step() == "memory.allocate");
    CHECK(f.step() == "memory.fill<u8>");
    CHECK(f.step() == "memory.export");
    CHECK(f.live.empty());
    CHECK_FALSE(f.answered);
    CHECK_FALSE(f.all.must_import());
    CHECK(f.step() == "memory.import");
    CHECK(f.answered == &c);
    CHECK(f.live.size() == 1);
    CHECK(is_durable(c.made().raw()));
    CHECK(c.made().size() == n);
    CHECK(f.all.bytes() == n * sizeof(float));
    CHECK(f.step().empty());
}

TEST_CASE("an error in any step ends the call and leaves nothing")
{
    for (int steps = 0; steps < 4; ++steps) {
        CAPTURE(steps);
        fixture f;
        call c;
        f.all.add(c);
        for (int i = 0; i < steps; ++i)
            f.step();
        f.step(errc::out_of_memory);
        CHECK(f.answered == &c);
        CHECK(f.error == errc::out_of_memory);
        CHECK(f.all.empty());
        CHECK(f.live.empty());
        CHECK(f.step().empty());
    }
}

TEST_CASE("a loss in any step makes the buffer anew, never a suspect one")
{
    for (const auto cause : {loss_cause::fault, loss_cause::outside})
        for (int steps = 0; steps < 4; ++steps) {
            CAPTURE(steps);
            fixture f;
            call c;
            f.all.add(c);
            for (int i = 0; i < steps; ++i)
                f.step();
            f.step(errc::context_lost);
            f.lose(cause);
            CHECK_FALSE(f.answered);
            CHECK(f.step() == "memory.allocate");
            f.run();
            CHECK(f.answered == &c);
            CHECK(f.all.suspects() == 0);
            CHECK(f.live.size() == 1);
        }
}

TEST_CASE("a call that is removed in any step leaves nothing, also while a request is on its way")
{
    for (int steps = 0; steps < 4; ++steps) {
        CAPTURE(steps);
        fixture f;
        call c;
        f.all.add(c);
        for (int i = 0; i < steps; ++i)
            f.step();
        SUBCASE("between requests")
        {
            f.release(f.all.remove(c));
        }
        SUBCASE("during a request")
        {
            load_part* const part = f.all.next(scope::all);
            REQUIRE(part);
            CHECK(f.all.remove(c).device == 0);
            CHECK_FALSE(f.all.has_next(scope::all));
            const auto news = f.all.finished(*part, errc::out_of_memory);
            CHECK_FALSE(news.call);
            f.release(news.unused);
        }
        CHECK(f.all.empty());
        CHECK(f.live.empty());
        CHECK(f.step().empty());
    }
}

TEST_CASE("the refs of a request are those of the context while it is there")
{
    fixture f;
    call a, b;
    const auto x = f.make(a), y = f.make(b);
    for (int i = 0; i < 3; ++i) {
        one<copy> r(copy{x.subspan(2, 3), y.subspan(1, 3)});
        CHECK_FALSE(f.all.begin(r));
        CHECK(r.op.src.raw.generation == f.generation);
        CHECK(f.live.contains(r.op.src.raw.slot));
        CHECK(f.live.contains(r.op.dst.raw.slot));
        CHECK(r.op.src.raw.offset == 2);
        CHECK(r.op.src.raw.size == 3);
        f.all.end(r, {});
        CHECK(r.op.src.raw == x.subspan(2, 3).raw());
        CHECK(r.op.dst.raw == y.subspan(1, 3).raw());
        f.lose(loss_cause::outside);
        CHECK(f.all.must_import());
        f.run();
        CHECK_FALSE(f.all.must_import());
    }
}

TEST_CASE("other refs are left alone")
{
    fixture f;
    call c;
    const auto x = f.make(c);
    any_ref ordinary = x.raw(), elsewhere = x.raw();
    ordinary.generation = 1;
    ordinary.slot = 99;
    elsewhere.device = device_id + 1;
    for (const any_ref& r : {ordinary, elsewhere, any_ref{.type = dtype::f32}}) {
        one<fill> q(fill{ref<float>::from_raw(r), 1.0f});
        CHECK_FALSE(f.all.begin(q));
        CHECK(q.op.dst.raw == r);
        CHECK_FALSE(q.uses_durable);
        f.all.end(q, {});
    }
}

TEST_CASE("of the optional operands of an op, those with a durable buffer are those of the context")
{
    using product = blas::matmul<float>;
    fixture f;
    call a, b;
    const auto x = f.make(a), y = f.make(b);
    product op{.a = x.first(4), .b = x.first(4), .d = y.first(4), .m = 2, .n = 2, .k = 2};
    op.bias = x.subspan(4, 2);
    one<product> r(op);
    CHECK_FALSE(f.all.begin(r));
    CHECK(r.op.bias.raw.generation == f.generation);
    CHECK(f.live.contains(r.op.bias.raw.slot));
    CHECK(r.op.c.raw == op.c.raw);
    CHECK(r.op.amax_d.raw == op.amax_d.raw);
    f.all.end(r, {});
    CHECK(r.op.bias.raw == op.bias.raw);
    CHECK_FALSE(r.op.c.has_value());
    // Refs of ordinary buffers, beside operands without a buffer.
    any_ref ordinary = x.first(4).raw();
    ordinary.generation = 1;
    ordinary.slot = 99;
    const auto plain = ref<float>::from_raw(ordinary);
    one<product> other(product{.a = plain, .b = plain, .d = plain, .m = 2, .n = 2, .k = 2});
    CHECK_FALSE(f.all.begin(other));
    CHECK_FALSE(other.uses_durable);
    CHECK_FALSE(other.op.bias.has_value());
    f.all.end(other, {});
}

TEST_CASE("a refused request is unchanged")
{
    fixture f;
    call a, b;
    const auto x = f.make(a), y = f.make(b);
    f.release(f.all.release(y.raw()));
    one<copy> r(copy{x, y});
    CHECK(f.all.begin(r) == errc::released_ref);
    CHECK(r.op.src.raw == x.raw());
    CHECK_FALSE(r.uses_durable);
}

TEST_CASE("writers on a lost context make their buffer suspect")
{
    fixture f;
    call a, b;
    const auto x = f.make(a), y = f.make(b);
    one<copy> r(copy{x, y});
    CHECK_FALSE(f.all.begin(r));
    f.all.end(r, errc::context_lost);
    f.lose(loss_cause::outside);
    CHECK_FALSE(a.status->suspect);
    CHECK(b.status->suspect);
    f.run();
    one<fill> write(fill{y, 1.0f});
    CHECK(f.all.begin(write) == errc::buffer_suspect);
    // Only a request that overwrites it may start.
    write.overwrites_durable = true;
    CHECK_FALSE(f.all.begin(write));
    CHECK_FALSE(b.status->suspect);
    f.all.end(write, errc::invalid_argument);
    CHECK(b.status->suspect);
    CHECK_FALSE(f.all.trust(y.raw()));
    CHECK_FALSE(b.status->suspect);
}

TEST_CASE("a measurement on a lost context makes no buffer suspect, because it writes none")
{
    using product = blas::matmul<float>;
    fixture f;
    call a, b;
    const auto x = f.make(a).first(4), y = f.make(b).first(4);
    one<tune<product>> r(tune<product>{{.a = x, .b = x, .d = y, .m = 2, .n = 2, .k = 2}});
    CHECK_FALSE(f.all.begin(r));
    CHECK(r.op.op.d.raw.generation == f.generation);
    f.all.end(r, errc::context_lost);
    f.lose(loss_cause::outside);
    CHECK_FALSE(a.status->suspect);
    CHECK_FALSE(b.status->suspect);
}

TEST_CASE("a buffer that cannot be imported is tried again after each op that names it")
{
    fixture f;
    call a, b;
    const auto x = f.make(a), y = f.make(b);
    f.lose(loss_cause::outside);
    CHECK(f.step(errc::out_of_memory, scope::imports) == "memory.import");
    CHECK(f.unmapped == errc::out_of_memory);
    f.run();
    CHECK_FALSE(f.all.must_import());
    one<fill> bad(fill{x, 1.0f}), good(fill{y, 1.0f});
    CHECK_FALSE(f.all.begin(good));
    f.all.end(good, {});
    const auto refused = f.all.begin(bad);
    CHECK(refused == errc::out_of_memory);
    CHECK(refused.message().find("memory.fill: dst is durable buffer 1, which is not in the new context") == 0);
    CHECK(f.all.must_import());
    f.run();
    CHECK_FALSE(f.all.begin(bad));
    f.all.end(bad, {});
    // It was in no context that could have changed it.
    f.lose(loss_cause::outside);
    f.step(errc::out_of_memory);
    f.lose(loss_cause::fault);
    CHECK_FALSE(a.status->suspect);
    CHECK_FALSE(b.status->suspect);
}

TEST_CASE("a buffer may have been written from the submission of its import on")
{
    for (const auto cause : {loss_cause::fault, loss_cause::hardware, loss_cause::outside}) {
        fixture f;
        call a, b;
        (void)f.make(a);
        (void)f.make(b);
        f.lose(loss_cause::outside);
        // The context has mapped the first one, perhaps, and has not heard of the second.
        CHECK(f.step(errc::context_lost) == "memory.import");
        f.lose(cause);
        CHECK(a.status->suspect == (cause != loss_cause::outside));
        CHECK_FALSE(b.status->suspect);
    }
}

TEST_CASE("during a replacement only imports go on")
{
    fixture f;
    call a, b;
    (void)f.make(a);
    f.all.add(b);
    f.all.context_closed();
    CHECK(f.step({}, scope::imports) == "memory.import");
    CHECK_FALSE(f.all.has_next(scope::imports));
    CHECK(f.step({}, scope::imports).empty());
    CHECK(f.all.has_next(scope::all));
    CHECK(f.all.suspects() == 0);
}

TEST_CASE("a buffer that is released during its import leaves the context afterwards")
{
    fixture f;
    call a;
    const auto x = f.make(a);
    f.lose(loss_cause::outside);
    load_part* const part = f.all.next(scope::all);
    REQUIRE(part);
    CHECK(f.all.release(x.raw()).device == 0);
    CHECK_FALSE(f.all.must_import());
    static_cast<allocation*>(part->ops.front().reply)->ref = {.device = device_id, .generation = 2, .slot = 40};
    CHECK(f.all.finished(*part, {}).unused.slot == 40);
    CHECK(f.all.empty());
}

TEST_SUITE_END();

} // namespace test_device_durable_buffers
