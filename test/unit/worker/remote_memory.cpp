#include "context/exported_memory.hpp"
#include "fake_worker.hpp"
#include "posix/sealed_memory.hpp"
#include "posix/shared_memory.hpp"
#include "support/sanitized.hpp"
#include "worker/protocol/memory_frames.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <sys/resource.h>
#include <unistd.h>

namespace test_worker_remote_memory {

// Memory that outlives the worker, in the parent.
namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::export_op;
using detail::exported_memory;
using detail::import_op;
using detail::sealed_memory;
using detail::unique_fd;

constexpr std::uint64_t bytes = 8192;

unique_fd sealed(std::uint64_t size = bytes)
{
    return sealed_memory::create(size, "test").value().seal(memory_access::read_only).value();
}

std::size_t descriptors_of_process()
{
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

struct fixture : test::remote_fixture {
    explicit fixture(exporting e = exporting::yes, const char* backend = "host")
        : remote_fixture({.backend = backend, .exporting = e})
    {}

    any_ref memory() const { return buffer(3, bytes, dtype::u8); }

    /// A buffer that the worker has made.
    ref<std::uint8_t> made()
    {
        test::make_buffers(driver, world.worker, {memory()});
        return ref<std::uint8_t>::from_raw(memory());
    }

    /// Starts an export, and returns the record that the worker gets.
    export_frame begin_export()
    {
        driver.submit(exporter);
        export_frame f;
        auto in = take(message_type::export_memory);
        REQUIRE(get_export(in, f));
        return f;
    }

    decoder take(message_type expected)
    {
        record = world.worker.take();
        decoder in(record);
        message_type what{};
        REQUIRE(in.get(what, expected, expected));
        return in;
    }

    std::shared_ptr<const exported_memory> got;
    test::exec<export_op> exporter{export_op{.buffer = made(), .to = &got}, exec_options{}};
};

struct import_fixture : test::remote_fixture {
    explicit import_fixture() : remote_fixture({.backend = "host", .exporting = exporting::yes}) {}

    import_frame begin_import()
    {
        driver.submit(importer);
        record = world.worker.take();
        decoder in(record);
        message_type what{};
        import_frame f;
        REQUIRE(in.get(what, message_type::import_memory, message_type::import_memory));
        REQUIRE(get_import(in, f));
        return f;
    }

    std::shared_ptr<const exported_memory> from =
        std::make_shared<const exported_memory>(exported_memory{sealed(), bytes});
    test::exec<import_op> importer{import_op{.from = &from}, exec_options{}};
};

} // namespace

TEST_SUITE_BEGIN("remote_memory");

TEST_CASE("an export asks the worker, and takes the descriptor that it sends")
{
    fixture f;
    const auto asked = f.begin_export();
    CHECK(asked.buffer == f.memory());
    REQUIRE_FALSE(f.world.worker.descriptors.send(asked.head.id, sealed().get()));
    f.answer(asked.head.id);
    CHECK_FALSE(f.driver.outcome(f.exporter));
    REQUIRE(f.got);
    CHECK(f.got->bytes == bytes);
    CHECK_FALSE(sealed_memory::check(f.got->descriptor, bytes, memory_access::read_only));
    CHECK(f.driver.losses == 0);
}

TEST_CASE("an export for writers takes only memory that can be written")
{
    for (const auto sent : {memory_access::read_only, memory_access::read_write}) {
        fixture f;
        std::shared_ptr<const exported_memory> got;
        test::exec<export_op> exporter{export_op{.buffer = ref<std::uint8_t>::from_raw(f.memory()),
                                                 .access = memory_access::read_write,
                                                 .to = &got},
                                       exec_options{}};
        f.driver.submit(exporter);
        export_frame asked;
        auto in = f.take(message_type::export_memory);
        REQUIRE(get_export(in, asked));
        CHECK(asked.access == memory_access::read_write);
        const auto fd = sealed_memory::create(bytes, "test").value().seal(sent).value();
        REQUIRE_FALSE(f.world.worker.descriptors.send(asked.head.id, fd.get()));
        f.answer(asked.head.id);
        if (sent == memory_access::read_only) {
            f.expect_loss(errc::worker_corrupted);
            continue;
        }
        CHECK_FALSE(f.driver.outcome(exporter));
        REQUIRE(got);
        CHECK(got->access == memory_access::read_write);
    }
}

TEST_CASE("a worker that cannot export says so, and goes on")
{
    fixture f;
    const auto asked = f.begin_export();
    f.answer(asked.head.id, errc::out_of_memory);
    CHECK(f.driver.outcome(f.exporter) == errc::out_of_memory);
    CHECK_FALSE(f.got);
    CHECK(f.driver.context->accepting());
}

TEST_CASE("wrong descriptors are a corrupted worker, and none of them is kept")
{
    using sender = std::function<void(descriptor_socket&, std::uint64_t id)>;
    struct bad {
        const char* name;
        sender send;
    };
    const auto shared = detail::shared_memory::create(bytes, "test").value();
    const bad all[] = {
        {"none", [](descriptor_socket&, std::uint64_t) {}},
        {"of another request",
         [](descriptor_socket& s, std::uint64_t id) { REQUIRE_FALSE(s.send(id + 1, sealed().get())); }},
        {"of smaller memory",
         [](descriptor_socket& s, std::uint64_t id) { REQUIRE_FALSE(s.send(id, sealed(bytes - 1).get())); }},
        {"of larger memory",
         [](descriptor_socket& s, std::uint64_t id) { REQUIRE_FALSE(s.send(id, sealed(bytes * 2).get())); }},
        {"of memory that its maker can change",
         [&](descriptor_socket& s, std::uint64_t id) { REQUIRE_FALSE(s.send(id, shared.fd())); }},
        {"of a file",
         [](descriptor_socket& s, std::uint64_t id) {
             const unique_fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
             REQUIRE_FALSE(s.send(id, file.get()));
         }},
        {"one too many",
         [](descriptor_socket& s, std::uint64_t id) {
             REQUIRE_FALSE(s.send(id, sealed().get()));
             REQUIRE_FALSE(s.send(id, sealed().get()));
         }},
    };
    for (const bad& b : all) {
        CAPTURE(b.name);
        fixture f;
        const auto asked = f.begin_export();
        const auto before = descriptors_of_process();
        b.send(f.world.worker.descriptors, asked.head.id);
        f.answer(asked.head.id);
        f.expect_loss(errc::worker_corrupted);
        CHECK(f.driver.outcome(f.exporter) == errc::context_lost);
        f.got.reset();
        CHECK(descriptors_of_process() == before);
    }
}

TEST_CASE("a descriptor is checked as the backend of the worker makes them")
{
    const unique_fd driver(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const char* backend : {"host", "cuda"})
        for (const bool of_driver : {false, true}) {
            CAPTURE(std::string(backend));
            CAPTURE(of_driver);
            fixture f(exporting::yes, backend);
            const auto asked = f.begin_export();
            const auto memory = sealed();
            REQUIRE_FALSE(f.world.worker.descriptors.send(asked.head.id, of_driver ? driver.get() : memory.get()));
            f.answer(asked.head.id);
            if (of_driver == (std::string_view(backend) == "cuda")) {
                CHECK_FALSE(f.driver.outcome(f.exporter));
                REQUIRE(f.got);
                CHECK(f.got->bytes == bytes);
            } else {
                f.expect_loss(errc::worker_corrupted);
                CHECK_FALSE(f.got);
            }
        }
}

TEST_CASE("a descriptor that comes with a failure, or before it was asked for, is a corrupted worker")
{
    {
        fixture f;
        const auto asked = f.begin_export();
        REQUIRE_FALSE(f.world.worker.descriptors.send(asked.head.id, sealed().get()));
        f.answer(asked.head.id, errc::out_of_memory);
        f.expect_loss(errc::worker_corrupted);
    }
    fixture f;
    REQUIRE_FALSE(f.world.worker.descriptors.send(1, sealed().get()));
    f.driver.submit(f.exporter);
    f.expect_loss(errc::worker_corrupted);
    CHECK(f.driver.outcome(f.exporter) == errc::context_lost);
}

TEST_CASE("a parent without free descriptors gets no memory, and the worker goes on" *
          doctest::skip(test::checks_objects))
{
    fixture f;
    const auto asked = f.begin_export();
    REQUIRE_FALSE(f.world.worker.descriptors.send(asked.head.id, sealed().get()));
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    f.answer(asked.head.id);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(f.driver.outcome(f.exporter) == errc::out_of_memory);
    CHECK_FALSE(f.got);
    CHECK(f.driver.context->accepting());
}

TEST_CASE("an import sends the descriptor before the record, and makes a buffer")
{
    import_fixture f;
    const auto asked = f.begin_import();
    CHECK(asked.buffer.count == bytes);
    const auto fd = f.world.worker.descriptors.receive(asked.head.id);
    REQUIRE(fd);
    CHECK_FALSE(sealed_memory::check(fd.value(), bytes, memory_access::read_only));
    const any_ref made = f.buffer(4, bytes, dtype::u8);
    f.answer_made(asked.head.id, made);
    CHECK_FALSE(f.driver.outcome(f.importer));
    CHECK(static_cast<const detail::allocation*>(f.importer.ops.front().reply)->ref == made);
    CHECK(f.driver.context->live_buffers() == 1);
}

TEST_CASE("an impossible buffer for an import is a corrupted worker")
{
    for (int i = 0; i < 4; ++i) {
        CAPTURE(i);
        import_fixture f;
        const auto asked = f.begin_import();
        any_ref made = f.buffer(4, bytes, dtype::u8);
        if (i == 0)
            made.size += 1;
        else if (i == 1)
            made.type = dtype::i8;
        else if (i == 2)
            made.generation += 1;
        else
            made.offset = 1;
        f.answer_made(asked.head.id, made);
        f.expect_loss(errc::worker_corrupted);
    }
}

TEST_CASE("a failed import makes nothing, and the worker goes on")
{
    import_fixture f;
    const auto asked = f.begin_import();
    f.answer(asked.head.id, errc::out_of_memory);
    CHECK(f.driver.outcome(f.importer) == errc::out_of_memory);
    CHECK(f.driver.context->live_buffers() == 0);
    CHECK(f.driver.context->accepting());
}

TEST_CASE("memory of a worker that dies stays with this process")
{
    std::shared_ptr<const exported_memory> kept;
    {
        fixture f;
        const auto asked = f.begin_export();
        REQUIRE_FALSE(f.world.worker.descriptors.send(asked.head.id, sealed().get()));
        f.answer(asked.head.id);
        kept = f.got;
        const auto process = f.driver.context->hardware().process;
        REQUIRE(::kill(process, SIGKILL) == 0);
        f.expect_loss(errc::worker_killed);
    }
    CHECK(sealed_memory::open(kept->descriptor, bytes, memory_access::read_only));
}

TEST_CASE("a worker whose backend cannot export is not asked")
{
    fixture f(exporting::no);
    CHECK_FALSE(f.driver.context->can_export());
    f.driver.submit(f.exporter);
    CHECK(f.driver.outcome(f.exporter) == errc::unsupported_op);
    test::allocate_request allocation(bytes, dtype::u8, memory_kind::exportable);
    f.driver.submit(allocation);
    CHECK(f.driver.outcome(allocation) == errc::unsupported_op);
    CHECK(f.silent());
}

TEST_SUITE_END();

} // namespace test_worker_remote_memory
