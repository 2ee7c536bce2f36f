#include "server/http/access_log.hpp"
#include "server/http/page_files.hpp"
#include "server/http/read_buffer.hpp"
#include "server/http/reply.hpp"
#include "server/http/request_reader.hpp"
#include "server/http/tenants.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/beast/http/error.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

using namespace coaccel;
using namespace coaccel::server;

namespace {

void put(read_buffer& b, const std::string& text)
{
    const auto room = b.prepare(text.size());
    std::memcpy(room.data(), text.data(), text.size());
    b.commit(text.size());
}

std::string content(const read_buffer& b)
{
    return {static_cast<const char*>(b.data().data()), b.size()};
}

} // namespace

TEST_SUITE_BEGIN("server.read_buffer");

TEST_CASE("bytes may be consumed while a read is pending")
{
    read_buffer b;
    put(b, "first");
    const auto pending = b.prepare(6);
    b.consume(5);
    CHECK(b.size() == 0);
    std::memcpy(pending.data(), "second", 6);
    b.commit(6);
    CHECK(content(b) == "second");
    b.consume(3);
    put(b, std::string(1000, 'x'));
    CHECK(content(b) == "ond" + std::string(1000, 'x'));
    b.release();
    CHECK(b.size() == 1003);
    b.consume(2000);
    b.release();
    CHECK(b.capacity() == 0);
    put(b, "again");
    CHECK(content(b) == "again");
}

TEST_CASE("its memory is used again")
{
    read_buffer b;
    put(b, std::string(100, 'a'));
    b.consume(90);
    const auto capacity = b.capacity();
    put(b, std::string(90, 'b'));
    CHECK(b.capacity() == capacity);
    CHECK(content(b) == std::string(10, 'a') + std::string(90, 'b'));
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("server.request_reader");

TEST_CASE("only the fields that matter are kept, in pieces of any size")
{
    const std::string text = "POST /v2?x HTTP/1.1\r\nHost: a:1\r\nX-Other: b\r\nACCEPT: c\r\nAccept: d\r\n"
                             "x-api-key: k\r\nAuthorization: Bearer t\r\nOrigin: http://o\r\n"
                             "inference-header-content-length: 12\r\nX-REQUEST-TIMEOUT-MS: 34\r\n"
                             "Expect: 100-Continue\r\nContent-Length: 5\r\n\r\nhello";
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
        CHECK(head.method == "POST");
        CHECK(head.target == "/v2?x");
        CHECK(head.host == "a:1");
        CHECK(head.accept == "c,d");
        CHECK(head.api_key == "k");
        CHECK(head.authorization == "Bearer t");
        CHECK(head.origin == "http://o");
        CHECK(head.json_bytes == 12);
        CHECK(head.timeout == std::chrono::milliseconds(34));
        CHECK(head.expects_continue);
        CHECK_FALSE(head.encoded);
        CHECK(head.problem.empty());
        CHECK(body == "hello");
    }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("server.reply");

TEST_CASE("a reply has the fields that its status needs")
{
    reply r = error_reply(503, "no");
    r.retry_after = 5;
    std::string out;
    append_head(out, r, 11, after_reply::close, r.body.size());
    CHECK(out == "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 14\r\n"
                 "Connection: close\r\nRetry-After: 5\r\n\r\n");
    out.clear();
    append_head(out, reply(), 10, after_reply::keep, 3, 2);
    CHECK(out == "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 3\r\n"
                 "Inference-Header-Content-Length: 2\r\nConnection: keep-alive\r\n\r\n");
    CHECK(failure_reply(errc::queue_full).status == 429);
}

TEST_CASE("a line of the access log cannot be forged")
{
    const std::chrono::system_clock::time_point at{std::chrono::milliseconds(1'700'000'000'123)};
    access_record r{"::1", "", "GET", "/a\" 200\n2024", 404, 1, 22, std::chrono::microseconds(1500)};
    CHECK(access_line(r, at) == "2023-11-14T22:13:20.123Z ::1 - \"GET /a\\x22\\x20200\\x0a2024\" 404 1 22 0.001500\n");
}

TEST_CASE("pages are only served from their folder")
{
    for (const char* good : {"", "index.html", "a/b/c.js", "a/"})
        CHECK(is_page_path(good));
    for (const char* bad : {"..", "../x", "a/../b", "a/..", ".git/config", "a//b", "/etc/passwd", "a\\b", "a/.b"})
        CHECK_FALSE(is_page_path(bad));
    CHECK(page_file("", "index.html").status == 404);
    CHECK(page_file("/nonexistent", "").status == 404);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("server.tenants");

TEST_CASE("a key leads to its tenant")
{
    boost::asio::io_context io;
    const telemetry::registry metrics(io.get_executor());
    server_options options;
    const auto none = tenants::create(io.get_executor(), options, metrics).value();
    CHECK_FALSE(none.divided());
    CHECK(none.identify("", ""));
    CHECK(none.identify("whatever", ""));
    options.tenants["a"].api_key = "ka";
    options.tenants["anonymous"].api_key = "kb";
    const auto some = tenants::create(io.get_executor(), options, metrics).value();
    CHECK(some.divided());
    REQUIRE(some.identify("ka", ""));
    CHECK(*some.identify("ka", "") == "a");
    CHECK(*some.identify("", "bearer kb") == "anonymous");
    CHECK(*some.identify("", "") == "anonymous_");
    CHECK(*some.identify("", "Basic xyz") == "anonymous_");
    CHECK_FALSE(some.identify("kc", ""));
    CHECK_FALSE(some.identify("", "Bearer kc"));
    options.anonymous = false;
    const auto closed = tenants::create(io.get_executor(), options, metrics).value();
    CHECK_FALSE(closed.identify("", ""));
    CHECK(closed.identify("ka", "Bearer nonsense"));
}

TEST_SUITE_END();
