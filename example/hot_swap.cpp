// A model is replaced by its next version while clients use it. A version that fails its warm-up never answers clients.
// Another version is rolled back by hand; the rule in the options does the same automatically.
#include <coaccel/coaccel.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>
#include <coaccel/serve/hot_swap.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace ca = coaccel;
namespace asio = boost::asio;
namespace serve = coaccel::serve;
using namespace std::chrono_literals;

namespace {

using vector = std::array<float, 4>;
using model_swap = serve::hot_swap<serve::dynamic_batcher>;

// y = factor * x, for this many rows.
ca::result<serve::batch_plan> scale(std::uint32_t rows, float factor)
{
    const std::size_t all = rows * vector().size();
    ca::plan_builder b("scale" + std::to_string(rows));
    const auto x = b.input<float>(all, "x");
    const auto y = b.output<float>(all, "y");
    b.add(ca::memory::copy<float>{.src = x, .dst = y});
    b.add(ca::blas::scal<float>{.x = y, .n = all, .alpha = factor});
    BOOST_OUTCOME_TRY(auto described, b.finish());
    return serve::batch_plan{rows, std::move(described)};
}

//[hot_swap_version
// A version is a batcher. A server would read the plans of the model from a file here.
asio::awaitable<ca::result<serve::dynamic_batcher>> load_model(asio::any_io_executor executor, ca::device gpu,
                                                               float factor)
{
    std::vector<serve::batch_plan> plans;
    for (const std::uint32_t rows : {1u, 16u}) {
        BOOST_OUTCOME_CO_TRY(auto plan, scale(rows, factor));
        plans.push_back(std::move(plan));
    }
    BOOST_OUTCOME_CO_TRY(auto model, serve::batch_model::create(std::move(plans)));
    const std::vector devices{gpu};
    const std::vector models{model};
    const serve::batcher_options options;
    BOOST_OUTCOME_CO_TRY(auto made, co_await serve::dynamic_batcher::async_create(executor, devices, models, options));
    co_return made;
}

// One request before the switch: the first run, which is slower, has then ended, and a version that cannot answer never
// gets requests of clients.
asio::awaitable<ca::result<void>> try_one_row(const serve::dynamic_batcher& model)
{
    const vector x{};
    vector y{};
    BOOST_OUTCOME_CO_TRYV(co_await model.async_run(ca::from(x), ca::to(y)));
    co_return ca::outcome::success();
}

serve::version_source<serve::dynamic_batcher> version(std::string name, ca::device gpu, float factor)
{
    serve::version_source<serve::dynamic_batcher> source;
    source.name = std::move(name);
    source.load = [executor = gpu.get_executor(), gpu, factor] { return load_model(executor, gpu, factor); };
    source.warm_up = try_one_row;
    return source;
}
//]

struct tally {
    bool stop = false;
    int answers = 0;
    int errors = 0;
};

//[hot_swap_client
// A connection of a server calls this for each request. A replacement of the model does not affect it.
asio::awaitable<ca::result<float>> score(model_swap model, vector x)
{
    vector y{};
    BOOST_OUTCOME_CO_TRYV(co_await model.async_run(ca::from(x), ca::to(y)));
    co_return y[0];
}
//]

asio::awaitable<void> client(model_swap model, tally* count)
{
    while (!count->stop) {
        const auto y = co_await score(model, vector{1, 2, 3, 4});
        ++(y ? count->answers : count->errors);
    }
}

asio::awaitable<ca::result<int>> run()
{
    const auto executor = co_await asio::this_coro::executor;
    ca::device_options host;
    host.kind = ca::device_kind::host;
    BOOST_OUTCOME_CO_TRY(auto gpu, co_await ca::device::async_create(executor, host));
    //[hot_swap_create
    serve::hot_swap_options options;
    options.name = "scores";
    options.confirm_after = 10min;            // how long the previous version stays loaded
    options.rollback.max_failure_share = 0.1; // it returns if more than 10 % of the requests fail,
    options.rollback.min_requests = 50;       // of at least 50
    options.on_event = [](const serve::swap_event& e) { std::cout << e.message << '\n'; };
    BOOST_OUTCOME_CO_TRY(auto model, model_swap::create(executor, options));
    auto first = version("v1", gpu, 2);
    BOOST_OUTCOME_CO_TRYV(co_await model.async_load(std::move(first)));
    //]
    tally count;
    for (int i = 0; i < 20; ++i)
        asio::co_spawn(executor, client(model, &count), asio::detached);

    //[hot_swap_load
    auto second = version("v2", gpu, 3);
    const auto loaded = co_await model.async_load(std::move(second)); // v1 answers until v2 is warm
    if (!loaded)
        std::cerr << loaded.error().message() << '\n'; // v1 still answers
    BOOST_OUTCOME_CO_TRYV(model.confirm());            // v1 is drained and shut down
    //]
    const auto answer = co_await score(model, vector{1, 1, 1, 1});
    const bool is_new = answer && answer.value() == 3;

    // The warm-up of version 3 passes rows of another length, so it fails.
    serve::version_source<serve::dynamic_batcher> broken = version("v3", gpu, 4);
    broken.warm_up = [](const serve::dynamic_batcher& m) -> asio::awaitable<ca::result<void>> {
        const std::array<float, 3> x{};
        std::array<float, 3> y{};
        BOOST_OUTCOME_CO_TRYV(co_await m.async_run(ca::from(x), ca::to(y)));
        co_return ca::outcome::success();
    };
    const auto refused = co_await model.async_load(std::move(broken));

    //[hot_swap_roll_back
    auto fourth = version("v4", gpu, 5);
    BOOST_OUTCOME_CO_TRYV(co_await model.async_load(std::move(fourth))); // v4 answers, v2 is the previous version
    BOOST_OUTCOME_CO_TRYV(model.roll_back());                            // v2 answers again, at once
    //]
    const auto again = co_await score(model, vector{1, 1, 1, 1});
    const bool is_back = again && again.value() == 3;

    count.stop = true;
    BOOST_OUTCOME_CO_TRYV(co_await model.async_shutdown(ca::shutdown::drain));
    const auto s = model.stats();
    std::cout << count.answers << " answers, " << count.errors << " errors, " << s.switches << " switches\n";
    co_return is_new&& is_back && !refused && count.answers > 0 && s.switches == 3 ? 0 : 1;
}

} // namespace

int main()
{
    asio::io_context io;
    int status = 1;
    asio::co_spawn(io, run(), [&](std::exception_ptr e, ca::result<int> r) {
        if (e)
            std::rethrow_exception(e);
        if (!r)
            std::cerr << r.error().message() << '\n';
        else
            status = r.value();
    });
    io.run();
    return status;
}
