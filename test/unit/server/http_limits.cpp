#include "server/http/access_log.hpp"
#include "server/http/page_files.hpp"
#include "server/http/read_buffer.hpp"
#include "server/http/request_reader.hpp"
#include "server/http/tenants.hpp"
#include "server/http/transfer_limit.hpp"
#include "support/temporary_folder.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/http/error.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

using namespace coaccel;
using namespace coaccel::server;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("server.transfer_limit");

TEST_CASE("a transfer must make progress within each timeout")
{
    const transfer_limit::clock::time_point start{1h};
    transfer_limit limit;
    limit.begin(start, 30s);
    CHECK(limit.deadline() == start + 30s);
    limit.moved(start + 1s, transfer_limit::least_progress - 1);
    CHECK(limit.deadline() == start + 30s);
    // Much at once does not give more time than the timeout after it.
    limit.moved(start + 2s, std::size_t(1) << 30);
    CHECK(limit.deadline() == start + 32s);
    limit.begin(start + 5s, 30s);
    CHECK(limit.deadline() == start + 35s);
}

TEST_CASE("all of a transfer must be as fast as the minimum rate")
{
    const transfer_limit::clock::time_point start{1h};
    transfer_limit limit;
    limit.begin(start, 30s);
    auto now = start;
    std::uint64_t bytes = 0;
    while (now < limit.deadline() && bytes < (64u << 20)) {
        now += 29s;
        limit.moved(now, transfer_limit::least_progress);
        bytes += transfer_limit::least_progress;
    }
    // Slow, but always in time for the next piece: it ends soon after the timeout.
    CHECK(bytes < 10 * transfer_limit::least_progress);
    limit.begin(start, 30s);
    now = start;
    for (int second = 0; second < 4096; ++second) {
        now += 1s;
        limit.moved(now, transfer_limit::least_rate);
        REQUIRE(now < limit.deadline());
    }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("server.http_limits");

TEST_CASE("the trailer of a body replaces no field of the header")
{
    const std::string text = "POST /v2 HTTP/1.1\r\nHost: a\r\nX-API-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "3\r\nabc\r\n0\r\nHost: b\r\nX-API-Key: other\r\nAuthorization: Bearer t\r\n"
                             "Origin: http://o\r\nInference-Header-Content-Length: 1\r\n\r\n";
    for (std::size_t step = 1; step <= text.size(); ++step) {
        request_head head;
        std::string body;
        request_reader reader(head, body, 4096, 100);
        std::size_t from = 0;
        for (std::size_t to = step; !reader.is_done(); to += step) {
            boost::system::error_code ec;
            from += reader.put(boost::asio::buffer(text.data() + from, std::min(to, text.size()) - from), ec);
            REQUIRE((!ec || ec == boost::beast::http::error::need_more));
        }
        CHECK(body == "abc");
        CHECK(head.host == "a");
        CHECK(head.api_key == "k");
        CHECK(head.authorization.empty());
        CHECK(head.origin.empty());
        CHECK_FALSE(head.json_bytes);
    }
}

TEST_CASE("a buffer that nothing is taken from grows geometrically")
{
    read_buffer b;
    int moves = 0;
    const void* before = nullptr;
    for (int i = 0; i < 1024; ++i) {
        (void)b.prepare(1024);
        b.commit(1024);
        moves += b.data().data() != before;
        before = b.data().data();
    }
    CHECK(b.size() == 1024 * 1024);
    CHECK(moves < 24);
}

TEST_CASE("a page is a regular file")
{
    test::temporary_folder folder;
    std::ofstream(folder / "a.txt") << "text";
    std::ofstream(folder / "empty.txt");
    REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
    std::filesystem::create_directory(folder / "inner");
    CHECK(page_file(folder.path(), "a.txt").body == "text");
    CHECK(page_file(folder.path(), "empty.txt").status == 200);
    // Not blocked by the missing writer.
    CHECK(page_file(folder.path(), "fifo").status == 404);
    CHECK(page_file(folder.path(), "inner").status == 404);
    std::filesystem::resize_file(folder / "a.txt", (16 << 20) + 1);
    CHECK(page_file(folder.path(), "a.txt").status == 404);
}

TEST_CASE("an access log ends although its pipe is not read")
{
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    std::string all;
    {
        access_log log(ends[1]);
        const std::string target(1000, 'x');
        for (int i = 0; i < 1000; ++i)
            log.add({"client", "", "GET", target, 200, 0, 0, {}});
    }
    char piece[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], piece, sizeof piece)) > 0;)
        all.append(piece, static_cast<std::size_t>(n));
    ::close(ends[0]);
    CHECK(all.find("client - \"GET xxx") != all.npos);
}

TEST_CASE("keys that differ in one byte or in length belong to no tenant")
{
    boost::asio::io_context io;
    const telemetry::registry metrics(io.get_executor());
    server_options options;
    options.tenants["a"].api_key = "abcd";
    options.tenants["b"].api_key = "abcdabcd";
    const auto all = tenants::create(io.get_executor(), options, metrics).value();
    REQUIRE(all.identify("abcd", ""));
    CHECK(*all.identify("abcd", "") == "a");
    CHECK(*all.identify("abcdabcd", "") == "b");
    for (const char* wrong : {"abc", "abce", "bbcd", "abcda", "abcdabcdabcd", "a"})
        CHECK_FALSE(all.identify(wrong, ""));
    CHECK(all.has_key(all.identify("abcd", "")));
    CHECK_FALSE(all.has_key(all.identify("", "")));
    CHECK_FALSE(all.has_key(nullptr));
}

TEST_SUITE_END();
