// A mailbox without an actor: a producer sends numbers, a consumer receives them in batches and adds them up on the
// device.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>

#include <iostream>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

//[mailbox_send
// Waits while the mailbox is full, so that a fast producer does not outrun the device.
asio::awaitable<ca::result<void>> produce(ca::mailbox<float>& box, int count)
{
    const ca::mailbox_ref<float> to = box.ref(); // the sending side; every sender may have a copy
    for (int i = 1; i <= count; ++i) {
        BOOST_OUTCOME_CO_TRYV(co_await to.async_send(static_cast<float>(i)));
    }
    box.close(); // refuses further messages; what was accepted is still delivered
    co_return ca::success();
}
//]

//[mailbox_receive
// Takes what has arrived, up to 64 messages, and adds it up with one upload and one op.
asio::awaitable<ca::result<float>> consume(ca::mailbox<float>& box, ca::device gpu)
{
    float total = 0;
    std::vector<float> batch;
    for (;;) {
        batch.clear();
        const auto received = co_await box.async_receive_batch(batch, 64);
        if (!received && received.error() == ca::errc::closed)
            co_return total; // everything that was accepted has been received
        BOOST_OUTCOME_CO_TRYV(received);
        BOOST_OUTCOME_CO_TRY(auto x, co_await gpu.async_upload(batch));
        BOOST_OUTCOME_CO_TRY(const float sum, co_await gpu.async_exec(ca::blas::asum<float>{.x = x, .n = x.size()}));
        total += sum;
    }
}
//]

asio::awaitable<ca::result<float>> run()
{
    using namespace asio::experimental::awaitable_operators;
    const auto executor = co_await asio::this_coro::executor;
    const ca::device_options options{};
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor, options));

    //[mailbox_run
    BOOST_OUTCOME_CO_TRY(auto box, ca::mailbox<float>::create(executor, 16)); // room for 16 messages
    const auto [sent, total] = co_await (produce(box, 100) && consume(box, gpu));
    BOOST_OUTCOME_CO_TRYV(sent);
    //]
    co_return total;
}

} // namespace

int main()
{
    asio::io_context io;
    auto running = asio::co_spawn(io, run(), asio::use_future);
    io.run();
    const auto total = running.get();

    if (!total) {
        std::cerr << total.error().message() << '\n';
        return 1;
    }
    std::cout << total.value() << '\n';
    return total.value() == 5050 ? 0 : 1;
}
