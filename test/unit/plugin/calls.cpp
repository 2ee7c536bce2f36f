#include "plugin.hpp"

#include <coaccel/core/half.hpp>
#include <coaccel/device/seq.hpp>

namespace test_plugin_calls {

using namespace coaccel;
using test::isolated_fixture;
using test::on_each_device;

TEST_SUITE_BEGIN("plugin::call");

TEST_CASE("a function gets buffers and values")
{
    on_each_device([](isolated_fixture& d) {
        auto x = d.upload(test::numbers(1000));
        auto y = d.upload(std::vector<float>(1000, 1.0f));
        REQUIRE(d.exec(plugin::call("scale_add", in(x), inout(y), 2.0f)));
        const auto got = d.download(y.ref());
        for (std::size_t i = 0; i < got.size(); ++i)
            REQUIRE(got[i] == 1.0f + 2.0f * static_cast<float>(i + 1));
    });
}

TEST_CASE("a function gets the range of a buffer that its ref denotes")
{
    on_each_device([](isolated_fixture& d) {
        auto x = d.upload(test::numbers(10));
        auto y = d.upload(std::vector<float>(10, 0.0f));
        REQUIRE(d.exec(plugin::call("scale_add", in(x.ref().subspan(2, 3)), inout(y.ref().subspan(5, 3)), 1.0f)));
        CHECK(d.download(y.ref()) == std::vector<float>{0, 0, 0, 0, 0, 3, 4, 5, 0, 0});
    });
}

TEST_CASE("functions may use pointers and C++17, and a namespace is part of the name")
{
    on_each_device([](isolated_fixture& d) {
        auto n = d.alloc<std::int32_t>(5);
        REQUIRE(d.exec(plugin::call("count_up", out(n), std::uint64_t(5))));
        CHECK(d.download(n.ref()) == std::vector<std::int32_t>{0, 1, 2, 3, 4});
        auto from = d.upload(std::vector<double>{1, -2});
        auto to = d.alloc<double>(2);
        REQUIRE(d.exec(plugin::call("second::negate", in(from), out(to), 2u)));
        CHECK(d.download(to.ref()) == std::vector<double>{-1, 2});
    });
}

TEST_CASE("values of every kind arrive unchanged")
{
    on_each_device([](isolated_fixture& d) {
        auto told = d.alloc<double>(6);
        REQUIRE(d.exec(plugin::call("tell_values", out(told), point{1.5, -2.5}, side::right, true,
                                    std::int64_t(-1) << 40, static_cast<std::int8_t>(7))));
        CHECK(d.download(told.ref()) == std::vector<double>{1.5, -2.5, 4, 1, -1099511627776.0, 7});
    });
}

TEST_CASE("buffer elements of a class defined by the plug-in are matched by size")
{
    on_each_device([](isolated_fixture& d) {
        auto h = d.upload(std::vector<half>{half(1.0f), half(-2.0f)});
        REQUIRE(d.exec(plugin::call("flip_sign", inout(h))));
        const auto got = d.download(h.ref());
        CHECK(float(got[0]) == -1.0f);
        CHECK(float(got[1]) == 2.0f);
    });
}

TEST_CASE("a function can query its backend")
{
    on_each_device([](isolated_fixture& d) {
        auto name = d.upload(std::vector<std::uint8_t>(8));
        auto gpu = d.alloc<std::int32_t>(1);
        REQUIRE(d.exec(plugin::call("tell_backend", out(name), out(gpu))));
        const auto got = d.download(name.ref());
        CHECK(std::string(reinterpret_cast<const char*>(got.data())) == "host");
        CHECK(d.download(gpu.ref()) == std::vector<std::int32_t>{0});
    });
}

TEST_CASE("calls run in sequences, in the order of their buffers, and a thousand at once")
{
    on_each_device([](isolated_fixture& d) {
        auto x = d.upload(std::vector<float>(100, 1.0f));
        auto y = d.alloc<float>(100);
        REQUIRE(d.exec(seq(memory::fill<float>{.dst = y, .value = 5}, plugin::call("scale_add", in(x), inout(y), 1.0f),
                           plugin::call("nothing"))));
        int left = 1000;
        for (int i = 0; i < 1000; ++i)
            d.gpu.async_exec(plugin::call("scale_add", in(x), inout(y), 1.0f), [&](error_code ec) {
                CHECK_FALSE(ec);
                --left;
            });
        test::run_until(d.io, [&] { return left == 0; });
        CHECK(d.download(y.ref()) == std::vector<float>(100, 1006.0f));
    });
}

TEST_CASE("the output of a function in a worker appears in the log")
{
    isolated_fixture d(test::with_plugin(isolation::worker));
    CHECK_FALSE(d.run(plugin::call("say", 4711)));
    test::run_until(d.io, [] { return test::worker_log::has("a word from the plug-in: 4711"); });
}

TEST_CASE("the device survives a function that crashes its worker")
{
    auto o = test::with_plugin(isolation::worker);
    o.standby = 1;
    isolated_fixture d(o);
    auto x = d.upload(test::numbers(4));
    const auto before = d.gpu.status().generation;
    CHECK(is_context_lost(d.run(plugin::call("crash"))));
    d.wait_for_generation(before + 1);
    CHECK(d.run(plugin::call("scale_add", in(x), inout(x), 1.0f)) == errc::stale_ref);
    auto y = d.upload(test::numbers(4));
    auto z = d.upload(test::numbers(4));
    CHECK_FALSE(d.run(plugin::call("scale_add", in(y), inout(z), 1.0f)));
    CHECK(d.download(z.ref()) == std::vector<float>{2, 4, 6, 8});
}

TEST_SUITE_END();

} // namespace test_plugin_calls
