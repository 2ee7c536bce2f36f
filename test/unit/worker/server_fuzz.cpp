#include "wire_records.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace test_worker_server_fuzz {

// A server that gets valid and mutated records. A failure message contains the seed, which reproduces the records.
namespace {

using namespace coaccel;
using namespace coaccel::worker;
using namespace std::chrono_literals;
using test::bytes;
using test::fuzz_time;
using test::generator;
using test::guarded_staging;
using test::instance_constant;
using test::instance_memory;
using test::mutated;
using test::opening;
using test::plain;
using test::submission;
using clock_type = std::chrono::steady_clock;

class served : public test::served {
public:
    served() : test::served(guarded_staging(), {.memory_limit = std::uint64_t(1) << 20}) {}

    /// Returns the number of valid replies; fails on an invalid one.
    int listen()
    {
        int n = 0;
        for (; take(); ++n)
            check_reply();
        return n;
    }

    void wait_until_ready()
    {
        wait_for_reply();
        check_reply();
    }

private:
    void check_reply()
    {
        auto in = reply();
        message_type what{};
        error_code ec;
        std::uint64_t id = 0;
        std::uint32_t position = 0;
        std::string text;
        hardware_info hardware;
        exporting exports{};
        REQUIRE(in.get(what, message_type::ready, message_type::lost));
        switch (what) {
        case message_type::ready:
            REQUIRE((in.get_text(text) && get_hardware(in, hardware) &&
                     in.get(exports, exporting::no, exporting::yes) && in.at_end()));
            break;
        case message_type::lost: REQUIRE((in.get_error(ec) && in.at_end() && ec)); break;
        case message_type::ended: REQUIRE((in.get(id) && in.get_error(ec))); break;
        case message_type::unsupported: REQUIRE((in.get(id) && in.get(position) && in.at_end())); break;
        default: REQUIRE(false);
        }
    }
};

const bytes nonsense(1, std::byte{0});

} // namespace

TEST_SUITE_BEGIN("server_fuzz");

TEST_CASE("a server that gets mutated records replies or ends")
{
    const auto seeds = test::valid_requests(), all = test::every_record();
    const auto end = clock_type::now() + fuzz_time(4);
    std::uint64_t sessions = 0, asked = 0, answers = 0, ended_early = 0;
    for (std::uint64_t seed = 1; clock_type::now() < end; ++seed, ++sessions) {
        INFO("seed ", seed);
        generator random(seed);
        served s;
        s.wait_until_ready();
        for (const bytes& r : opening())
            REQUIRE(s.ask(r));
        for (int i = 0; i < 200 && !s.over(0ms); ++i) {
            const bytes& valid = seeds[random() % seeds.size()];
            const bytes r = i < 20 || random() % 16 ? valid : mutated(all[random() % all.size()], random, all);
            if (r.size() > max_ring_record(ring_bytes) || !s.ask(r))
                break;
            ++asked;
            answers += static_cast<std::uint64_t>(s.listen());
        }
        const auto until = clock_type::now() + 60s;
        while (!s.over(0ms) && !s.has_taken_all()) {
            REQUIRE(clock_type::now() < until);
            answers += static_cast<std::uint64_t>(s.listen());
        }
        ended_early += s.over(0ms);
        while (!s.over(1ms)) {
            REQUIRE(clock_type::now() < until);
            (void)s.ask(nonsense);
            s.ring();
            answers += static_cast<std::uint64_t>(s.listen());
        }
        answers += static_cast<std::uint64_t>(s.listen());
    }
    MESSAGE("sessions ", sessions, ", asked ", asked, ", answers ", answers, ", ended early ", ended_early);
    CHECK(answers > 0);
    CHECK(ended_early > 0);
}

TEST_CASE("a server loads, runs and unloads a plan, and ends when it gets one that is invalid")
{
    served s;
    s.wait_until_ready();
    const auto until = clock_type::now() + 60s;
    int answers = 0;
    const auto expect = [&](int n) {
        while (answers < n) {
            REQUIRE(clock_type::now() < until);
            answers += s.listen();
        }
    };
    for (const bytes& r : opening())
        REQUIRE(s.ask(r));
    auto* const x = reinterpret_cast<float*>(guarded_staging().data() + 256);
    auto* const y = reinterpret_cast<float*>(guarded_staging().data() + 1024);
    // The content of the constant.
    std::fill_n(x, 4, 3.0f);
    REQUIRE(s.ask(submission({test::transfer(op_kind::write, instance_constant)})));
    // Four buffers, the load and the copy.
    expect(6);
    x[0] = 4;
    y[0] = -1;
    REQUIRE(s.ask(test::run_record(1, instance_memory)));
    expect(7);
    CHECK(y[0] == 11);
    REQUIRE(s.ask(test::unload_record(1)));
    REQUIRE(s.ask(test::run_record(1, instance_memory)));
    expect(9);
    REQUIRE(s.ask(test::forget_plan_record()));
    REQUIRE(s.ask(test::plan_record(*test::small_plan(), 0, 50)));
    while (!s.has_taken_all())
        REQUIRE(clock_type::now() < until);
    CHECK_FALSE(s.over(0ms));
    REQUIRE(s.ask(test::load_record(1, {instance_memory, instance_constant})));
    CHECK(s.over(60s));
}

TEST_CASE("a server with an impossible ring position ends")
{
    for (const std::uint64_t position : {std::uint64_t(1), std::uint64_t(8), std::uint64_t(ring_bytes) + 8,
                                         ~std::uint64_t(7), std::uint64_t(1) << 63}) {
        CAPTURE(position);
        served s;
        s.control().requests.written = position;
        s.ring();
        CHECK(s.over(60s));
    }
}

TEST_CASE("a server keeps its replies until they are read")
{
    served s;
    const auto fill = submission({plain(memory::trim{})});
    const auto until = clock_type::now() + 60s;
    int asked = 0;
    while (asked < 30000) {
        REQUIRE(clock_type::now() < until);
        asked += s.ask(fill);
    }
    int answers = -1; // It also reports that it is ready.
    while (answers < asked) {
        REQUIRE(clock_type::now() < until);
        answers += s.listen();
    }
    CHECK(answers == asked);
    (void)s.ask(nonsense);
    CHECK(s.over(60s));
}

TEST_SUITE_END();

} // namespace test_worker_server_fuzz
