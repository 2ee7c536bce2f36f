#include "host/exportable_memory.hpp"

#include "posix/shared_memory.hpp"
#include "support/host_world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fcntl.h>

namespace test_host_exportable_memory {

namespace {

using namespace coaccel;
using detail::unique_fd;
using host::exportable_memory;
using host::memory_pool;

constexpr std::size_t mib = std::size_t(1) << 20;

struct fixture {
    explicit fixture(std::uint64_t limit = 0) : world(host_options{.memory_limit = limit}) {}

    any_ref exportable(std::uint64_t bytes)
    {
        test::allocate_request r(bytes, dtype::u8, memory_kind::exportable);
        REQUIRE_FALSE(driver.outcome_of(r));
        return r.made.ref;
    }

    void write(const any_ref& to, const std::vector<std::uint8_t>& data)
    {
        using write_op = detail::write_op<std::uint8_t>;
        test::exec<write_op> r(write_op{ref<std::uint8_t>::from_raw(to), data.data(), data.size()}, exec_options{});
        REQUIRE_FALSE(driver.outcome_of(r));
    }

    std::vector<std::uint8_t> read(const any_ref& from)
    {
        using read_op = detail::read_op<std::uint8_t>;
        std::vector<std::uint8_t> data(from.size);
        test::exec<read_op> r(read_op{ref<std::uint8_t>::from_raw(from), data.data(), data.size()}, exec_options{});
        REQUIRE_FALSE(driver.outcome_of(r));
        return data;
    }

    test::host_world world;
    test::context_driver driver{world};
};

} // namespace

TEST_SUITE_BEGIN("exportable_memory");

TEST_CASE("memory counts as used until it is sealed, and towards the limit until it is released")
{
    memory_pool pool(10 * mib);
    exportable_memory all(pool);
    void* const a = all.allocate(4 * mib).value();
    CHECK(pool.info().used == 4 * mib);
    CHECK(pool.info().free == 6 * mib);
    CHECK(pool.info().high_water == 4 * mib);
    auto fd = all.seal(a, memory_access::read_only);
    REQUIRE(fd);
    CHECK(pool.info().used == 0);
    CHECK(pool.info().high_water == 0);
    CHECK(pool.info().free == 6 * mib);
    void* const b = all.map(fd.value(), 4 * mib, memory_access::read_only).value();
    CHECK(b != a);
    CHECK(pool.info().used == 0);
    CHECK(pool.info().free == 2 * mib);
    CHECK(all.allocate(3 * mib).error() == errc::out_of_memory);
    CHECK(pool.allocate(3 * mib).error() == errc::out_of_memory);
    all.release(a);
    all.release(b);
    CHECK(pool.info().free == 10 * mib);
    void* const c = all.allocate(10 * mib).value();
    all.release(c);
    CHECK(pool.info().used == 0);
    CHECK(pool.info().free == 10 * mib);
}

TEST_CASE("what cannot be made does not count")
{
    memory_pool pool(10 * mib);
    exportable_memory all(pool);
    const auto fd = [&] {
        void* const a = all.allocate(mib).value();
        auto sealed = all.seal(a, memory_access::read_only);
        CHECK(all.seal(a, memory_access::read_only).error() == errc::invalid_argument);
        all.release(a);
        return std::move(sealed).value();
    }();
    CHECK(all.map(fd, 2 * mib, memory_access::read_only).error() == errc::invalid_argument);
    CHECK(all.map(unique_fd(), mib, memory_access::read_only).error() == errc::invalid_argument);
    CHECK(all.seal(&pool, memory_access::read_only).error() == errc::invalid_argument);
    CHECK(pool.info().used == 0);
    CHECK(pool.info().free == 10 * mib);
}

TEST_CASE("kept blocks make room for memory outside the pool")
{
    memory_pool pool(10 * mib);
    exportable_memory all(pool);
    pool.release(pool.allocate(6 * mib).value());
    CHECK(pool.info().reserved > 0);
    void* const a = all.allocate(9 * mib).value();
    CHECK(pool.info().reserved <= 10 * mib);
    all.release(a);
}

TEST_CASE("a buffer that is exported by one context can be read in others, after its end too")
{
    std::vector<std::uint8_t> data(3 * mib + 17);
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<std::uint8_t>(i * 7);
    unique_fd fd;
    {
        fixture first;
        CHECK(first.driver.context->can_export());
        const any_ref made = first.exportable(data.size());
        first.write(made, data);
        auto got = first.driver.context->export_buffer(made, memory_access::read_only);
        REQUIRE_MESSAGE(got, got.error().message());
        fd = std::move(got).value();
        CHECK(first.read(made) == data);
        CHECK(first.driver.context->live_buffers() == 1);
    }
    fixture a, b;
    for (fixture* f : {&a, &b}) {
        const auto made =
            f->driver.context->import_buffer(unique_fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)), {.count = data.size()});
        REQUIRE_MESSAGE(made, made.error().message());
        CHECK(f->read(made.value()) == data);
        CHECK(f->driver.context->live_buffers() == 1);
        const auto free = f->driver.context->memory().free;
        f->driver.context->release(made.value());
        CHECK(f->driver.context->memory().free == free + data.size());
    }
}

TEST_CASE("memory that is exported for writers is changed by one context for the next, with any element type")
{
    unique_fd fd;
    {
        fixture first;
        const any_ref made = first.exportable(4096);
        first.write(made, std::vector<std::uint8_t>(4096, 0));
        auto got = first.driver.context->export_buffer(made, memory_access::read_write);
        REQUIRE_MESSAGE(got, got.error().message());
        fd = std::move(got).value();
        // It can still be written here.
        first.write(made, std::vector<std::uint8_t>(4096, 1));
    }
    for (std::uint32_t generation = 1; generation <= 3; ++generation) {
        fixture f;
        auto& c = *f.driver.context;
        CHECK(errc_of(c.import_buffer(unique_fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)), {.count = 4096}).error()) ==
              errc::invalid_argument);
        const auto made = c.import_buffer(unique_fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)),
                                          {.count = 1024, .type = dtype::u32, .access = memory_access::read_write});
        REQUIRE_MESSAGE(made, made.error().message());
        CHECK(made.value().type == dtype::u32);
        CHECK(made.value().size == 1024);
        using read_op = detail::read_op<std::uint32_t>;
        using write_op = detail::write_op<std::uint32_t>;
        const auto elements = ref<std::uint32_t>::from_raw(made.value());
        std::vector<std::uint32_t> data(1024);
        test::exec<read_op> read(read_op{elements, data.data(), data.size()}, exec_options{});
        REQUIRE_FALSE(f.driver.outcome_of(read));
        CHECK(data == std::vector<std::uint32_t>(1024, 0x01010101U * generation));
        std::ranges::fill(data, 0x01010101U * (generation + 1));
        test::exec<write_op> write(write_op{elements, data.data(), data.size()}, exec_options{});
        REQUIRE_FALSE(f.driver.outcome_of(write));
    }
}

TEST_CASE("only whole exportable buffers that no op uses are exported")
{
    fixture f;
    auto& c = *f.driver.context;
    const any_ref ordinary = f.driver.allocate(4096, dtype::u8);
    CHECK(errc_of(c.export_buffer(ordinary, memory_access::read_only).error()) == errc::invalid_argument);
    CHECK(errc_of(c.export_buffer({}, memory_access::read_only).error()) == errc::invalid_argument);
    const any_ref made = f.exportable(4096);
    any_ref part = made;
    part.size = 100;
    CHECK(errc_of(c.export_buffer(part, memory_access::read_only).error()) == errc::invalid_argument);
    part = made;
    part.generation += 1;
    CHECK(errc_of(c.export_buffer(part, memory_access::read_only).error()) == errc::stale_ref);

    test::gate gate;
    test::hold<in<std::uint8_t>> user(test::hold_lane{&f.world, gate},
                                      std::tuple(in<std::uint8_t>(ref<std::uint8_t>::from_raw(made))));
    f.driver.submit(user);
    CHECK(errc_of(c.export_buffer(made, memory_access::read_only).error()) == errc::invalid_argument);
    gate.open();
    f.driver.run_until([&] { return f.driver.has_ended(user); });
    CHECK(c.export_buffer(made, memory_access::read_only));
    // Once.
    CHECK(errc_of(c.export_buffer(made, memory_access::read_only).error()) == errc::invalid_argument);
}

TEST_CASE("what is not exported memory is not imported")
{
    fixture f(mib);
    auto& c = *f.driver.context;
    CHECK(errc_of(c.import_buffer(unique_fd(), {.count = 4096}).error()) == errc::invalid_argument);
    const auto shared = detail::shared_memory::create(4096, "test").value();
    CHECK(errc_of(c.import_buffer(unique_fd(::fcntl(shared.fd(), F_DUPFD_CLOEXEC, 3)), {.count = 4096}).error()) ==
          errc::invalid_argument);
    // Beyond the limit.
    auto large = detail::sealed_memory::create(2 * mib, "test").value().seal(memory_access::read_only);
    REQUIRE(large);
    CHECK(errc_of(c.import_buffer(std::move(large).value(), {.count = 2 * mib}).error()) == errc::out_of_memory);
    CHECK(c.live_buffers() == 0);
    CHECK(c.accepting());
}

TEST_CASE("a released buffer is unmapped after the ops that use it")
{
    fixture f;
    auto& c = *f.driver.context;
    auto fd = detail::sealed_memory::create(mib, "test").value().seal(memory_access::read_only);
    REQUIRE(fd);
    const auto before = c.memory().free;
    const any_ref made = c.import_buffer(std::move(fd).value(), {.count = mib}).value();
    test::gate gate;
    test::hold<in<std::uint8_t>> user(test::hold_lane{&f.world, gate},
                                      std::tuple(in<std::uint8_t>(ref<std::uint8_t>::from_raw(made))));
    f.driver.submit(user);
    c.release(made);
    CHECK(c.memory().free == before - mib);
    gate.open();
    f.driver.run_until([&] { return f.driver.has_ended(user) && c.memory().free == before; });
    CHECK(c.live_buffers() == 0);
}

TEST_SUITE_END();

} // namespace test_host_exportable_memory
