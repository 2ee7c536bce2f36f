#include "server_runs.hpp"

#include "chaos.hpp"
#include "processes.hpp"

#include <coaccel/ops/plugin.hpp>
#include <coaccel/plan/plan_set_builder.hpp>
#include <coaccel/server/server.hpp>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <future>
#include <stdlib.h>
#include <string>
#include <thread>
#include <vector>

namespace chaos {

using namespace coaccel;
using namespace std::chrono_literals;

namespace {

using asio::ip::tcp;

constexpr int polite_clients = 24;
constexpr int rude_clients = 6;
constexpr std::uint32_t row_floats = 4;
constexpr auto as_result_tuple = asio::as_tuple(asio::use_awaitable);

struct server_tally {
    std::atomic<bool> stop{false};
    std::atomic<int> clients{0};
    std::atomic<std::uint64_t> answered{0};
    std::atomic<std::uint64_t> innocent_failed{0};
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> rude{0};
    std::atomic<std::uint64_t> killed{0};
    std::atomic<std::uint64_t> poisoned{0};
    std::atomic<std::uint64_t> poisoned_answered{0};
    std::atomic<std::uint64_t> reloaded{0};
};

/// y = 2 x for rows of four; a first element below zero ends the process, see poison_plugin.cpp.
void save_model(const std::filesystem::path& folder, std::uint32_t largest)
{
    plan_set_builder set("twice");
    for (const std::uint32_t rows : {1u, largest}) {
        auto& b = set.plan("twice" + std::to_string(rows));
        const auto x = b.input<float>(batch_of(rows, {{row_floats}}), "x");
        const auto y = b.output<float>(batch_of(rows, {{row_floats}}), "y");
        for (std::uint32_t r = 0; r < rows; ++r)
            b.add(pure(plugin::call("twice", in(x.subspan(r * row_floats, row_floats)),
                                    out(y.subspan(r * row_floats, row_floats)))));
    }
    std::filesystem::create_directories(folder / "twice" / "1");
    set.finish().value().save((folder / "twice" / "1" / "model.plan").string()).value();
}

std::string request_of(float first)
{
    const std::string body = "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[" +
                             std::to_string(static_cast<int>(first)) + ",1,2,3]}]}";
    return "POST /v2/models/twice/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

/// Sends the request and reads the reply; the status 0 stands for an end of the connection.
asio::awaitable<int> ask(tcp::socket& socket, std::string request, std::string& reply)
{
    reply.clear();
    const auto [failed, sent] = co_await asio::async_write(socket, asio::buffer(request), as_result_tuple);
    if (failed)
        co_return 0;
    for (;;) {
        char piece[2048];
        const auto [ec, n] = co_await socket.async_read_some(asio::buffer(piece), as_result_tuple);
        if (ec)
            co_return 0;
        reply.append(piece, n);
        const auto end = reply.find("\r\n\r\n");
        const auto field = reply.find("Content-Length: ");
        if (end == reply.npos || field > end)
            continue;
        if (reply.size() >= end + 4 + std::stoul(reply.substr(field + 16)))
            co_return std::stoi(reply.substr(9, 3));
    }
}

asio::awaitable<bool> connect(tcp::socket& socket, std::uint16_t port)
{
    const tcp::endpoint where(asio::ip::address_v4::loopback(), port);
    const auto [ec] = co_await socket.async_connect(where, as_result_tuple);
    co_return !ec;
}

asio::awaitable<void> polite(std::uint16_t port, server_tally& counts, std::uint32_t seed)
{
    dice random(seed);
    tcp::socket socket(co_await asio::this_coro::executor);
    bool connected = co_await connect(socket, port);
    while (connected && !counts.stop) {
        const int first = static_cast<int>(random.pick(1000));
        std::string reply;
        const int status = co_await ask(socket, request_of(static_cast<float>(first)), reply);
        ++counts.answered;
        if (status != 200) {
            if (counts.innocent_failed++ == 0)
                std::fprintf(stderr, "an innocent request failed: %d %s\n", status, reply.c_str());
            connected = status != 0;
        } else if (reply.find("\"data\":[" + std::to_string(2 * first) + ",2,4,6]") == reply.npos) {
            ++counts.wrong;
        }
    }
    counts.innocent_failed += !connected && !counts.stop;
    --counts.clients;
}

/// Goes away in the middle of a request, of a batch or of a reply, or sends what is no request.
asio::awaitable<void> rude(std::uint16_t port, server_tally& counts, std::uint32_t seed)
{
    dice random(seed);
    while (!counts.stop) {
        tcp::socket socket(co_await asio::this_coro::executor);
        if (!co_await connect(socket, port))
            break;
        const std::string whole = request_of(7);
        std::string text = whole.substr(0, random.pick(static_cast<std::uint32_t>(whole.size())));
        if (random.pick(2) == 0)
            text = whole + whole + text;
        if (random.pick(8) == 0)
            text = "GET / \x01\x02 nonsense\r\n\r\n";
        co_await asio::async_write(socket, asio::buffer(text), as_result_tuple);
        boost::system::error_code ignored;
        if (random.pick(3) == 0)
            socket.shutdown(tcp::socket::shutdown_send, ignored);
        if (random.pick(3) == 0)
            socket.set_option(asio::socket_base::linger(true, 0), ignored); // closed by a reset
        co_await pause(std::chrono::milliseconds(random.pick(20)));
        ++counts.rude;
    }
    --counts.clients;
}

/// One fault at a time: a fault under which a request runs alone is rightly blamed on it.
asio::awaitable<void> trouble(std::uint16_t port, std::filesystem::path folder, telemetry::registry metrics,
                              server_tally& counts, std::uint32_t seed)
{
    dice random(seed);
    int poisons_left = 6; // the plan is quarantined after eight in a minute
    std::uint32_t largest = 8;
    while (!counts.stop) {
        co_await pause(std::chrono::milliseconds(400 + random.pick(400)));
        switch (random.pick(4)) {
        case 0:
            if (poisons_left > 0) {
                --poisons_left;
                tcp::socket socket(co_await asio::this_coro::executor);
                std::string reply;
                const bool connected = co_await connect(socket, port);
                const int status = connected ? co_await ask(socket, request_of(-1), reply) : 0;
                ++counts.poisoned;
                counts.poisoned_answered += status == 500;
                break;
            }
            [[fallthrough]];
        case 1:
            largest = largest == 8 ? 4 : 8;
            save_model(folder, largest);
            ++counts.reloaded;
            break;
        default: {
            const auto all = co_await metrics.async_collect();
            if (!all || all.value().devices.empty() || !all.value().devices[0].stats)
                break;
            send(all.value().devices[0].stats->hardware.process, SIGKILL);
            ++counts.killed;
        }
        }
    }
    --counts.clients;
}

} // namespace

int run_server(const server_chaos_options& how)
{
    const auto descriptors = open_descriptors();
    std::string name = (std::filesystem::temp_directory_path() / "coaccel-chaos-XXXXXX").string();
    if (!::mkdtemp(name.data()))
        return 1;
    const std::filesystem::path folder = name;
    save_model(folder, 8);
    server_tally counts;
    bool ended = false;
    {
        asio::io_context io;
        auto work = asio::make_work_guard(io);
        std::vector<std::jthread> threads;
        for (int i = 0; i < 2; ++i)
            threads.emplace_back([&io] { io.run(); });
        asio::io_context clients_io(1);
        {
            const telemetry::registry metrics(io.get_executor());
            server::server_options options;
            options.port = 0;
            options.model_folder = folder.string();
            options.poll_interval = 20ms;
            options.io_threads = 2;
            device_options cpu;
            cpu.kind = device_kind::host;
            cpu.host.threads = 2;
            cpu.isolation = isolation::worker;
            cpu.standby = 1;
            cpu.plugin = COACCEL_CHAOS_PLUGIN;
            cpu.restart.max_restarts = 100'000;
            cpu.restart.initial_backoff = 1ms;
            cpu.restart.max_backoff = 5ms;
            options.devices = {cpu};
            auto serving = server::server::async_create(io.get_executor(), options, metrics, asio::use_future).get();
            const auto port = serving.port();
            const auto start = [&](asio::awaitable<void> what) {
                ++counts.clients;
                asio::co_spawn(clients_io, std::move(what), asio::detached);
            };
            for (int i = 0; i < polite_clients; ++i)
                start(polite(port, counts, how.seed + static_cast<std::uint32_t>(i)));
            for (int i = 0; i < rude_clients; ++i)
                start(rude(port, counts, how.seed + 100 + static_cast<std::uint32_t>(i)));
            start(trouble(port, folder, metrics, counts, how.seed + 200));
            clients_io.run_for(std::chrono::seconds(how.seconds));
            counts.stop = true;
            clients_io.restart();
            clients_io.run_for(60s);
            auto stopped = serving.async_shutdown(shutdown::drain, asio::use_future);
            ended = stopped.wait_for(60s) == std::future_status::ready;
        }
        work.reset();
        if (!ended)
            io.stop();
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    const auto left = left_resources(descriptors);
    const auto n = [](const auto& counter) { return static_cast<unsigned long long>(counter.load()); };
    std::printf("requests=%llu killed=%llu poisoned=%llu poisoned_answered=%llu reloaded=%llu rude=%llu\n",
                n(counts.answered), n(counts.killed), n(counts.poisoned), n(counts.poisoned_answered),
                n(counts.reloaded), n(counts.rude));
    std::printf("innocent_failed=%llu wrong=%llu hung=%d leaked=%llu\n", n(counts.innocent_failed), n(counts.wrong),
                counts.clients.load() + !ended, static_cast<unsigned long long>(left));
    const bool alive = counts.answered > 0 && counts.killed > 0 && counts.rude > 0;
    const bool right = counts.innocent_failed == 0 && counts.wrong == 0 && counts.clients == 0 && ended && left == 0 &&
                       counts.poisoned == counts.poisoned_answered;
    return alive && right ? 0 : 1;
}

} // namespace chaos
