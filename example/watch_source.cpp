// A watch: one part of the program publishes its latest value, other parts read it or wait for the next one.
#include <coaccel/coaccel.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <iostream>
#include <string>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;

namespace {

//[watch_value
// What is published: small, copyable, complete in itself.
struct model {
    int version = 0;
    std::string file;
};
//]

//[watch_follow
// Runs until the source is closed. A slow follower skips versions, but never the last one.
asio::awaitable<ca::result<std::vector<int>>> follow(ca::watch<model> models)
{
    std::vector<int> seen;
    for (;;) {
        const auto next = co_await models.async_changed();
        if (!next && next.error() == ca::errc::closed)
            co_return seen;
        BOOST_OUTCOME_CO_TRYV(next);
        seen.push_back(next.value().version);
    }
}
//]

} // namespace

int main()
{
    asio::io_context io;

    //[watch_publish
    const model first{1, "small.bin"};
    ca::watch_source<model> source(io.get_executor(), first);
    auto one = asio::co_spawn(io, follow(source.subscribe()), asio::use_future);
    auto other = asio::co_spawn(io, follow(source.subscribe()), asio::use_future);

    const model second{2, "large.bin"};
    const model third{3, "larger.bin"};
    source.publish(second);
    source.publish(third);
    source.close(); // followers still get version 3, then errc::closed
    io.run();
    std::cout << source.get().file << '\n'; // the latest value, without waiting
    //]

    for (auto* running : {&one, &other}) {
        const auto seen = running->get();
        if (!seen || seen.value().back() != 3) {
            std::cerr << "the last version was not seen\n";
            return 1;
        }
        std::cout << "saw " << seen.value().size() << " versions, the last is " << seen.value().back() << '\n';
    }
    return 0;
}
