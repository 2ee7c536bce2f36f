// An upload with a callback starts at once, also with options.
// expect: the range is a temporary
#include <coaccel/device/device.hpp>

#include <boost/asio/detached.hpp>

#include <vector>

void start(coaccel::device gpu)
{
    gpu.with({.deadline = {}}).async_upload(std::vector<float>{1, 2}, [](auto&&...) {});
}
