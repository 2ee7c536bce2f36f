// A batched run with a future starts at once, so a temporary would be destroyed before it is copied.
// expect: the range is a temporary
#include <coaccel/serve/dynamic_batcher.hpp>

#include <boost/asio/use_future.hpp>

#include <vector>

void start(const coaccel::serve::dynamic_batcher& b, std::vector<float>& y)
{
    auto pending = b.async_run(coaccel::from(std::vector<float>{1, 2}), coaccel::to(y), boost::asio::use_future);
}
