#include "server/http_load.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <string_view>
#include <utility>

namespace coaccel::bench {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using load_clock = std::chrono::steady_clock;
using load_error = boost::system::error_code;

double seconds_since(load_clock::time_point t)
{
    return std::chrono::duration<double>(load_clock::now() - t).count();
}

struct load_state {
    const http_load& load;
    http_load_result result{};
    load_clock::time_point began = load_clock::now();
    std::uint64_t started = 0;

    bool over() const { return load.requests > 0 ? started >= load.requests : seconds_since(began) >= load.seconds; }

    void fail(std::string why)
    {
        if (result.failed++ == 0)
            result.first_failure = std::move(why);
    }
};

/// One connection: as little work as possible, because it competes with the server for the processor.
class load_client {
public:
    load_client(asio::io_context& io, load_state& s) : socket_(io), state_(s) {}

    void start()
    {
        load_error ec;
        socket_.connect({asio::ip::address_v4::loopback(), state_.load.port}, ec);
        if (ec)
            return state_.fail("connect: " + ec.message());
        socket_.set_option(tcp::no_delay(true), ec);
        socket_.non_blocking(true, ec);
        next();
    }

private:
    void next()
    {
        if (state_.over())
            return;
        ++state_.started;
        size_ = 0;
        whole_ = 0;
        began_ = load_clock::now();
        load_error ec;
        const auto& text = state_.load.request;
        const std::size_t n = socket_.write_some(asio::buffer(text), ec);
        if (!ec && n == text.size())
            return read();
        asio::async_write(socket_, asio::buffer(text) + n, [this](const load_error& e, std::size_t) {
            e ? state_.fail("write: " + e.message()) : read();
        });
    }

    void read()
    {
        socket_.async_read_some(asio::buffer(reply_) + size_, [this](const load_error& ec, std::size_t n) {
            if (ec)
                return state_.fail("read: " + ec.message());
            size_ += n;
            arrived();
        });
    }

    void arrived()
    {
        const std::string_view text(reply_.data(), size_);
        if (whole_ == 0) {
            const auto end = text.find("\r\n\r\n");
            if (end == text.npos)
                return read();
            const auto field = text.find("Content-Length: ");
            whole_ = end + 4 +
                     (field < end ? static_cast<std::size_t>(std::atoi(reply_.data() + field + 16)) : std::size_t(0));
        }
        if (size_ < whole_)
            return read();
        if (!text.starts_with("HTTP/1.1 200"))
            state_.fail(std::string(text.substr(0, 300)));
        ++state_.result.answered;
        state_.result.longest = std::max(state_.result.longest, seconds_since(began_));
        next();
    }

    tcp::socket socket_;
    load_state& state_;
    std::array<char, 8192> reply_{};
    std::size_t size_ = 0;
    std::size_t whole_ = 0;
    load_clock::time_point began_{};
};

void tick_again(asio::steady_timer& timer, load_state& s)
{
    timer.expires_after(std::chrono::milliseconds(50));
    timer.async_wait([&](const load_error&) {
        if (s.over())
            return;
        s.load.tick(seconds_since(s.began));
        tick_again(timer, s);
    });
}

} // namespace

http_load_result run_http_load(const http_load& load)
{
    asio::io_context io(1);
    load_state state{load};
    std::deque<load_client> clients;
    for (int i = 0; i < load.connections; ++i)
        clients.emplace_back(io, state);
    asio::steady_timer timer(io);
    state.began = load_clock::now();
    if (load.tick)
        tick_again(timer, state);
    for (auto& c : clients)
        c.start();
    io.run();
    state.result.seconds = seconds_since(state.began);
    return state.result;
}

} // namespace coaccel::bench
