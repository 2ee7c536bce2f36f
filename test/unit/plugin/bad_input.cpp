#include "plugin.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/device/seq.hpp>

#include <filesystem>

namespace test_plugin_bad_input {

using namespace coaccel;
using test::isolated_fixture;
using test::on_each_device;

namespace {

constexpr isolation everywhere[] = {isolation::in_process, isolation::worker};

error_code create_error(const device_options& o)
{
    asio::io_context io{1};
    auto made = test::co_run(io, test::create(o));
    const auto ec = made ? error_code() : made.error();
    made = errc::no_value;
    test::run_out(io);
    return ec;
}

bool says(const error_code& ec, std::string_view text)
{
    INFO("message: ", ec.message());
    return ec.message().find(text) != std::string::npos;
}

} // namespace

TEST_SUITE_BEGIN("plugin bad input");

TEST_CASE("a missing or invalid plug-in fails the creation of the device with a specific message")
{
    struct bad {
        const char* file;
        const char* told;
    };
    static constexpr bad all[] = {
        {COACCEL_TEST_PLUGIN("missing"), "missing.so"},
        {"no-such-plug-in.so", "no-such-plug-in.so"},
        {COACCEL_TEST_PLUGINS, "plug-in"},
        {COACCEL_TEST_PLUGIN("stranger"), "no coaccel_plugin_v1"},
        {COACCEL_TEST_PLUGIN("outdated"), "another version"},
        {COACCEL_TEST_PLUGIN("twice"), "two functions named one"},
        {COACCEL_TEST_PLUGIN("unversioned"), "its table makes no sense"},
    };
    for (const auto where : everywhere)
        for (const bad& b : all) {
            INFO("in a worker: ", where == isolation::worker, ", file ", b.file);
            const auto ec = create_error(test::with_plugin(where, b.file));
            CHECK(ec == errc::plugin_missing);
            CHECK(is_device_lost(ec));
            CHECK(says(ec, b.told));
        }
}

TEST_CASE("the message about a plug-in that cannot be loaded names its file once")
{
    for (const auto where : everywhere) {
        const auto told = create_error(test::with_plugin(where, "/no/such/plug-in.so")).message();
        INFO("message: ", told);
        CHECK(told.find("plug-in /no/such/plug-in.so: cannot open") != std::string::npos);
        CHECK(told.find("plug-in.so") == told.rfind("plug-in.so"));
    }
}

TEST_CASE("a name without a slash is not searched for in the current directory")
{
    namespace fs = std::filesystem;
    const test::temporary_folder folder;
    fs::copy_file(COACCEL_TEST_PLUGIN("functions"), folder / "beside.so");
    const auto before = fs::current_path();
    fs::current_path(folder.path());
    for (const auto where : everywhere) {
        INFO("in a worker: ", where == isolation::worker);
        CHECK(create_error(test::with_plugin(where, "beside.so")) == errc::plugin_missing);
    }
    fs::current_path(before);
}

TEST_CASE("an empty name of a plug-in is an invalid option")
{
    for (const auto where : everywhere)
        CHECK(create_error(test::with_plugin(where, "")) == errc::invalid_option);
}

TEST_CASE("in one process a second plug-in with a function of the same name is refused entirely")
{
    const isolated_fixture first(test::with_plugin(isolation::in_process));
    const auto ec = create_error(test::with_plugin(isolation::in_process, COACCEL_TEST_PLUGIN("clashing")));
    CHECK(ec == errc::plugin_missing);
    CHECK(says(ec, "scale_add"));
    CHECK(says(ec, "functions.so"));
    isolated_fixture again(test::with_plugin(isolation::in_process));
    CHECK(again.run(plugin::call("lone")) == errc::function_missing);
}

TEST_CASE("devices in different workers may have plug-ins with functions of the same name")
{
    isolated_fixture first(test::with_plugin(isolation::worker));
    isolated_fixture second(test::with_plugin(isolation::worker, COACCEL_TEST_PLUGIN("clashing")));
    CHECK_FALSE(second.run(plugin::call("scale_add")));
    CHECK(first.run(plugin::call("scale_add")) == errc::argument_mismatch);
    CHECK(second.run(plugin::call("nothing")) == errc::function_missing);
}

TEST_CASE("a worker device without a plug-in has no functions")
{
    isolated_fixture d;
    const auto ec = d.run(plugin::call("nothing"));
    CHECK(ec == errc::function_missing);
    CHECK(is_caller_error(ec));
    CHECK(says(ec, "plugin.call: no plug-in has a function named nothing, because device_options::plugin is null"));
}

TEST_CASE("a call of an unknown function is refused with its name, and the device continues")
{
    on_each_device([](isolated_fixture& d) {
        const auto ec = d.run(plugin::call("scale_ad"));
        CHECK(ec == errc::function_missing);
        CHECK(says(ec, "plugin.call: no plug-in has a function named scale_ad"));
        CHECK_FALSE(says(ec, "device_options::plugin is null"));
        CHECK_FALSE(d.run(plugin::call("nothing")));
    });
}

TEST_CASE("a sequence with an invalid call is refused as a whole")
{
    on_each_device([](isolated_fixture& d) {
        auto y = d.upload(test::numbers(4));
        const memory::fill<float> first{.dst = y, .value = 9};
        CHECK(d.exec(seq(first, plugin::call("scale_ad"))).error() == errc::function_missing);
        CHECK(d.exec(seq(first, plugin::call("nothing", 1))).error() == errc::argument_mismatch);
        CHECK(d.download(y.ref()) == test::numbers(4));
    });
}

TEST_CASE("names must have from 1 to 63 characters")
{
    on_each_device([](isolated_fixture& d) {
        CHECK(d.run(plugin::call("")) == errc::invalid_argument);
        CHECK(d.run(plugin::call(std::string(64, 'x'))) == errc::invalid_argument);
        CHECK(d.run(plugin::call(std::string(1000, 'x'))) == errc::invalid_argument);
        CHECK(d.run(plugin::call(std::string(63, 'x'))) == errc::function_missing);
        CHECK_FALSE(d.run(plugin::call("a name of exactly as many characters as there is any room for..")));
    });
}

TEST_CASE("mismatched arguments are refused before the call, and the message names the argument")
{
    on_each_device([](isolated_fixture& d) {
        auto f = d.upload(test::numbers(4));
        auto g = d.upload(test::numbers(4));
        auto n = d.upload(std::vector<double>{1, 2, 3, 4});
        const auto refused = [&](const auto& op, std::string_view told) {
            const auto ec = d.run(op);
            CHECK(ec == errc::argument_mismatch);
            CHECK(says(ec, told));
        };
        refused(plugin::call("scale_add", in(f), inout(g)), "takes 3 arguments, given 2");
        refused(plugin::call("nothing", 1), "takes 0 arguments, given 1");
        refused(plugin::call("scale_add", in(f), inout(g), 1.0),
                "argument 3: the function takes 'float', given 'double'");
        refused(plugin::call("scale_add", in(n), inout(g), 1.0f), "argument 1: the function takes a buffer to read of "
                                                                  "'float', given a buffer to read of 'double'");
        refused(plugin::call("scale_add", in(f), in(g), 1.0f), "a buffer to write of 'float', given a buffer to read");
        refused(plugin::call("scale_add", 1.0f, inout(g), 1.0f), "given 'float'");
        refused(plugin::call("flip_sign", inout(f)), "a class of 2 bytes");
        // A read-only parameter accepts a writable buffer.
        CHECK_FALSE(d.run(plugin::call("scale_add", inout(f), inout(g), 0.0f)));
        CHECK(d.download(g.ref()) == test::numbers(4));
    });
}

TEST_CASE("a number is not accepted for a class of the same size, nor a class for a number")
{
    on_each_device([](isolated_fixture& d) {
        auto f = d.alloc<float>(1);
        auto g = d.alloc<double>(1);
        const auto refused = [&](const auto& op, std::string_view told) {
            const auto ec = d.run(op);
            CHECK(ec == errc::argument_mismatch);
            CHECK(says(ec, told));
        };
        refused(plugin::call("add_pair", out(f), 1.0),
                "argument 2: the function takes a class of 8 bytes, given 'double'");
        refused(plugin::call("add_pair", out(f), std::int64_t(1)), "given 'long'");
        refused(plugin::call("copy_double", out(g), pair_of_floats{1, 2}),
                "argument 2: the function takes 'double', given a class of 8 bytes");
        CHECK_FALSE(d.run(plugin::call("add_pair", out(f), pair_of_floats{1, 2})));
        CHECK(d.download(f.ref()) == std::vector<float>{3});
        // A class that coaccel knows is accepted for a plug-in's own class of the same size.
        CHECK_FALSE(d.run(plugin::call("add_pair", out(f), std::complex<float>(3, 4))));
        CHECK(d.download(f.ref()) == std::vector<float>{7});
    });
}

TEST_CASE("an exception of a function fails its call with the exception's message")
{
    on_each_device([](isolated_fixture& d) {
        auto ec = d.run(plugin::call("fail", 7));
        CHECK(ec == errc::user_exception);
        CHECK(says(ec, "fail: failed with 7"));
        ec = d.run(plugin::call("fail_oddly"));
        CHECK(ec == errc::user_exception);
        CHECK(says(ec, "no std::exception"));
        ec = d.run(plugin::call("fail_at_length"));
        CHECK(ec == errc::user_exception);
        CHECK(ec.message().size() < 1000);
        CHECK_FALSE(d.run(plugin::call("nothing")));
    });
}

TEST_CASE("refs are checked like those of other ops")
{
    on_each_device([](isolated_fixture& d) {
        isolated_fixture other(test::with_plugin(isolation::in_process));
        auto f = d.upload(test::numbers(4));
        auto foreign = other.upload(test::numbers(4));
        CHECK(d.run(plugin::call("scale_add", in(foreign), inout(f), 1.0f)) == errc::wrong_device);
        CHECK(d.run(plugin::call("scale_add", in(f), inout(f), 1.0f)) == errc::overlap);
        const auto gone = d.upload(test::numbers(4)).ref();
        CHECK(d.run(plugin::call("scale_add", in(gone), inout(f), 1.0f)) == errc::released_ref);
    });
}

TEST_SUITE_END();

} // namespace test_plugin_bad_input
