#include "cuda/landing_marks.hpp"

#include "cuda/backend.hpp"
#include "support/fake_cuda.hpp"

#include <doctest/doctest.h>

using namespace coaccel;
using test::fake_cuda;
using cuda_backend = coaccel::cuda::backend;

namespace {

struct marked_backend {
    explicit marked_backend(fake_cuda& driver)
    {
        cuda_backend::options o;
        o.driver = &driver.api();
        o.marks = true;
        auto created = cuda_backend::create(o);
        REQUIRE(created);
        made = std::move(created).value();
    }

    cuda_backend* operator->() const { return made.get(); }

    cuda_backend::stream stream()
    {
        const auto inside = made->enter();
        auto s = made->make_stream(priority::normal);
        REQUIRE(s);
        return s.value();
    }

    std::unique_ptr<cuda_backend> made;
};

fake_cuda::settings stepped()
{
    fake_cuda::settings s;
    s.how = fake_cuda::mode::stepped;
    return s;
}

} // namespace

TEST_SUITE_BEGIN("landing_marks");

TEST_CASE("each stream has a word of its own, until there are no more")
{
    fake_cuda driver;
    const marked_backend b(driver);
    const auto inside = b->enter();
    cuda::landing_marks marks(driver.api());
    CHECK(marks.take().host == nullptr);
    marks.map();
    std::uint32_t* last = nullptr;
    int count = 0;
    for (auto m = marks.take(); m.host; m = marks.take(), ++count) {
        CHECK(m.host != last);
        CHECK(*m.host == 0);
        CHECK(m.device == reinterpret_cast<CUdeviceptr>(m.host));
        last = m.host;
    }
    CHECK(count == 64);
    marks.destroy();
    CHECK(marks.take().host == nullptr);
}

TEST_CASE("where memory cannot be registered or mapped there are none")
{
    for (const char* function : {"cuMemHostRegister", "cuMemHostGetDevicePointer"}) {
        fake_cuda driver;
        const marked_backend b(driver);
        const auto inside = b->enter();
        driver.fail(function, CUDA_ERROR_NOT_SUPPORTED);
        cuda::landing_marks marks(driver.api());
        marks.map();
        CHECK(marks.take().host == nullptr);
    }
}

TEST_CASE("work that is alone on its stream is seen to end by its mark, other work by its event")
{
    fake_cuda driver(stepped());
    marked_backend b(driver);
    auto s = b.stream();
    const auto inside = b->enter();
    cuda_backend::event first;
    cuda_backend::event second;
    REQUIRE_FALSE(b->record(first, s));
    REQUIRE_FALSE(b->record(second, s));
    CHECK(driver.calls("cuStreamWriteValue32") == 1);
    CHECK(driver.calls("cuEventRecord") == 1);
    CHECK(b->query(first).value() == progress::pending);
    driver.run_all();
    CHECK(b->query(second).value() == progress::passed);
    CHECK(driver.calls("cuEventQuery") == 1);
    // The mark of the next does not hide that the first has passed.
    cuda_backend::event third;
    REQUIRE_FALSE(b->record(third, s));
    CHECK(driver.calls("cuStreamWriteValue32") == 2);
    CHECK(b->query(third).value() == progress::pending);
    CHECK(b->query(first).value() == progress::passed);
    driver.run_all();
    CHECK(b->query(third).value() == progress::passed);
    CHECK(b->query(first).value() == progress::passed);
    CHECK(driver.calls("cuEventQuery") == 1);
}

TEST_CASE("another stream can wait for what only has a mark")
{
    fake_cuda driver(stepped());
    marked_backend b(driver);
    auto s = b.stream();
    auto other = b.stream();
    const auto inside = b->enter();
    const auto handles = driver.streams();
    const CUstream native = handles[handles.size() - 2].handle;
    const CUstream native_other = handles.back().handle;
    cuda_backend::event before;
    REQUIRE_FALSE(b->record(before, s));
    REQUIRE_FALSE(b->wait(other, before));
    cuda_backend::event after;
    REQUIRE_FALSE(b->record(after, other));
    CHECK_FALSE(driver.step(native_other));
    CHECK(driver.step(native));
    CHECK(driver.step(native));
    driver.run_all();
    CHECK(b->query(after).value() == progress::passed);
}

TEST_CASE("a stream that cannot write marks has events instead")
{
    fake_cuda driver;
    marked_backend b(driver);
    auto s = b.stream();
    const auto inside = b->enter();
    driver.fail("cuStreamWriteValue32", CUDA_ERROR_NOT_SUPPORTED);
    for (int i = 0; i < 3; ++i) {
        cuda_backend::event e;
        REQUIRE_FALSE(b->record(e, s));
        REQUIRE_FALSE(b->synchronize(e));
        CHECK(b->query(e).value() == progress::passed);
    }
    CHECK(driver.calls("cuStreamWriteValue32") == 1);
    CHECK(driver.calls("cuEventRecord") == 3);
}

TEST_CASE("a fault behind which no mark is written comes to light by looking")
{
    fake_cuda driver(stepped());
    marked_backend b(driver);
    auto s = b.stream();
    const auto inside = b->enter();
    cuda_backend::event e;
    REQUIRE_FALSE(b->record(e, s));
    driver.kill(CUDA_ERROR_ILLEGAL_ADDRESS);
    int looks = 0;
    auto seen = b->query(e);
    for (; seen && looks < 1000; ++looks)
        seen = b->query(e);
    CHECK(looks < 100);
    CHECK(is_context_lost(seen.error()));
}

TEST_SUITE_END();
