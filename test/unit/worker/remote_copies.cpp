#include "context/buffers/operands.hpp"
#include "fake_worker.hpp"

#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace test_worker_remote_copies {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using test::exec;
using fixture = test::remote_fixture;

exec<memory::fill<float>> fill(ref<float> r)
{
    return exec<memory::fill<float>>(memory::fill<float>{r, 1.0f}, exec_options{});
}

} // namespace

TEST_SUITE_BEGIN("remote_context");

TEST_CASE("a small copy is sent with its request, in both directions")
{
    fixture f;
    std::vector<float> data(100);
    std::iota(data.begin(), data.end(), 1.0f);
    exec<detail::write_op<float>> write(detail::write_op<float>{f.made(3, 100), data.data(), 100}, exec_options{});
    f.driver.submit(write);
    const auto& s = f.next();
    REQUIRE(s.ops[0].what == op_kind::write);
    CHECK(s.ops[0].ref == f.buffer(3, 100));
    REQUIRE(s.ops[0].count == 100);
    CHECK(std::memcmp(f.world.memory->at(s.ops[0].offset), data.data(), 400) == 0);
    f.answer(s.id);
    CHECK_FALSE(f.driver.outcome(write));

    std::vector<float> got(100);
    exec<detail::read_op<float>> read(detail::read_op<float>{f.floats(3, 100), got.data(), 100}, exec_options{});
    f.driver.submit(read);
    const auto& t = f.next();
    REQUIRE(t.ops[0].what == op_kind::read);
    std::memcpy(f.world.memory->at(t.ops[0].offset), data.data(), 400);
    f.answer(t.id);
    CHECK_FALSE(f.driver.outcome(read));
    CHECK(got == data);

    std::vector<float> untouched(100);
    exec<detail::read_op<float>> failed(detail::read_op<float>{f.floats(3, 100), untouched.data(), 100},
                                        exec_options{});
    f.driver.submit(failed);
    f.answer(f.next().id, errc::released_ref);
    CHECK(f.driver.outcome(failed) == errc::released_ref);
    CHECK(untouched == std::vector<float>(100));
    CHECK(f.world.memory->take(f.world.memory->bytes()));
}

TEST_CASE("a large write is sent in chunks, and later uses of its buffer follow the last chunk")
{
    fixture f;
    constexpr std::size_t n = std::size_t(1) << 20;
    std::vector<float> data(n);
    std::iota(data.begin(), data.end(), 1.0f);
    exec<detail::write_op<float>> write(detail::write_op<float>{f.made(3, n), data.data(), n}, exec_options{});
    auto after = fill(f.floats(3, n));
    auto apart = fill(f.floats(4, n));
    f.driver.submit(write);
    f.driver.submit(after);
    f.driver.context->release(f.buffer(3, n));
    f.driver.submit(apart);
    std::vector<float> arrived(n);
    std::size_t elements = 0;
    bool saw_apart = false;
    while (elements < n) {
        const auto& s = f.next();
        if (s.ops[0].what == op_kind::plain) {
            CHECK_FALSE(saw_apart);
            saw_apart = true;
            f.answer(s.id);
            continue;
        }
        REQUIRE(s.ops[0].what == op_kind::write);
        const auto& r = s.ops[0].ref;
        REQUIRE(r.size == s.ops[0].count);
        REQUIRE(r.offset + r.size <= n);
        std::memcpy(arrived.data() + r.offset, f.world.memory->at(s.ops[0].offset), r.size * 4);
        elements += r.size;
        f.answer(s.id);
    }
    CHECK(saw_apart);
    CHECK_FALSE(f.driver.outcome(apart));
    CHECK(arrived == data);
    f.driver.run_until([&] { return f.driver.has_ended(write); });
    CHECK_FALSE(f.driver.outcome(write));
    const auto& s = f.next();
    CHECK(s.ops[0].what == op_kind::plain);
    f.answer(s.id);
    CHECK_FALSE(f.driver.outcome(after));
    CHECK_FALSE(f.silent());
    CHECK(f.record[0] == std::byte(message_type::release));
    CHECK(f.world.memory->take(f.world.memory->bytes()));
}

TEST_CASE("a large read arrives in chunks, with replies in any order")
{
    fixture f;
    constexpr std::size_t n = std::size_t(1) << 19;
    std::vector<float> got(n);
    exec<detail::read_op<float>> read(detail::read_op<float>{f.made(3, n), got.data(), n}, exec_options{});
    f.driver.submit(read);
    struct part {
        std::uint64_t id;
        any_ref what;
        std::uint64_t at;
    };
    std::vector<part> parts;
    std::size_t seen = 0;
    while (seen < n || !parts.empty()) {
        while (seen < n && (parts.empty() || !f.silent())) {
            const auto& s = parts.empty() ? f.next() : f.decoded();
            parts.push_back({s.id, s.ops[0].ref, s.ops[0].offset});
            seen += s.ops[0].count;
        }
        const part p = parts.back();
        parts.pop_back();
        auto* to = reinterpret_cast<float*>(f.world.memory->at(p.at));
        std::iota(to, to + p.what.size, static_cast<float>(p.what.offset));
        f.answer(p.id);
    }
    f.driver.run_until([&] { return f.driver.has_ended(read); });
    CHECK_FALSE(f.driver.outcome(read));
    std::vector<float> expected(n);
    std::iota(expected.begin(), expected.end(), 0.0f);
    CHECK(got == expected);
}

TEST_CASE("pinned memory is transferred without a staging copy")
{
    fixture f;
    auto* pinned = static_cast<float*>(f.driver.context->pinned()->try_allocate(4096).value());
    REQUIRE(pinned);
    exec<detail::write_op<float>> write(detail::write_op<float>{f.made(3, 512), pinned + 512, 512}, exec_options{});
    f.driver.submit(write);
    const auto& s = f.next();
    CHECK(f.world.memory->at(s.ops[0].offset) == reinterpret_cast<std::byte*>(pinned + 512));
    f.answer(s.id);
    CHECK_FALSE(f.driver.outcome(write));
    f.driver.context->pinned()->release(pinned);
}

TEST_CASE("an invalid copy is refused before any part of it is sent")
{
    fixture f;
    constexpr std::uint64_t n = std::uint64_t(1) << 20;
    constexpr auto huge = ~std::uint64_t(0);
    const auto x = f.made(3, n);
    std::vector<float> data(n);
    const auto write = [&](const ref<float>& to, std::uint64_t count) {
        exec<detail::write_op<float>> r(detail::write_op<float>{to, data.data(), count}, exec_options{});
        return f.driver.outcome_of(r);
    };
    const auto download = [&](const ref<float>& from) {
        test::manual<detail::download_request<float>> r(from);
        return f.driver.outcome_of(r);
    };
    CHECK(write(x.subspan(1, n), n) == errc::out_of_bounds);
    CHECK(write(x.subspan(n, 10), 10) == errc::out_of_bounds);
    CHECK(write(x.subspan(0, 0), 0) == errc::invalid_argument);
    CHECK(download(x.subspan(10, huge)) == errc::out_of_bounds);
    CHECK(download(x.subspan(10, std::uint64_t(1) << 62)) == errc::out_of_bounds);
    auto lie = x.raw();
    lie.size = n + 1;
    CHECK(download(ref<float>::from_raw(lie)) == errc::out_of_bounds);
    lie = x.raw();
    lie.type = dtype::i32;
    CHECK(download(ref<float>::from_raw(lie)) == errc::wrong_dtype);
    lie = x.raw();
    ++lie.device;
    CHECK(download(ref<float>::from_raw(lie)) == errc::wrong_device);
    lie = x.raw();
    ++lie.generation;
    CHECK(download(ref<float>::from_raw(lie)) == errc::stale_ref);
    lie = x.raw();
    ++lie.version;
    CHECK(download(ref<float>::from_raw(lie)) == errc::released_ref);
    CHECK(download(ref<float>()) == errc::invalid_argument);
    f.driver.context->release(x.raw());
    CHECK(download(x) == errc::released_ref);
    CHECK_FALSE(f.silent());
    CHECK(f.record[0] == std::byte(message_type::release));
    CHECK(f.silent());
}

TEST_CASE("an upload that lost two workers refers to no buffer of either")
{
    std::vector<float> data(std::size_t(1) << 20);
    test::manual<detail::upload_request<float>> upload(std::span<const float>(data), exec_options{});
    {
        fixture f;
        f.driver.submit(upload);
        f.answer_made(f.next().id, f.buffer(3, data.size()));
        f.world.worker.block->replies.written = 1;
        f.expect_loss(errc::worker_corrupted);
    }
    fixture f;
    f.driver.submit(upload);
    (void)f.next();
    f.world.worker.block->replies.written = 1;
    f.expect_loss(errc::worker_corrupted);
    CHECK(detail::operand_of(upload.ops.back(), 0).device == 0);
}

TEST_SUITE_END();

} // namespace test_worker_remote_copies
