#include "worker/parent/kernel_sender.hpp"

#include "../jit/support.hpp"
#include "outgoing_ring.hpp"
#include "support/context_driver.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace test_worker_kernel_sender {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using test::exec;

/// Each kernel has a name and a symbol of one byte.
jit::kernel kernel(std::size_t bytes)
{
    return test::make_kernel(jit::compile_options("k"), "s", std::string(bytes, 'x'));
}

struct fixture final : test::outgoing_ring {
    explicit fixture(const image_limits& limits = {}) : sender(out, limits) {}

    error_code send(const jit::kernel& k)
    {
        const exec<jit::launch_op<>> r(jit::launch(k, {}), exec_options{});
        return sender.send(r);
    }

    struct received {
        std::vector<std::uint64_t> images;
        std::string code;
        std::vector<std::uint64_t> forgotten;
    };

    /// What the worker has received since the last call.
    received take()
    {
        received all;
        while (read()) {
            decoder in(record);
            message_type what{};
            REQUIRE(in.get(what, message_type::image, message_type::forget));
            if (what == message_type::forget) {
                std::uint64_t id = 0;
                REQUIRE((in.get(id) && in.at_end()));
                all.forgotten.push_back(id);
                continue;
            }
            image_frame f;
            REQUIRE(get_image(in, f));
            CHECK(f.offset == (f.offset == 0 ? 0 : all.code.size()));
            if (f.offset == 0)
                all.images.push_back(f.id);
            all.code.append(reinterpret_cast<const char*>(f.part.data()), f.part.size());
        }
        return all;
    }

    kernel_sender sender;
};

} // namespace

TEST_SUITE_BEGIN("kernel_sender");

TEST_CASE("a request without kernels sends nothing")
{
    fixture f;
    const exec<memory::fill<float>> r(memory::fill<float>{}, exec_options{});
    CHECK_FALSE(f.sender.send(r));
    CHECK(f.take().images.empty());
}

TEST_CASE("a kernel is sent once")
{
    fixture f;
    const auto a = kernel(10);
    const auto b = kernel(20);
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(f.send(a));
        CHECK_FALSE(f.send(b));
    }
    const auto got = f.take();
    CHECK(got.images == std::vector<std::uint64_t>{a.id(), b.id()});
    CHECK(got.code == std::string(30, 'x'));
}

TEST_CASE("large code is sent in parts")
{
    fixture f;
    const auto k = kernel(60'000);
    CHECK_FALSE(f.send(k));
    const auto got = f.take();
    CHECK(got.images == std::vector<std::uint64_t>{k.id()});
    CHECK(got.code == std::string(60'000, 'x'));
}

TEST_CASE("a kernel that no longer exists is left to the worker")
{
    fixture f;
    std::optional<jit::kernel> k = kernel(10);
    const auto op = jit::launch(*k, {});
    k.reset();
    // A request keeps the kernels that exist when it is made.
    const exec<jit::launch_op<>> r(op, exec_options{});
    CHECK_FALSE(f.sender.send(r));
    CHECK(f.take().images.empty());
}

TEST_CASE("a kernel beyond the limits is refused, and nothing is sent")
{
    fixture f({.bytes_each = 100});
    CHECK(f.send(kernel(101)) == errc::invalid_argument);
    CHECK(f.take().images.empty());
}

TEST_CASE("destroyed kernels make room for others")
{
    fixture f({.bytes = 2 * 42});
    const auto first = kernel(40);
    std::optional<jit::kernel> second = kernel(40);
    const auto third = kernel(40);
    CHECK_FALSE(f.send(first));
    CHECK_FALSE(f.send(*second));
    CHECK(f.send(third) == errc::invalid_argument);
    CHECK(f.take().images.size() == 2);
    const auto gone = second->id();
    second.reset();
    CHECK_FALSE(f.send(third));
    const auto got = f.take();
    CHECK(got.forgotten == std::vector<std::uint64_t>{gone});
    CHECK(got.images == std::vector<std::uint64_t>{third.id()});
}

TEST_CASE("destroyed kernels are forgotten before the worker is full")
{
    fixture f;
    std::size_t images = 0, forgotten = 0, most = 0;
    for (int i = 0; i < 500; ++i) {
        CHECK_FALSE(f.send(kernel(10)));
        const auto got = f.take();
        images += got.images.size();
        forgotten += got.forgotten.size();
        most = std::max(most, images - forgotten);
    }
    CHECK(images == 500);
    CHECK(most < 100);
}

TEST_SUITE_END();

} // namespace test_worker_kernel_sender
