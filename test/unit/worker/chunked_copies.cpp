#include "worker/parent/chunked_copies.hpp"

#include "buffer_ref.hpp"
#include "support/told.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <vector>

namespace test_worker_chunked_copies {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using test::exec;

constexpr std::uint32_t device = 7;
constexpr std::uint64_t staging_bytes = std::uint64_t(4) << 20;
// The size of a piece in a staging area of this size.
constexpr std::uint64_t piece_bytes = std::uint64_t(256) << 10;
constexpr std::uint64_t n = std::uint64_t(1) << 20;

std::vector<float> numbers()
{
    std::vector<float> made(n);
    std::iota(made.begin(), made.end(), 1.0f);
    return made;
}

ref<float> buffer(std::uint32_t slot)
{
    return ref<float>::from_raw(test::buffer_ref(device, slot, n));
}

exec<detail::write_op<float>> write(std::uint32_t slot, const std::vector<float>& from)
{
    return exec<detail::write_op<float>>(detail::write_op<float>{buffer(slot), from.data(), from.size()},
                                         exec_options{});
}

exec<detail::read_op<float>> read(std::uint32_t slot, std::vector<float>& to)
{
    return exec<detail::read_op<float>>(detail::read_op<float>{buffer(slot), to.data(), to.size()}, exec_options{});
}

/// The copies; the test is their context and the worker.
struct fixture : copy_events {
    virtual ~fixture() = default;

    struct message {
        chunked_copies::piece* what;
        const detail::request* of;
        op_frame frame;
        bool first;
    };

    void send_piece(const piece_message& m) override { sent.push_back({&m.what, &m.of, m.frame, m.first}); }
    void copied(detail::request& r, const error_code& ec) noexcept override { ended.push_back({&r, ec}); }

    void start(detail::request& r) { copies.start(r, *view_transfer(r.ops.back())); }

    /// Waits for the copy threads until the condition is true.
    void run_until(const std::function<bool()>& done)
    {
        while (!done()) {
            REQUIRE(copies.copying());
            jobs.wait_for(++seen);
            (void)copies.take_copied();
        }
    }

    /// The next message to the worker.
    message next()
    {
        run_until([this] { return !sent.empty(); });
        message m = sent.front();
        sent.pop_front();
        return m;
    }

    std::byte* memory_of(const message& m) const { return memory->at(m.frame.offset); }

    bool all_memory_is_free() const
    {
        const auto all = memory->take(memory->bytes());
        if (all)
            memory->give_back(*all);
        return all.has_value();
    }

    struct outcome {
        detail::request* who;
        error_code ec;
    };

    std::deque<message> sent;
    std::vector<outcome> ended;
    test::told jobs;
    int seen = 0;
    context_end end;
    std::shared_ptr<staging> memory = staging::create(staging_bytes).value();
    chunked_copies copies{*memory, *this, end, 2, jobs.call()};
};

} // namespace

TEST_SUITE_BEGIN("chunked_copies");

TEST_CASE_FIXTURE(fixture, "a write is sent in pieces of the data, and ends with the last reply")
{
    const auto data = numbers();
    auto r = write(3, data);
    start(r);
    CHECK_FALSE(copies.empty());
    CHECK(copies.unsent(3));
    CHECK_FALSE(copies.unsent(4));
    std::vector<float> arrived(n);
    std::uint64_t elements = 0;
    while (elements < n) {
        CHECK(ended.empty());
        const auto m = next();
        CHECK(m.of == &r);
        CHECK(m.frame.what == op_kind::write);
        CHECK(m.frame.type == dtype::f32);
        CHECK(m.first == (m.frame.ref.offset == 0));
        REQUIRE(m.frame.count == piece_bytes / 4);
        REQUIRE(m.frame.ref.size == m.frame.count);
        std::memcpy(arrived.data() + m.frame.ref.offset, memory_of(m), piece_bytes);
        elements += m.frame.count;
        copies.replied(*m.what, {});
    }
    CHECK(arrived == data);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].who == &r);
    CHECK_FALSE(ended[0].ec);
    CHECK(copies.empty());
    CHECK_FALSE(copies.copying());
    CHECK(all_memory_is_free());
}

TEST_CASE_FIXTURE(fixture, "later requests may follow when all pieces are sent, before the replies arrive")
{
    const std::vector<float> data(piece_bytes / 2);
    auto r = write(3, data);
    start(r);
    const auto a = next();
    const auto b = next();
    CHECK_FALSE(copies.unsent(3));
    CHECK_FALSE(copies.empty());
    copies.replied(*b.what, {});
    CHECK(ended.empty());
    copies.replied(*a.what, {});
    CHECK(ended.size() == 1);
}

TEST_CASE_FIXTURE(fixture, "at most eight pieces of a copy are under way")
{
    const auto data = numbers();
    auto r = write(3, data);
    start(r);
    run_until([this] { return !copies.copying(); });
    CHECK(sent.size() == chunked_copy::most_under_way);
    copies.replied(*next().what, {});
    run_until([this] { return !copies.copying(); });
    CHECK(sent.size() == chunked_copy::most_under_way);
    end.finish();
    copies.take_all([](detail::request&) {});
    copies.give_back_memory();
}

TEST_CASE_FIXTURE(fixture, "a read is requested at once, and ends when the copy threads have copied the data")
{
    const auto data = numbers();
    std::vector<float> got(n);
    auto r = read(3, got);
    start(r);
    CHECK(sent.size() == chunked_copy::most_under_way);
    CHECK_FALSE(copies.copying());
    std::uint64_t elements = 0;
    while (elements < n) {
        run_until([this] { return !sent.empty(); });
        const auto m = sent.back();
        sent.pop_back();
        CHECK(m.frame.what == op_kind::read);
        std::memcpy(memory_of(m), data.data() + m.frame.ref.offset, m.frame.count * 4);
        elements += m.frame.count;
        copies.replied(*m.what, {});
        CHECK(copies.copying());
    }
    run_until([this] { return !ended.empty(); });
    CHECK_FALSE(ended[0].ec);
    CHECK(got == data);
    CHECK(all_memory_is_free());
}

TEST_CASE_FIXTURE(fixture, "a failed piece ends the copy with its error after the pieces that are under way")
{
    const auto data = numbers();
    auto r = write(3, data);
    start(r);
    run_until([this] { return !copies.copying(); });
    REQUIRE(sent.size() == chunked_copy::most_under_way);
    copies.replied(*next().what, errc::released_ref);
    CHECK_FALSE(copies.unsent(3));
    CHECK_FALSE(copies.copying());
    copies.replied(*next().what, errc::wrong_dtype);
    while (!sent.empty()) {
        CHECK(ended.empty());
        copies.replied(*next().what, {});
    }
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].ec == errc::released_ref);
    CHECK(all_memory_is_free());
}

TEST_CASE_FIXTURE(fixture, "a copy into a buffer that must be made first begins when the buffer exists")
{
    const auto data = numbers();
    test::manual<detail::upload_request<float>> r(std::span<const float>(data), exec_options{});
    auto& c = copies.start_after_allocation(r, *view_transfer(r.ops.back()));
    CHECK(&chunked_copies::request_of(c) == &r);
    copies.go_on();
    CHECK_FALSE(copies.copying());
    CHECK_FALSE(copies.unsent(3));
    static_cast<detail::allocation*>(r.ops.front().reply)->ref = buffer(3).raw();
    copies.allocated(c, {});
    CHECK(copies.unsent(3));
    CHECK(next().frame.ref.slot == 3);
    run_until([this] { return !copies.copying(); });
    end.finish();
    copies.take_all([](detail::request&) {});
    copies.give_back_memory();
    CHECK(all_memory_is_free());
    static_cast<detail::allocation*>(r.ops.front().reply)->ref = {};
}

TEST_CASE_FIXTURE(fixture, "a failed allocation ends the copy")
{
    const auto data = numbers();
    test::manual<detail::upload_request<float>> r(std::span<const float>(data), exec_options{});
    copies.allocated(copies.start_after_allocation(r, *view_transfer(r.ops.back())), errc::out_of_memory);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].ec == errc::out_of_memory);
    CHECK(copies.empty());
}

TEST_CASE_FIXTURE(fixture, "the memory of a download is made by a copy thread")
{
    test::manual<detail::download_request<float>> r(buffer(3));
    start(r);
    CHECK(sent.empty());
    CHECK(copies.copying());
    const auto first = next();
    CHECK(first.first);
    std::uint64_t elements = 0;
    for (auto m = first;; m = next()) {
        elements += m.frame.count;
        copies.replied(*m.what, {});
        if (elements == n)
            break;
    }
    run_until([this] { return !ended.empty(); });
    CHECK_FALSE(ended[0].ec);
}

TEST_CASE_FIXTURE(fixture, "a download without memory ends with an error, and nothing is requested")
{
    test::manual<detail::download_request<float>> r(buffer(3));
    auto v = *view_transfer(r.ops.back());
    v.sink.room = [](void*, std::size_t) noexcept -> void* { return nullptr; };
    copies.start(r, v);
    run_until([this] { return !ended.empty(); });
    CHECK(ended[0].ec == errc::out_of_memory);
    CHECK(sent.empty());
    CHECK(copies.empty());
}

TEST_CASE_FIXTURE(fixture, "a copy without room in the staging area waits, or uses smaller pieces")
{
    std::vector<float> got(n);
    auto r = read(3, got);
    const auto all = memory->take(memory->bytes());
    REQUIRE(all);
    start(r);
    CHECK(sent.empty());
    copies.go_on();
    CHECK(sent.empty());
    memory->give_back(*all);
    const auto most = memory->take(memory->bytes() - piece_bytes / 2);
    REQUIRE(most);
    copies.go_on();
    REQUIRE(sent.size() >= 1);
    CHECK(sent.front().frame.count * 4 <= piece_bytes / 2);
    memory->give_back(*most);
    end.finish();
    copies.take_all([](detail::request&) {});
    copies.give_back_memory();
    CHECK(all_memory_is_free());
}

TEST_CASE_FIXTURE(fixture, "while the context dies, nothing is sent and no request completes")
{
    const auto data = numbers();
    auto large = write(3, data);
    const std::vector<float> one(piece_bytes / 4);
    auto small = write(4, one);
    std::vector<float> got(piece_bytes / 4);
    auto in = read(5, got);
    start(in);
    const auto m = next();
    start(large);
    start(small);
    CHECK(end.begin(errc::worker_hung, context_end::process::own, detail::loss_cause::fault));
    copies.replied(*m.what, {});
    run_until([this] { return !copies.copying(); });
    copies.go_on();
    CHECK(sent.empty());
    CHECK(ended.empty());
    std::vector<detail::request*> taken;
    copies.take_all([&](detail::request& r) { taken.push_back(&r); });
    CHECK(taken == std::vector<detail::request*>{&in, &large, &small});
    CHECK(copies.empty());
    CHECK(all_memory_is_free());
}

TEST_CASE_FIXTURE(fixture, "pieces that the worker may still use keep their memory until it has ended")
{
    std::vector<float> got(n);
    auto r = read(3, got);
    start(r);
    CHECK(sent.size() == chunked_copy::most_under_way);
    end.finish();
    copies.stop();
    copies.take_all([](detail::request&) {});
    CHECK_FALSE(all_memory_is_free());
    copies.give_back_memory();
    CHECK(all_memory_is_free());
}

TEST_SUITE_END();

} // namespace test_worker_chunked_copies
