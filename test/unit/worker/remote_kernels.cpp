#include "../jit/support.hpp"
#include "fake_worker.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

namespace test_worker_remote_kernels {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using test::exec;
using fixture = test::remote_fixture;

exec<jit::launch_op<>> launch(const jit::kernel& k)
{
    return exec<jit::launch_op<>>(jit::launch(k, {}), exec_options{});
}

void on_the_cpu(const jit::launch_shape&) {}

/// Counts the kernels that the worker receives and is told to forget until the next submission, which is answered.
struct kernels_seen {
    int sent = 0;
    int forgotten = 0;

    explicit kernels_seen(fixture& f)
    {
        for (message_type what{}; what != message_type::submit;) {
            f.record = f.world.worker.take();
            REQUIRE_FALSE(f.record.empty());
            decoder in(f.record);
            REQUIRE(in.get(what, message_type::submit, message_type::forget));
            sent += what == message_type::image;
            forgotten += what == message_type::forget;
        }
        f.answer(f.decoded().id);
    }
};

} // namespace

TEST_SUITE_BEGIN("remote_context");

TEST_CASE("released kernels are removed from the worker, so that a program can compile any number of them")
{
    fixture f;
    std::size_t sent = 0, forgotten = 0, most = 0;
    const auto lasting = test::make_kernel(jit::compile_options("lasting"), "lasting");
    for (int i = 0; i < 2000; ++i) {
        const auto brief = test::make_kernel(jit::compile_options("brief"), "brief");
        for (const auto& k : {lasting, brief}) {
            exec<jit::launch_op<>> r(jit::launch(k, {}), exec_options{});
            f.driver.submit(r);
            for (auto record = f.world.worker.take(); !record.empty(); record = f.world.worker.take()) {
                decoder in(record);
                message_type what{};
                REQUIRE(in.get(what, message_type::submit, message_type::forget));
                sent += what == message_type::image;
                forgotten += what == message_type::forget;
                if (what == message_type::forget) {
                    std::uint64_t id = 0;
                    REQUIRE((in.get(id) && in.at_end()));
                    REQUIRE(id != lasting.id());
                }
                if (what == message_type::submit) {
                    f.record = record;
                    f.answer(f.decoded().id);
                }
            }
            REQUIRE_FALSE(f.driver.outcome(r));
            f.driver.ended.clear();
        }
        most = std::max(most, sent - forgotten);
    }
    CHECK(sent == 2001);
    CHECK(most < 200);
}

TEST_CASE("a kernel beyond the worker's limits is refused with its name and the limit, and is not sent")
{
    fixture f({.images = {.bytes_each = 100, .symbol = 20}});
    struct row {
        std::string symbol;
        std::size_t bytes;
        const char* limit;
    };
    for (const auto& [symbol, bytes, limit] : {row{"large", 101, "100"}, row{std::string(21, 's'), 1, "20"}}) {
        const auto k = test::make_kernel(jit::compile_options("odd_one"), symbol, std::string(bytes, 'x'));
        auto r = launch(k);
        const auto ec = f.driver.outcome_of(r);
        const auto message = ec.message();
        CAPTURE(message);
        CHECK(ec == errc::invalid_argument);
        CHECK(message.find("odd_one") != std::string::npos);
        CHECK(message.find(limit) != std::string::npos);
        CHECK(f.silent());
        f.driver.ended.clear();
    }
    const auto good = test::make_kernel(jit::compile_options("good"), "good", std::string(100, 'x'));
    auto r = launch(good);
    f.driver.submit(r);
    CHECK(kernels_seen(f).sent == 1);
    CHECK_FALSE(f.driver.outcome(r));
}

TEST_CASE("a kernel with the longest name and symbol is sent in parts that fit into the ring")
{
    fixture f;
    const auto k = test::make_kernel(jit::compile_options(std::string(20'000, 'n')), std::string(longest_text, 's'),
                                     std::string(60'000, 'x'));
    auto r = launch(k);
    f.driver.submit(r);
    CHECK(kernels_seen(f).sent == 3);
    CHECK_FALSE(f.driver.outcome(r));
}

TEST_CASE("released kernels make room when the worker is full")
{
    // Each kernel has a name and a symbol of one byte.
    fixture f({.images = {.bytes = 2 * 42}});
    const auto make = [] { return test::make_kernel(jit::compile_options("k"), "k", std::string(40, 'x')); };
    const auto first = make();
    std::optional<jit::kernel> second = make();
    const auto third = make();
    for (const auto& k : {first, *second}) {
        auto r = launch(k);
        f.driver.submit(r);
        CHECK(kernels_seen(f).sent == 1);
        CHECK_FALSE(f.driver.outcome(r));
        f.driver.ended.clear();
    }
    {
        auto r = launch(third);
        const auto ec = f.driver.outcome_of(r);
        CHECK(ec == errc::invalid_argument);
        CHECK(ec.message().find("84") != std::string::npos);
        CHECK(f.silent());
        f.driver.ended.clear();
    }
    second.reset();
    auto r = launch(third);
    f.driver.submit(r);
    const kernels_seen seen(f);
    CHECK(seen.sent == 1);
    CHECK(seen.forgotten == 1);
    CHECK_FALSE(f.driver.outcome(r));
}

TEST_CASE("a kernel with a host function runs in a worker that can use its device code")
{
    const auto both = test::make_kernel(jit::compile_options("k").host(on_the_cpu), "k");
    const auto host_only = test::make_kernel(jit::compile_options("k").host(on_the_cpu), "k", "");
    {
        fixture f({.backend = "cuda"});
        auto r = launch(both);
        f.driver.submit(r);
        CHECK(kernels_seen(f).sent == 1);
        CHECK_FALSE(f.driver.outcome(r));
        auto refused = launch(host_only);
        CHECK(f.driver.outcome_of(refused) == errc::not_isolatable);
        CHECK(f.silent());
    }
    fixture f({.backend = "host"});
    for (const auto& k : {both, host_only}) {
        auto refused = launch(k);
        CHECK(f.driver.outcome_of(refused) == errc::not_isolatable);
        CHECK(f.silent());
        f.driver.ended.clear();
    }
}

TEST_SUITE_END();

} // namespace test_worker_remote_kernels
