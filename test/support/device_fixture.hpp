#ifndef COACCEL_TEST_SUPPORT_DEVICE_FIXTURE_HPP
#define COACCEL_TEST_SUPPORT_DEVICE_FIXTURE_HPP

#include "support/devices.hpp"

#include <vector>

namespace test {

/// A device with its own io_context; each call runs the context until the operation completes.
struct device_fixture {
    explicit device_fixture(const coaccel::device_options& o) : gpu(make_device(io, o)) {}
    explicit device_fixture(const coaccel::host_options& host) : device_fixture(on_host(host)) {}
    explicit device_fixture(coaccel::host_mode mode) : device_fixture(with_mode(mode)) {}
    device_fixture(const device_fixture&) = delete;
    device_fixture& operator=(const device_fixture&) = delete;

    ~device_fixture()
    {
        gpu = {};
        run_out(io);
    }

    template <class T>
    coaccel::buffer<T> alloc(std::size_t count)
    {
        auto made = await(io, gpu.async_alloc<T>(count));
        REQUIRE(made);
        return std::move(made).value();
    }

    template <class T>
    coaccel::buffer<T> upload(const std::vector<T>& data)
    {
        auto made = await(io, gpu.async_upload(data));
        REQUIRE(made);
        return std::move(made).value();
    }

    template <class T>
    std::vector<T> download(const coaccel::ref<T>& source)
    {
        auto got = await(io, gpu.async_download(source));
        REQUIRE(got);
        return std::move(got).value();
    }

    template <class T>
    std::vector<T> download(const coaccel::buffer<T>& source)
    {
        return download(source.ref());
    }

    template <class Op>
    auto exec(const Op& op)
    {
        return await(io, gpu.async_exec(op));
    }

    /// Runs an op, and returns its error or success.
    template <class Op>
    coaccel::error_code error_of(const Op& op)
    {
        const auto r = exec(op);
        return r ? coaccel::error_code() : r.error();
    }

    static coaccel::host_options with_mode(coaccel::host_mode mode)
    {
        coaccel::host_options options;
        options.mode = mode;
        options.threads = 2;
        return options;
    }

    static coaccel::device_options on_host(const coaccel::host_options& host)
    {
        coaccel::device_options options;
        options.kind = coaccel::device_kind::host;
        options.host = host;
        return options;
    }

    asio::io_context io{1};
    coaccel::device gpu;
};

inline constexpr coaccel::host_mode host_modes[] = {coaccel::host_mode::inline_, coaccel::host_mode::pool};

inline std::vector<coaccel::device_options> host_devices()
{
    std::vector<coaccel::device_options> all;
    for (const auto mode : host_modes)
        all.push_back(device_fixture::on_host(device_fixture::with_mode(mode)));
    return all;
}

/// The devices for test cases that suit any device. A program for other hardware assigns its own function before
/// main().
inline std::vector<coaccel::device_options> (*devices_under_test)() = &host_devices;

} // namespace test

#endif
