// The same operations without coroutines: futures in a thread that may block, callbacks in a thread that may not.
#include <coaccel/coaccel.hpp>

#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <future>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

//[futures
// Blocks, so it must not run on a thread of the device's executor.
float dot(const ca::device& gpu, const std::vector<float>& a, const std::vector<float>& b)
{
    auto first = gpu.async_upload(a, asio::use_future);
    auto second = gpu.async_upload(b, asio::use_future);
    const auto x = first.get();
    const auto y = second.get();
    return gpu.async_exec(ca::blas::dot<float>{.x = x, .y = y, .n = a.size()}, asio::use_future).get();
}
//]

//[callbacks
// A chain of callbacks. The state of the chain lives as long as a callback holds it.
class norm_of : public std::enable_shared_from_this<norm_of> {
public:
    norm_of(ca::device gpu, std::vector<float> numbers) : gpu_(std::move(gpu)), numbers_(std::move(numbers)) {}

    template <class Done>
    void start(Done done)
    {
        gpu_.async_upload(numbers_, [self = shared_from_this(), done](ca::error_code ec, ca::buffer<float> x) {
            if (ec)
                return done(ec, 0.0F);
            self->x_ = std::move(x);
            const ca::blas::nrm2<float> op{.x = self->x_, .n = self->x_.size()};
            self->gpu_.async_exec(op, [self, done](ca::error_code ec, float norm) { done(ec, norm); });
        });
    }

private:
    ca::device gpu_;
    std::vector<float> numbers_;
    ca::buffer<float> x_;
};
//]

} // namespace

int main()
try {
    //[use_future
    asio::thread_pool threads(1);
    const ca::device_options options{};
    ca::device gpu = ca::device::async_create(threads.get_executor(), options, asio::use_future).get();
    //]

    const float product = dot(gpu, {1, 2, 3}, {4, 5, 6});

    std::promise<float> norm;
    std::make_shared<norm_of>(gpu, std::vector<float>{3, 4})->start([&](ca::error_code ec, float value) {
        if (ec)
            norm.set_exception(std::make_exception_ptr(boost::system::system_error(ec)));
        else
            norm.set_value(value);
    });
    const float length = norm.get_future().get();

    gpu.async_shutdown(asio::use_future).get();
    threads.join();

    std::cout << "dot product " << product << ", norm " << length << '\n';
    return product == 32 && length == 5 ? 0 : 1;
} catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
