// A detached write starts at once, so a temporary would be destroyed before it is copied.
// expect: the range is a temporary
#include <coaccel/device/device.hpp>

#include <boost/asio/detached.hpp>

#include <vector>

void start(coaccel::device gpu)
{
    coaccel::ref<float> x;
    gpu.async_write(x, std::vector<float>{1, 2}, boost::asio::detached);
}
