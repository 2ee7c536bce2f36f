#include "cuda/memory/exportable_memory.hpp"

#include "cuda/driver/error.hpp"
#include "cuda_world.hpp"
#include "memory_support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/resource.h>
#include <vector>

namespace test_cuda_exportable_memory {

namespace {

using namespace coaccel;
using coaccel::detail::unique_fd;
using cuda::device_memory;
using cuda::exportable_memory;

constexpr std::size_t mib = std::size_t(1) << 20;

struct fixture : test::fake_context {
    explicit fixture(std::uint64_t limit = 0, std::uint64_t total = 64 * mib, int device = 0)
        : fake_context({.devices = 2, .total_memory = total}), memory(api, helpers, [this] { told.add(); }),
          exportable(
              api, helpers, memory,
              [this](CUresult r) {
                  if (cuda::is_sticky(r))
                      helpers.context_died();
                  return cuda::make_error(r);
              },
              [this] { told.add(); })
    {
        cuda_options o;
        o.memory_limit = limit;
        pool = device_memory::make_pool(api, 0, o).value();
        memory.use(pool, growth, o);
        REQUIRE(supported(device));
        REQUIRE_FALSE(exportable.use(device));
    }

    ~fixture()
    {
        helpers.stop();
        if (fake.dead())
            return;
        exportable.destroy();
        memory.destroy();
        (void)api.cuMemPoolDestroy(pool);
    }

    bool supported(int device) const
    {
        bool is = false;
        CHECK(exportable_memory::find_support(api, device, is) == CUDA_SUCCESS);
        return is;
    }

    result<void*> allocate(std::size_t bytes)
    {
        return until_answered([&] { return exportable.allocate(bytes); });
    }

    unique_fd exported(void* p, memory_access access = memory_access::read_only)
    {
        auto made = exportable.export_memory(p, access);
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    CUresult set(void* p, unsigned char value, std::size_t bytes)
    {
        const CUresult r = api.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(p), value, bytes, stream);
        return r == CUDA_SUCCESS ? api.cuStreamSynchronize(stream) : r;
    }

    memory_info info()
    {
        memory_info i;
        memory.fill(i);
        return i;
    }

    CUmemoryPool pool = nullptr;
    device_memory memory;
    exportable_memory exportable;
};

bool is_all(const void* p, unsigned char value, std::size_t bytes)
{
    const auto* at = static_cast<const unsigned char*>(p);
    return std::all_of(at, at + bytes, [value](unsigned char c) { return c == value; });
}

} // namespace

TEST_SUITE_BEGIN("cuda exportable_memory");

TEST_CASE("memory is made on the thread pool, with whole units of the driver")
{
    fixture f;
    CHECK(f.exportable.allocate(3 * mib).value() == nullptr);
    void* const p = f.allocate(3 * mib).value();
    CHECK(f.fake.calls("cuMemCreate") == 1);
    CHECK(f.fake.allocated() == 4 * mib);
    CHECK(f.set(p, 5, 3 * mib) == CUDA_SUCCESS);
    CHECK(is_all(p, 5, 3 * mib));
    f.exportable.release(p);
    CHECK(f.fake.allocated() == 0);
}

TEST_CASE("two requests of one size get memory one after the other")
{
    fixture f;
    CHECK(f.exportable.allocate(2 * mib).value() == nullptr);
    CHECK(f.exportable.allocate(2 * mib).value() == nullptr);
    void* const p = f.allocate(2 * mib).value();
    void* const q = f.allocate(2 * mib).value();
    CHECK(p != q);
    CHECK(f.fake.calls("cuMemCreate") == 2);
}

TEST_CASE("exported memory is read-only in the context that made it and in all others, whatever became of the first")
{
    for (const bool faulted : {false, true}) {
        CAPTURE(faulted);
        unique_fd fd;
        {
            fixture f;
            void* const p = f.allocate(5 * mib).value();
            REQUIRE(f.set(p, 7, 5 * mib) == CUDA_SUCCESS);
            fd = f.exported(p);
            CHECK((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
            CHECK(is_all(p, 7, 5 * mib));
            if (faulted)
                CHECK(f.set(p, 8, 1) == CUDA_ERROR_ILLEGAL_ADDRESS);
        }
        for (int i = 0; i < 3; ++i) {
            fixture f;
            const auto p = f.exportable.import_memory(fd, 5 * mib, memory_access::read_only);
            REQUIRE_MESSAGE(p, p.error().message());
            CHECK(is_all(p.value(), 7, 5 * mib));
            CHECK(f.fake.leaks().size() > 0);
            if (i == 1) {
                CHECK(f.set(p.value(), 8, 1) == CUDA_ERROR_ILLEGAL_ADDRESS);
            } else if (i == 2) {
                f.exportable.release(p.value());
                CHECK(f.fake.allocated() == 0);
            }
        }
    }
}

TEST_CASE("memory that is exported for writing can be written by every context")
{
    unique_fd fd;
    {
        fixture f;
        void* const p = f.allocate(2 * mib).value();
        REQUIRE(f.set(p, 1, 2 * mib) == CUDA_SUCCESS);
        fd = f.exported(p, memory_access::read_write);
        REQUIRE(f.set(p, 2, mib) == CUDA_SUCCESS);
    }
    fixture f;
    void* const p = f.exportable.import_memory(fd, 2 * mib, memory_access::read_write).value();
    CHECK(is_all(p, 2, mib));
    CHECK(is_all(static_cast<char*>(p) + mib, 1, mib));
    CHECK(f.set(p, 3, 2 * mib) == CUDA_SUCCESS);
    CHECK(is_all(p, 3, 2 * mib));
}

TEST_CASE("memory counts as used until it is exported, and towards the limit until it is released")
{
    fixture f(10 * mib);
    void* const p = f.allocate(3 * mib).value();
    CHECK(f.info().used == 4 * mib);
    CHECK(f.info().high_water == 4 * mib);
    CHECK(f.info().reserved >= 4 * mib);
    CHECK(f.memory.use().used == 4 * mib);
    const auto fd = f.exported(p);
    CHECK(f.info().used == 0);
    CHECK(f.info().high_water == 0);
    void* const q = f.exportable.import_memory(fd, 3 * mib, memory_access::read_only).value();
    CHECK(f.info().used == 0);
    CHECK(f.allocate(3 * mib).error() == errc::out_of_memory);
    CHECK(f.exportable.import_memory(fd, 3 * mib, memory_access::read_only).error() == errc::out_of_memory);
    CHECK(f.memory.allocate(f.stream, 3 * mib, memory_kind::device).error() == errc::out_of_memory);
    f.exportable.release(q);
    void* const r = f.allocate(6 * mib).value();
    CHECK(f.info().used == 6 * mib);
    f.exportable.release(r);
    f.exportable.release(p);
    CHECK(f.info().used == 0);
    CHECK(f.fake.allocated() == 0);
}

TEST_CASE("unused memory of the pool is given up for it")
{
    fixture f(0, 16 * mib);
    void* const kept =
        f.until_answered([&] { return f.memory.allocate(f.stream, 10 * mib, memory_kind::device); }).value();
    REQUIRE(f.memory.release(f.stream, kept, 10 * mib, memory_kind::device) == CUDA_SUCCESS);
    CHECK(f.allocate(12 * mib));
    CHECK(f.allocate(12 * mib).error() == errc::out_of_memory);
    CHECK(f.allocate(2 * mib));
}

TEST_CASE("what is not memory of this device and size is not imported, and nothing of it remains")
{
    fixture f;
    CHECK(errc_of(f.exportable.import_memory(unique_fd(), mib, memory_access::read_only).error()) ==
          errc::invalid_argument);
    const unique_fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    CHECK(errc_of(f.exportable.import_memory(file, mib, memory_access::read_only).error()) == errc::invalid_argument);
    const auto fd = f.exported(f.allocate(2 * mib).value());
    const auto larger = f.exportable.import_memory(fd, 3 * mib, memory_access::read_only);
    CHECK(errc_of(larger.error()) == errc::invalid_argument);
    CHECK(larger.error().message().find("memory.import: the memory cannot be mapped: cuMemMap: ") == 0);
    CHECK(f.fake.allocated() == 2 * mib);
    CHECK(f.exportable.import_memory(fd, 2 * mib, memory_access::read_only));
    // Memory of the first device on the second one.
    REQUIRE_FALSE(f.exportable.use(1));
    CHECK(errc_of(f.exportable.import_memory(fd, 2 * mib, memory_access::read_only).error()) == errc::invalid_argument);
    REQUIRE_FALSE(f.exportable.use(0));
    CHECK(f.exportable.export_memory(&f, memory_access::read_only).error() == errc::invalid_argument);
}

TEST_CASE("an unknown error for a descriptor does not mean that the context is lost")
{
    fixture f;
    cuda::driver_api table = f.api;
    table.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType) {
        return CUDA_ERROR_UNKNOWN;
    };
    int checked = 0;
    exportable_memory other(
        table, f.helpers, f.memory,
        [&](CUresult r) {
            ++checked;
            return cuda::make_error(r);
        },
        [] {});
    REQUIRE_FALSE(other.use(0));
    checked = 0;
    const auto refused = other.import_memory(unique_fd(), mib, memory_access::read_only);
    CHECK(errc_of(refused.error()) == errc::invalid_argument);
    CHECK_FALSE(is_context_lost(refused.error()));
    CHECK(checked == 0);
}

TEST_CASE("whichever call of an import fails, the error is that of the import, and nothing remains")
{
    unique_fd fd;
    {
        fixture f;
        fd = f.exported(f.allocate(2 * mib).value());
    }
    for (const char* function : {"cuMemImportFromShareableHandle", "cuMemGetAllocationPropertiesFromHandle",
                                 "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuMemRelease"}) {
        CAPTURE(function);
        fixture f;
        f.fake.fail(function, CUDA_ERROR_NOT_PERMITTED);
        const auto refused = f.exportable.import_memory(fd, 2 * mib, memory_access::read_only);
        REQUIRE_FALSE(refused);
        CHECK(errc_of(refused.error()) == errc::invalid_argument);
        CHECK(refused.error().message().find(function) != std::string::npos);
        f.fake.fail(function, CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(f.exportable.import_memory(fd, 2 * mib, memory_access::read_only).error() == errc::out_of_memory);
        // A handle that the driver does not release is lost.
        if (std::string_view(function) == "cuMemRelease") {
            CHECK(f.fake.violations().empty());
            continue;
        }
        CHECK(f.fake.allocated() == 0);
        CHECK(f.exportable.import_memory(fd, 2 * mib, memory_access::read_only));
    }
}

TEST_CASE("whichever call of an allocation or export fails, the context goes on without it")
{
    for (const char* function : {"cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"}) {
        CAPTURE(function);
        fixture f;
        f.fake.fail(function, CUDA_ERROR_NOT_PERMITTED);
        CHECK(f.allocate(2 * mib).error() == cuda::make_error(CUDA_ERROR_NOT_PERMITTED));
        CHECK(f.fake.allocated() == 0);
        CHECK(f.info().used == 0);
        CHECK(f.allocate(2 * mib));
    }
    for (const char* function : {"cuMemExportToShareableHandle", "cuMemSetAccess"}) {
        CAPTURE(function);
        fixture f;
        void* const p = f.allocate(2 * mib).value();
        f.fake.fail(function, CUDA_ERROR_NOT_PERMITTED);
        CHECK(f.exportable.export_memory(p, memory_access::read_only).error() ==
              cuda::make_error(CUDA_ERROR_NOT_PERMITTED));
        CHECK(f.set(p, 3, mib) == CUDA_SUCCESS);
        CHECK(f.info().used == 2 * mib);
        (void)f.exported(p);
        CHECK(f.exportable.export_memory(p, memory_access::read_only).error() == errc::invalid_argument);
    }
}

TEST_CASE("a context that dies at any call is called no more")
{
    unique_fd fd;
    {
        fixture f;
        fd = f.exported(f.allocate(2 * mib).value());
    }
    for (const char* function :
         {"cuMemCreate", "cuMemImportFromShareableHandle", "cuMemGetAllocationPropertiesFromHandle",
          "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuMemRelease", "cuMemExportToShareableHandle",
          "cuMemUnmap", "cuMemAddressFree"}) {
        CAPTURE(function);
        fixture f;
        f.fake.fail(function, CUDA_ERROR_ILLEGAL_ADDRESS);
        const auto lost = [&](const auto& r) { return !r && is_context_lost(r.error()); };
        const auto imported = f.exportable.import_memory(fd, 2 * mib, memory_access::read_only);
        if (!imported) {
            CHECK(lost(imported));
        } else {
            const auto made = f.allocate(2 * mib);
            if (!made)
                CHECK(lost(made));
            else if (const auto again = f.exportable.export_memory(made.value(), memory_access::read_only); !again)
                CHECK(lost(again));
            else
                f.exportable.release(made.value());
        }
        CHECK(f.fake.dead());
        CHECK(f.fake.calls_after_death() == 0);
    }
}

TEST_CASE("a process without free descriptors cannot export, and the memory can still be used")
{
    fixture f;
    void* const p = f.allocate(2 * mib).value();
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const auto refused = f.exportable.export_memory(p, memory_access::read_only);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_FALSE(refused);
    CHECK(f.set(p, 3, mib) == CUDA_SUCCESS);
    (void)f.exported(p);
}

TEST_CASE("a buffer that is exported by one context can be read in the next one, and written in none")
{
    std::vector<std::uint8_t> data(3 * mib + 17);
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<std::uint8_t>(i * 7);
    using write_op = detail::write_op<std::uint8_t>;
    using read_op = detail::read_op<std::uint8_t>;
    const auto write = [&](test::context_driver& on, const any_ref& to) {
        test::exec<write_op> r(write_op{ref<std::uint8_t>::from_raw(to), data.data(), data.size()}, exec_options{});
        return on.outcome_of(r);
    };
    const auto read = [&](test::context_driver& on, const any_ref& from) {
        std::vector<std::uint8_t> got(from.size);
        test::exec<read_op> r(read_op{ref<std::uint8_t>::from_raw(from), got.data(), got.size()}, exec_options{});
        REQUIRE_FALSE(on.outcome_of(r));
        return got;
    };
    unique_fd fd;
    {
        test::cuda_world world;
        test::context_driver on(world);
        REQUIRE(on.context->can_export());
        test::allocate_request r(data.size(), dtype::u8, memory_kind::exportable);
        REQUIRE_FALSE(on.outcome_of(r));
        REQUIRE_FALSE(write(on, r.made.ref));
        CHECK(on.context->memory().used >= data.size());
        auto made = on.context->export_buffer(r.made.ref, memory_access::read_only);
        REQUIRE_MESSAGE(made, made.error().message());
        fd = std::move(made).value();
        CHECK(on.context->memory().used < mib);
        CHECK(read(on, r.made.ref) == data);
        on.context->release(r.made.ref);
        CHECK(on.context->live_buffers() == 0);
    }
    test::cuda_world world;
    test::context_driver on(world);
    const auto copy = [&] { return unique_fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)); };
    const auto bad =
        on.context->import_buffer(unique_fd(::open("/dev/null", O_RDWR | O_CLOEXEC)), {.count = data.size()});
    CHECK(errc_of(bad.error()) == errc::invalid_argument);
    CHECK(on.context->accepting());
    const auto made = on.context->import_buffer(copy(), {.count = data.size()});
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK(read(on, made.value()) == data);
    CHECK(is_context_lost(write(on, made.value())));
    CHECK_FALSE(on.context->accepting());
}

TEST_SUITE_END();

} // namespace test_cuda_exportable_memory
