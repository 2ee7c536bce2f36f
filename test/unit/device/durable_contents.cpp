#include "device/shared_constants.hpp"
#include "durable_fixture.hpp"

#include <vector>

namespace test_device_durable_contents {

using namespace test::durable;

// Durable buffers whose content this process keeps.
namespace {

using floats = std::vector<float>;

std::shared_ptr<const std::byte> bytes_of(const std::shared_ptr<const floats>& elements)
{
    return {elements, reinterpret_cast<const std::byte*>(elements->data())};
}

struct content_fixture : fixture {
    explicit content_fixture(std::size_t count = n)
        : elements(std::make_shared<const floats>(count, 1.0f)), c(count, bytes_of(elements))
    {
        access = memory_access::read_only;
    }

    std::uint64_t bytes() const { return elements->size() * sizeof(float); }

    std::shared_ptr<const floats> elements;
    call c;
};

} // namespace

TEST_SUITE_BEGIN("durable_buffers with a content");

TEST_CASE("the content is uploaded once, exported for readers, and imported by later contexts")
{
    content_fixture f;
    f.all.add(f.c);
    for (const char* name : {"memory.allocate", "memory.write<u8>", "memory.export", "memory.import"})
        CHECK(f.step() == name);
    CHECK(f.answered == &f.c);
    CHECK(is_durable(f.c.made().raw()));
    CHECK(f.written == f.bytes());
    CHECK(f.all.bytes() == f.bytes());
    CHECK(f.live.size() == 1);
    for (const auto cause : {loss_cause::outside, loss_cause::fault}) {
        f.lose(cause);
        CHECK(f.all.must_import());
        CHECK(f.step() == "memory.import");
        CHECK(f.step().empty());
        // A worker cannot change it, so it needs no decision of the caller.
        CHECK(f.all.suspects() == 0);
        CHECK_FALSE(f.c.status->suspect);
    }
    CHECK(f.written == f.bytes());
}

TEST_CASE("a large content is uploaded in pieces")
{
    content_fixture f(2 * most_bytes_at_once / sizeof(float) + 1);
    f.all.add(f.c);
    CHECK(f.step() == "memory.allocate");
    for (int i = 0; i < 3; ++i)
        CHECK(f.step() == "memory.write<u8>");
    CHECK(f.step() == "memory.export");
    CHECK(f.written == f.bytes());
}

TEST_CASE("a loss in any step costs the upload only until the content is exported")
{
    for (int steps = 0; steps < 4; ++steps) {
        CAPTURE(steps);
        content_fixture f;
        f.all.add(f.c);
        for (int i = 0; i < steps; ++i)
            f.step();
        f.step(errc::context_lost);
        f.lose(loss_cause::fault);
        CHECK_FALSE(f.answered);
        CHECK(f.step() == (steps < 3 ? "memory.allocate" : "memory.import"));
        f.run();
        CHECK(f.answered == &f.c);
        CHECK_FALSE(f.error);
        CHECK(f.live.size() == 1);
    }
}

TEST_CASE("an error in any step ends the call, which then uploads the elements itself")
{
    for (int steps = 0; steps < 4; ++steps) {
        content_fixture f;
        f.all.add(f.c);
        for (int i = 0; i < steps; ++i)
            f.step();
        f.step(errc::out_of_memory);
        CHECK(f.answered == &f.c);
        CHECK(f.error == errc::out_of_memory);
        CHECK(f.all.empty());
        CHECK(f.live.empty());
    }
}

TEST_CASE("ops may read it, and are refused if they write it")
{
    content_fixture f;
    const auto x = f.make(f.c);
    const ref<float> y = ref<float>::from_raw({.device = device_id, .generation = 1, .slot = 99, .size = n});
    one<copy> read(copy{x, y}), write(copy{y, x});
    CHECK_FALSE(f.all.begin(read));
    f.all.end(read, {});
    const auto refused = f.all.begin(write);
    CHECK(refused == errc::invalid_argument);
    CHECK(refused.message() ==
          "memory.copy: dst can only be read: it has the elements of a resident, which all workers share");
    CHECK_FALSE(write.uses_durable);
    CHECK(write.op.dst.raw == x.raw());
    const bound_op recorded = write.ops.front();
    CHECK(f.all.enter_graph({&recorded, 1}) == errc::invalid_argument);
}

TEST_CASE("memory that is useless in the next context is made anew at once, but only once")
{
    content_fixture f;
    const auto x = f.make(f.c);
    f.lose(loss_cause::outside);
    CHECK(f.step(errc::invalid_argument) == "memory.import");
    CHECK(f.unmapped == errc::invalid_argument);
    CHECK(f.all.must_import());
    CHECK(f.step({}, scope::imports) == "memory.allocate");
    SUBCASE("usable")
    {
        f.run();
        CHECK_FALSE(f.all.must_import());
        CHECK(f.written == 2 * f.bytes());
        CHECK(f.live.size() == 1);
        one<copy> read(copy{x, x});
        read.op.dst = ref<float>::from_raw({.device = device_id, .generation = 2, .slot = 99, .size = n});
        CHECK_FALSE(f.all.begin(read));
        f.all.end(read, {});
    }
    SUBCASE("refused again")
    {
        CHECK(f.step() == "memory.write<u8>");
        CHECK(f.step() == "memory.export");
        CHECK(f.step(errc::invalid_argument) == "memory.import");
        CHECK(f.step().empty());
        CHECK_FALSE(f.all.must_import());
        CHECK(f.live.empty());
        one<copy> read(copy{x, x});
        read.op.dst = ref<float>::from_raw({.device = device_id, .generation = 2, .slot = 99, .size = n});
        CHECK(f.all.begin(read) == errc::invalid_argument);
        // It was followed by another attempt.
        f.run();
        CHECK_FALSE(f.all.begin(read));
        f.all.end(read, {});
    }
}

TEST_CASE("a shortage in the next context leaves the memory alone")
{
    content_fixture f;
    (void)f.make(f.c);
    f.lose(loss_cause::outside);
    CHECK(f.step(errc::out_of_memory) == "memory.import");
    CHECK(f.all.bytes() == f.bytes());
    f.lose(loss_cause::outside);
    CHECK(f.step() == "memory.import");
    CHECK(f.written == f.bytes());
}

TEST_CASE("a failure in any step of making it anew leaves nothing in the context, and an op is followed by an attempt")
{
    for (int steps = 0; steps < 4; ++steps) {
        CAPTURE(steps);
        content_fixture f;
        const auto x = f.make(f.c);
        f.lose(loss_cause::hardware);
        f.all.distrust_contents();
        for (int i = 0; i < steps; ++i)
            f.step();
        f.step(errc::out_of_memory);
        CHECK(f.live.empty());
        CHECK_FALSE(f.all.must_import());
        one<copy> read(copy{x, x});
        read.op.dst = ref<float>::from_raw({.device = device_id, .generation = 2, .slot = 99, .size = n});
        CHECK(f.all.begin(read) == errc::out_of_memory);
        CHECK(f.all.must_import());
        f.run();
        CHECK(f.live.size() == 1);
        CHECK_FALSE(f.all.begin(read));
        f.all.end(read, {});
    }
}

TEST_CASE("after a failure of the hardware the content is uploaded again, before ops start, also during a replacement")
{
    content_fixture f;
    (void)f.make(f.c);
    f.lose(loss_cause::hardware);
    f.all.distrust_contents();
    CHECK(f.all.bytes() == 0);
    CHECK(f.all.must_import());
    CHECK(f.all.has_next(scope::imports));
    for (const char* name : {"memory.allocate", "memory.write<u8>", "memory.export", "memory.import"})
        CHECK(f.step({}, scope::imports) == name);
    CHECK_FALSE(f.all.must_import());
    CHECK(f.written == 2 * f.bytes());
}

TEST_CASE("a failure of the hardware under a standby leaves the context what it has")
{
    content_fixture f;
    (void)f.make(f.c);
    f.all.distrust_contents();
    CHECK(f.step().empty());
    CHECK_FALSE(f.all.must_import());
    f.lose(loss_cause::outside);
    CHECK(f.step() == "memory.allocate");
    f.run();
    CHECK(f.written == 2 * f.bytes());
}

TEST_CASE("a buffer that is released gives up its content, which is freed elsewhere")
{
    for (const bool cleared : {false, true}) {
        content_fixture f;
        const auto x = f.make(f.c);
        if (cleared)
            f.all.clear();
        else
            f.release(f.all.release(x.raw()));
        CHECK(f.all.empty());
        owner_list dropped;
        f.all.take_dropped(dropped);
        REQUIRE(dropped.size() == 1);
        CHECK(dropped.front().get() == f.elements->data());
        f.all.take_dropped(dropped);
        CHECK(dropped.size() == 1);
    }
}

TEST_SUITE_END();

} // namespace test_device_durable_contents
