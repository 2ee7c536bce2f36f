// An upload with a future starts at once, so a temporary would be destroyed before it is copied.
// expect: the range is a temporary
#include <coaccel/device/device.hpp>

#include <boost/asio/use_future.hpp>

#include <vector>

void start(coaccel::device gpu)
{
    auto pending = gpu.async_upload(std::vector<float>{1, 2}, boost::asio::use_future);
}
