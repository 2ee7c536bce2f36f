#include "row.hpp"
#include "server/served_identity.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace coaccel::bench {
namespace {

using asio::ip::tcp;

/// As many connections as the limit of descriptors permits: each has two in this process.
std::size_t connection_count()
{
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const std::size_t descriptors = static_cast<std::size_t>(limit.rlim_cur);
    return std::min<std::size_t>(10'000, (descriptors - std::min<std::size_t>(descriptors, 400)) / 2);
}

double resident_bytes()
{
    std::ifstream file("/proc/self/statm");
    double all = 0, resident = 0;
    file >> all >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// One request on the connection, so that it has all that an idle one keeps.
void use(tcp::socket& socket, const std::string& request)
{
    asio::write(socket, asio::buffer(request));
    std::array<char, 4096> reply;
    std::string text;
    while (text.find("\r\n\r\n") == text.npos || text.find("\"outputs\"") == text.npos)
        text.append(reply.data(), socket.read_some(asio::buffer(reply)));
}

} // namespace

void idle_connection_row(rows& table)
{
    device_options cpu;
    cpu.kind = device_kind::host;
    cpu.host.threads = 1;
    const served_identity served(cpu);
    const std::string request = served_identity::json_request();
    asio::io_context io;
    std::deque<tcp::socket> clients;
    const auto connect = [&] {
        clients.emplace_back(io).connect({asio::ip::address_v4::loopback(), served.port()});
        use(clients.back(), request);
    };
    for (int i = 0; i < 64; ++i)
        connect();
    const double before = resident_bytes();
    const std::size_t count = connection_count();
    for (std::size_t i = 0; i < count; ++i)
        connect();
    // What the clients of this process need is counted, too.
    const double each = (resident_bytes() - before) / static_cast<double>(count);
    for (auto& c : {&clients.front(), &clients.back()})
        use(*c, request);
    std::fprintf(stderr, "serve_idle_memory: %zu connections\n", clients.size());
    table.push_back({"serve_idle_memory", each / 32768, each / 1024, 32, "KiB/connection", "<= 32 KiB",
                     each <= 32768 && count >= 1000});
}

} // namespace coaccel::bench
