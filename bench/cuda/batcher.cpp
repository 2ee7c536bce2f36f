#include "one_device.hpp"
#include "raw_batches.hpp"
#include "rows.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/plan/plan_builder.hpp>
#include <coaccel/serve/dynamic_batcher.hpp>

#include <deque>
#include <string>
#include <vector>

namespace coaccel::bench {
namespace {

constexpr request_shape shape{1024, 1};
constexpr int clients = 256;
constexpr int io_threads = 2;
constexpr int blocking_threads = 16;
constexpr int rounds = 9;
/// Requests of each client in a round.
constexpr int each = 100;

/// The request of `raw_requests` for this many rows.
plan_description describe(std::uint32_t rows)
{
    plan_builder b("product" + std::to_string(rows));
    const auto x = b.input<float>(rows * shape.n);
    const auto a = b.constant<float>(std::vector<float>(shape.elements(), shape.weight()));
    const auto y = b.output<float>(rows * shape.n);
    b.add(blas::gemm<float>{.a = a, .b = x, .c = y, .m = shape.n, .n = rows, .k = shape.n});
    return value_of(b.finish(), "the plan");
}

serve::batch_model model()
{
    std::vector<serve::batch_plan> plans;
    for (const std::uint32_t rows : {1u, 16u, 32u, 64u})
        plans.push_back({rows, describe(rows)});
    return value_of(serve::batch_model::create(std::move(plans)), "the model");
}

struct client {
    std::vector<float> input = request_input(shape);
    std::vector<float> answer = std::vector<float>(shape.n);
    std::vector<double> times{};
};

struct setting {
    serve::batcher_options batcher{};
    int threads = io_threads;
    int clients = bench::clients;
};

/// One batch can be delivered while others of a full load run.
serve::batcher_options full_load()
{
    serve::batcher_options o;
    o.max_in_flight = 8;
    return o;
}

/// Clients of a batcher on a GPU. Their memory is not pinned.
class batched_server {
public:
    explicit batched_server(const setting& how = {full_load()})
        : on_(gpu_device(), how.threads), clients_(static_cast<std::size_t>(how.clients))
    {
        batcher_ = on_.get<serve::dynamic_batcher>(serve::dynamic_batcher::async_create(
            on_.gpu().get_executor(), std::vector{on_.gpu()}, std::vector{model()}, how.batcher));
    }
    batched_server(const batched_server&) = delete;
    batched_server& operator=(const batched_server&) = delete;
    ~batched_server() { (void)on_.outcome_of<void>(batcher_.async_shutdown(shutdown::drain)); }

    /// The seconds per request.
    double time()
    {
        std::size_t next = 0;
        const int count = static_cast<int>(clients_.size());
        const double took = on_.run(count, [&] {
            client* const c = &clients_[next++];
            const auto start = [this, c] { return batcher_.async_run(from(c->input), to(c->answer)); };
            return time_each(start, 0, each, &c->times);
        });
        for (const client& c : clients_)
            check_answer(shape, c.answer);
        return took / (static_cast<double>(count) * each);
    }

    /// Of all requests since the start, in seconds.
    double latency(double share) const
    {
        std::vector<double> all;
        for (const client& c : clients_)
            all.insert(all.end(), c.times.begin(), c.times.end());
        return percentile(std::move(all), share);
    }

    /// Forgets the first requests, which load plans.
    void warm_up()
    {
        (void)time();
        for (client& c : clients_)
            c.times.clear();
    }

private:
    static device_options gpu_device()
    {
        device_options o;
        o.kind = device_kind::cuda;
        return o;
    }

    one_device on_;
    serve::dynamic_batcher batcher_;
    std::deque<client> clients_;
};

/// Two settings under the same load: thousands of requests per second, and the latency that half of the requests do not
/// exceed.
void compare(rows& table, const std::string& name, const setting& changed, const setting& usual)
{
    constexpr int fewer_rounds = 5;
    batched_server ours(changed);
    batched_server theirs(usual);
    ours.warm_up();
    theirs.warm_up();
    const auto p = side_by_side(fewer_rounds, [&] { return ours.time(); }, [&] { return theirs.time(); });
    table.push_back(without_goal(name, {1e-3 / p.ours, 1e-3 / p.theirs}, "k requests/s"));
    table.push_back(without_goal(name + "_p50", {ours.latency(0.5) * to_us, theirs.latency(0.5) * to_us}, "us"));
}

setting with(void (*change)(setting&))
{
    setting s{full_load()};
    change(s);
    return s;
}

/// Thousands of requests per second.
pair rates(pair times)
{
    return {1e-3 / times.ours, 1e-3 / times.theirs};
}

} // namespace

void batcher_threads_rows(const stage& s, rows& table)
{
    constexpr double goal_ms = 2;
    batched_server ours;
    raw_threads theirs(s.raw, shape, blocking_threads);
    ours.warm_up();
    const auto p = side_by_side(
        rounds, [&] { return ours.time(); }, [&] { return theirs.time(clients * each / blocking_threads); });
    table.push_back(at_least("batcher_vs_threads", rates(p), 3, "k requests/s", ">= 3"));
    table.push_back(at_most("batcher_p99", {ours.latency(0.99) * to_ms, goal_ms}, 1, "ms", "<= 2 ms"));
}

void batcher_limit_row(const stage& s, rows& table)
{
    constexpr std::size_t rows_of_batch = 64;
    batched_server ours;
    raw_batches theirs(s.raw, shape, rows_of_batch);
    ours.warm_up();
    const auto p = side_by_side(
        rounds, [&] { return ours.time(); },
        [&] { return theirs.time(clients * each / static_cast<int>(rows_of_batch)); });
    table.push_back(at_least("batcher_vs_limit", rates(p), 0.5, "k requests/s", ">= 0.5"));
}

void batcher_knob_rows(const stage&, rows& table)
{
    const setting usual{full_load()};
    compare(table, "batcher_max_rows_16", with([](setting& s) { s.batcher.max_rows = 16; }), usual);
    compare(table, "batcher_max_rows_32", with([](setting& s) { s.batcher.max_rows = 32; }), usual);
    compare(table, "batcher_in_flight_1", with([](setting& s) { s.batcher.max_in_flight = 1; }), usual);
    compare(table, "batcher_in_flight_4", with([](setting& s) { s.batcher.max_in_flight = 4; }), usual);
    compare(table, "batcher_one_thread", with([](setting& s) { s.threads = 1; }), usual);
    compare(table, "batcher_four_threads", with([](setting& s) { s.threads = 4; }), usual);
    const auto few = with([](setting& s) { s.clients = 8; });
    const auto fixed = with([](setting& s) {
        s.clients = 8;
        s.batcher.delay = serve::delay_rule::fixed;
    });
    compare(table, "batcher_fixed_delay_8_clients", fixed, few);
}

} // namespace coaccel::bench
