// Requests of many coroutines, answered by one function that gets them in batches: here a query of a database that is
// cheaper for many keys at once.
#include <coaccel/serve/function_batcher.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <iostream>
#include <span>
#include <string>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace serve = coaccel::serve;

namespace {

int calls = 0;

//[function_batch
// One call for many keys. It returns as many replies as there are keys, in their order, or an error for all of them.
asio::awaitable<ca::result<std::vector<int>>> look_up(std::span<const std::string> keys)
{
    ++calls;
    std::vector<int> lengths;
    for (const std::string& key : keys)
        lengths.push_back(static_cast<int>(key.size()));
    co_return lengths;
}

using lookups = serve::function_batcher<std::string, int>;

asio::awaitable<void> client(lookups table, std::string key, int* sum)
{
    const auto length = co_await table.async_call(std::move(key));
    if (length)
        *sum += length.value();
}
//]

} // namespace

int main()
{
    asio::io_context io;
    int sum = 0;
    {
        //[function_create
        serve::batcher_options options;
        options.max_rows = 32; // at most 32 keys in one call
        const auto table = lookups::create(io.get_executor(), options, look_up);
        //]
        if (!table) {
            std::cerr << table.error().message() << '\n';
            return 1;
        }
        for (std::size_t i = 0; i < 100; ++i)
            asio::co_spawn(io, client(table.value(), std::string(i, 'x'), &sum), asio::detached);
    }
    io.run();
    std::cout << "the sum of 100 answers is " << sum << ", from " << calls << " calls\n";
    return sum == 4950 && calls < 20 ? 0 : 1;
}
