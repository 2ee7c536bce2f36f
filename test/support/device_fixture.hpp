#ifndef COACCEL_TEST_SUPPORT_DEVICE_FIXTURE_HPP
#define COACCEL_TEST_SUPPORT_DEVICE_FIXTURE_HPP

#include "support/co_run.hpp"

#include <coaccel/device/device.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace test {

/// A device with its own io_context; each call runs the context until the operation completes.
class device_fixture {
public:
    explicit device_fixture(const coaccel::device_options& options)
        : dev(co_run(io, create(io.get_executor(), options)).value())
    {}

    explicit device_fixture(const coaccel::host_options& host) : device_fixture(on_host(host)) {}
    explicit device_fixture(coaccel::host_mode mode) : device_fixture(with_mode(mode)) {}

    ~device_fixture()
    {
        dev = {};
        run_out(io);
    }

    template <class T>
    coaccel::buffer<T> upload(const std::vector<T>& data)
    {
        return co_run(io, upload(dev, data)).value();
    }

    template <class T>
    std::vector<T> download(const coaccel::buffer<T>& source)
    {
        return co_run(io, download(dev, source.ref())).value();
    }

    template <class Op>
    coaccel::result<typename Op::reply> exec(const Op& op)
    {
        return co_run(io, exec(dev, op));
    }

    /// Runs an op, and returns its error or success.
    template <class Op>
    coaccel::error_code error_of(const Op& op)
    {
        auto r = exec(op);
        return r ? coaccel::error_code() : r.error();
    }

    asio::io_context io{1};
    coaccel::device dev;

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

private:
    static asio::awaitable<coaccel::result<coaccel::device>> create(asio::any_io_executor ex,
                                                                    coaccel::device_options options)
    {
        co_return co_await coaccel::device::async_create(ex, options);
    }

    template <class T>
    static asio::awaitable<coaccel::result<coaccel::buffer<T>>> upload(coaccel::device dev, const std::vector<T>& data)
    {
        co_return co_await dev.async_upload(data);
    }

    template <class T>
    static asio::awaitable<coaccel::result<std::vector<T>>> download(coaccel::device dev, coaccel::ref<T> source)
    {
        co_return co_await dev.async_download(source);
    }

    template <class Op>
    static asio::awaitable<coaccel::result<typename Op::reply>> exec(coaccel::device dev, Op op)
    {
        co_return co_await dev.async_exec(op);
    }
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
