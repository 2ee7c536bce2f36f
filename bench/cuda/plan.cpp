#include "isolation.hpp"
#include "ours.hpp"
#include "raw_requests.hpp"
#include "rows.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <boost/asio/detached.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <utility>

namespace coaccel::bench {
namespace {

constexpr request_shape one_product{1024, 1};
constexpr request_shape chain_of_12{256, 12};
constexpr int clients = 64;
constexpr int streams = 4;
constexpr int blocking_threads = 16;
constexpr int rounds = 9;
/// Requests of each client in a round.
constexpr int each = 300;

device_options gpu_device()
{
    device_options o;
    o.kind = device_kind::cuda;
    return o;
}

plan_description describe(const request_shape& shape)
{
    plan_builder b("request");
    const auto x = b.input<float>(shape.n);
    const auto a = b.constant<float>(std::vector<float>(shape.elements(), shape.weight()));
    const auto y = b.output<float>(shape.n);
    auto from = x;
    for (int i = 1; i < shape.products; ++i) {
        const auto to = b.scratch<float>(shape.n);
        b.add(blas::gemv<float>{.a = a, .x = from, .y = to, .m = shape.n, .n = shape.n});
        from = to;
    }
    b.add(blas::gemv<float>{.a = a, .x = from, .y = y, .m = shape.n, .n = shape.n});
    return value_of(b.finish(), "the plan");
}

/// The memory of a client, which is not pinned.
struct client {
    explicit client(const request_shape& shape) : input(request_input(shape)), answer(shape.n) {}

    std::vector<float> input;
    std::vector<float> answer;
};

/// Devices on one io_context with one thread, and 64 clients that run a plan on them.
class plan_server {
public:
    plan_server(const device_options& o, const request_shape& shape, int devices = 1) : shape_(shape), on_(o)
    {
        const auto described = describe(shape);
        const plan_options how{.instances = clients / devices, .initial = clients / devices};
        for (int i = 0; i < devices; ++i) {
            if (i > 0)
                more_.push_back(on_.get<device>(device::async_create(on_.gpu().get_executor(), o)));
            const device& gpu = i > 0 ? more_.back() : on_.gpu();
            plans_.push_back(on_.get<plan>(gpu.async_load(described, how)));
        }
        for (int i = 0; i < clients; ++i)
            clients_.emplace_back(shape);
    }
    plan_server(const plan_server&) = delete;
    plan_server& operator=(const plan_server&) = delete;

    ~plan_server()
    {
        for (const device& gpu : more_)
            (void)on_.outcome_of<void>(gpu.async_shutdown(shutdown::abandon));
    }

    /// For `await_each`: starts the request of a client.
    auto start(std::size_t i)
    {
        return
            [p = &plans_[i % plans_.size()], c = &clients_[i]] { return p->async_run(from(c->input), to(c->answer)); };
    }

    /// The seconds per request.
    double time(int requests_each = each)
    {
        std::size_t next = 0;
        const double took = on_.run(clients, [&] {
            const std::size_t i = next++;
            return await_each(start(i), requests_each);
        });
        for (const client& c : clients_)
            check_answer(shape_, c.answer);
        return took / (static_cast<double>(clients) * requests_each);
    }

    void round_trips(int skip, int count, std::vector<double>& times)
    {
        on_.run(1, [&] { return time_each(start(0), skip, count, &times); });
        check_answer(shape_, clients_.front().answer);
    }

private:
    const request_shape shape_;
    one_device on_;
    std::vector<device> more_;
    std::vector<plan> plans_;
    std::deque<client> clients_;
};

/// The time and the CPU time of a request, both in seconds.
struct costs {
    pair time;
    pair cpu;
};

/// As side_by_side, for functions that serve a number of requests and return the seconds per request.
template <class Ours, class Theirs>
costs compare(int our_requests, Ours ours, int their_requests, Theirs theirs)
{
    std::vector<double> times[2];
    std::vector<double> cpu[2];
    const auto measure = [&](int which, int requests, auto& serve) {
        const double before = cpu_seconds();
        times[which].push_back(serve());
        cpu[which].push_back((cpu_seconds() - before) / requests);
    };
    ours();
    theirs();
    for (int i = 0; i < rounds; ++i) {
        measure(0, our_requests, ours);
        measure(1, their_requests, theirs);
    }
    return {{median(times[0]), median(times[1])}, {median(cpu[0]), median(cpu[1])}};
}

/// Thousands of requests per second.
pair rates(pair times)
{
    return {1e-3 / times.ours, 1e-3 / times.theirs};
}

void against_graphs(const stage& s, rows& table, const request_shape& shape, const char* name, double goal,
                    const char* goal_text)
{
    plan_server ours(gpu_device(), shape);
    raw_server theirs(s.raw, shape, streams, clients);
    const auto p = side_by_side(rounds, [&] { return ours.time(); }, [&] { return theirs.graph_time(each); });
    table.push_back(at_most(name, scaled(p, to_us), goal, "us/request", goal_text));
}

costs against_threads(const stage& s, const request_shape& shape)
{
    constexpr int requests_of_thread = clients * each / blocking_threads;
    plan_server ours(gpu_device(), shape);
    raw_threads theirs(s.raw, shape, blocking_threads);
    return compare(
        clients * each, [&] { return ours.time(); }, clients * each, [&] { return theirs.time(requests_of_thread); });
}

/// A client that starts the three ops of a request and awaits the last one.
struct op_client {
    pinned_buffer<float> input;
    pinned_buffer<float> answer;
    buffer<float> x;
    buffer<float> y;
};

asio::awaitable<void> request_ops(const device* gpu, ref<float> a, const op_client* c, std::uint64_t n, int count)
{
    const std::span<const float> input = c->input.span();
    const std::span<float> answer = c->answer.span();
    const blas::gemv<float> product{.a = a, .x = c->x, .y = c->y, .m = n, .n = n};
    for (int i = 0; i < count; ++i) {
        gpu->async_write(c->x.ref(), input, asio::detached);
        gpu->async_exec(product, asio::detached);
        auto r = co_await gpu->async_read(c->y.ref(), answer);
        if (!r)
            throw failure(r.error().message());
    }
}

class op_server {
public:
    explicit op_server(const request_shape& shape) : shape_(shape), on_(gpu_device())
    {
        const device& gpu = on_.gpu();
        const std::vector<float> weights(shape.elements(), shape.weight());
        const auto input = request_input(shape);
        a_ = on_.get<buffer<float>>(gpu.async_upload(weights));
        for (int i = 0; i < clients; ++i) {
            clients_.push_back({on_.get<pinned_buffer<float>>(gpu.async_alloc_pinned<float>(shape.n)),
                                on_.get<pinned_buffer<float>>(gpu.async_alloc_pinned<float>(shape.n)),
                                on_.get<buffer<float>>(gpu.async_alloc<float>(shape.n)),
                                on_.get<buffer<float>>(gpu.async_alloc<float>(shape.n))});
            std::ranges::copy(input, clients_.back().input.begin());
        }
    }

    double time()
    {
        std::size_t next = 0;
        const double took = on_.run(clients, [&] {
            const std::size_t i = next++;
            return request_ops(&on_.gpu(), a_, &clients_[i], shape_.n, each);
        });
        for (const op_client& c : clients_)
            check_answer(shape_, c.answer.span());
        return took / (static_cast<double>(clients) * each);
    }

private:
    const request_shape shape_;
    one_device on_;
    buffer<float> a_;
    std::deque<op_client> clients_;
};

constexpr int kernels_at_once = 16;

template <std::size_t... I>
auto seq_of(const our_gpu::empty_launch& op, std::index_sequence<I...>)
{
    return seq((static_cast<void>(I), op)...);
}

asio::awaitable<void> launch_until(const our_gpu* gpu, const std::atomic<bool>* stop)
{
    const auto kernels = seq_of(gpu->empty(), std::make_index_sequence<kernels_at_once>{});
    while (!stop->load(std::memory_order_relaxed)) {
        auto r = co_await gpu->gpu().async_exec(kernels);
        if (!r)
            throw failure(r.error().message());
    }
}

/// Calls `measure` while `load(stop)` runs on another thread.
template <class Load, class Measure>
double beside(Load load, Measure measure)
{
    std::atomic<bool> stop{false};
    auto running = std::async(std::launch::async, [&] { load(stop); });
    struct stopper {
        std::atomic<bool>& stop;
        ~stopper() { stop = true; }
    };
    double made = 0;
    {
        const stopper last{stop};
        made = measure();
    }
    running.get();
    return made;
}

} // namespace

void plan_graph_row(const stage& s, rows& table)
{
    against_graphs(s, table, one_product, "plan_vs_graph", 1.35, "<= 1.35");
}

void plan_threads_rows(const stage& s, rows& table)
{
    const auto c = against_threads(s, one_product);
    table.push_back(at_least("plan_vs_threads", rates(c.time), 0.55, "k requests/s", ">= 0.55"));
    table.push_back(at_most("plan_vs_threads_cpu", scaled(c.cpu, to_us), 0.25, "us CPU/request", "<= 0.25"));
}

void plan_chain_graph_row(const stage& s, rows& table)
{
    against_graphs(s, table, chain_of_12, "plan_chain12_vs_graph", 1.4, "<= 1.4");
}

void plan_chain_threads_row(const stage& s, rows& table)
{
    const auto c = against_threads(s, chain_of_12);
    table.push_back(at_least("plan_chain12_vs_threads", rates(c.time), 1.5, "k requests/s", ">= 1.5"));
}

void plan_round_trip_row(const stage& s, rows& table)
{
    constexpr int skip = 50;
    constexpr int count = 1000;
    plan_server ours(gpu_device(), one_product);
    raw_server theirs(s.raw, one_product, 1, 1);
    const auto all = collect(
        10, [&](auto& times) { ours.round_trips(skip, count, times); },
        [&](auto& times) { theirs.graph_round_trips(skip, count, times); });
    table.push_back(at_most("plan_rtt_vs_graph", scaled(all.middle(), to_us), 1.15, "us p50", "<= 1.15"));
}

void plan_load_row(const stage&, rows& table)
{
    constexpr int loads = 20;
    constexpr double goal_ms = 5;
    one_device ours(gpu_device());
    const auto described = describe(chain_of_12);
    std::vector<double> times;
    // The first one also loads cuBLAS and its kernels.
    for (int i = 0; i <= loads; ++i) {
        const auto began = clock::now();
        const auto made = ours.get<plan>(ours.gpu().async_load(described));
        if (i > 0)
            times.push_back(seconds_since(began) * to_ms);
        ours.get<void>(made.async_unload());
    }
    table.push_back(at_most("plan_load", {median(times), goal_ms}, 1, "ms", "<= 5 ms"));
}

void request_streams_row(const stage& s, rows& table)
{
    op_server ours(one_product);
    raw_server theirs(s.raw, one_product, streams, clients);
    const auto p = side_by_side(rounds, [&] { return ours.time(); }, [&] { return theirs.stream_time(each); });
    table.push_back(at_most("request_vs_streams", scaled(p, to_us), 1.4, "us/request", "<= 1.4"));
}

void two_devices_row(const stage&, rows& table)
{
    plan_server ours(gpu_device(), one_product, 2);
    plan_server theirs(gpu_device(), one_product);
    const auto p = side_by_side(rounds, [&] { return ours.time(); }, [&] { return theirs.time(); });
    table.push_back(at_least("two_devices", rates(p), 0.9, "k requests/s", ">= 0.9"));
}

void beside_runtime_row(const stage& s, rows& table)
{
    plan_server server(gpu_device(), one_product);
    our_gpu load(s.folder);
    const auto plain_load = [&](const std::atomic<bool>& stop) {
        const auto inside = s.raw.enter();
        while (!stop.load(std::memory_order_relaxed)) {
            for (int i = 0; i < kernels_at_once; ++i)
                s.raw.launch();
            s.raw.synchronize();
        }
    };
    const auto our_load = [&](const std::atomic<bool>& stop) {
        load.run(1, [&] { return launch_until(&load, &stop); });
    };
    const auto p = side_by_side(
        rounds, [&] { return beside(plain_load, [&] { return server.time(); }); },
        [&] { return beside(our_load, [&] { return server.time(); }); });
    table.push_back(at_least("device_beside_runtime", rates(p), 0.9, "k requests/s", ">= 0.9"));
}

void plan_worker_row(const stage&, rows& table)
{
    plan_server ours(isolated(gpu_device(), spinning), one_product);
    plan_server theirs(gpu_device(), one_product);
    const auto p = side_by_side(rounds, [&] { return ours.time(); }, [&] { return theirs.time(); });
    table.push_back(at_most("plan_worker_vs_inproc", scaled(p, to_us), 1.3, "us/request", "<= 1.3"));
}

} // namespace coaccel::bench
