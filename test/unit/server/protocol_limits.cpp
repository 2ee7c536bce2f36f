#include "server/protocol/infer_call.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

namespace test_server_protocol_limits {
namespace {

namespace server = coaccel::server;

std::string request_with(const std::string& fields)
{
    return "{\"inputs\":[{" + fields + "}]}";
}

std::string ones(std::size_t count)
{
    std::string text = "[1";
    for (std::size_t i = 1; i < count; ++i)
        text += ",1";
    return text + "]";
}

template <class T>
std::vector<T> values_of(const server::request_input& in)
{
    std::vector<T> all(in.data.size() / sizeof(T));
    std::memcpy(all.data(), in.data.data(), all.size() * sizeof(T));
    return all;
}

} // namespace

TEST_SUITE_BEGIN("server.protocol_limits");

TEST_CASE("a shape has at most 32 dimensions")
{
    server::infer_request r;
    const std::string before = R"("name":"x","datatype":"UINT8","data":[1],"shape":)";
    CHECK_FALSE(server::parse_infer_request(request_with(before + ones(32)), {}, r));
    for (const std::size_t many : {33, 1'000'000}) {
        const auto ec = server::parse_infer_request(request_with(before + ones(many)), {}, r);
        CHECK(ec == coaccel::errc::invalid_argument);
        CHECK_MESSAGE(ec.message().find("inputs[0].shape has more than 32 dimensions") != std::string::npos,
                      ec.message());
        CHECK(r.inputs.at(0).shape.size() == 32);
    }
}

TEST_CASE("messages do not grow with what a client sends")
{
    server::model_signature m;
    m.max_rows = 1;
    m.inputs = {{"x", coaccel::dtype::u8, {}, 1}};
    m.outputs = m.inputs;
    const std::string long_text(100'000, 'q');
    for (const auto& body : {
             request_with(R"("name":"x","datatype":"UINT8","data":[1],"shape":)" + ones(32)),
             request_with("\"name\":\"" + long_text + R"(","datatype":"UINT8","data":[1],"shape":[1])"),
             request_with("\"datatype\":\"" + long_text + "\""),
             request_with("\"name\":\"x\",\"data\":[\"" + long_text + "\"]"),
             request_with(R"("name":"x","shape":[-)" + std::string(1000, '1') + "]"),
             request_with("\"name\":\"x\",\"shape\":\"" + long_text + "\""),
             request_with(R"("name":"x","datatype":"UINT8","data":[1],"shape":[1]}],"outputs":[{"name":")" + long_text +
                          "\""),
         }) {
        CAPTURE(body.substr(0, 100));
        server::infer_request r;
        server::infer_call call;
        auto ec = server::parse_infer_request(body, {}, r);
        if (!ec)
            ec = server::match_request(r, m, call);
        REQUIRE(ec);
        CHECK_MESSAGE(ec.message().size() < 500, ec.message().size());
    }
    server::infer_request r;
    server::infer_call call;
    REQUIRE_FALSE(server::parse_infer_request(
        request_with(R"("name":"x","datatype":"UINT8","data":[1],"shape":)" + ones(20)), {}, r));
    const auto ec = server::match_request(r, m, call);
    CHECK_MESSAGE(ec.message().find("1,1,...and 4 more]") != std::string::npos, ec.message());
}

TEST_CASE("data may come before the datatype, in some inputs or all")
{
    const std::string body = R"({"id":"7","inputs":[
        {"data":[[1,-2],[3.5,"NaN"]],"name":"a","datatype":"FP32","shape":[4]},
        {"name":"b","datatype":"INT64","shape":[1],"data":[9007199254740993]},
        {"shape":[2],"data":[true,255],"datatype":"UINT8","name":"c"}],"outputs":[{"name":"y"}]})";
    server::infer_request r;
    const auto ec = server::parse_infer_request(body, {}, r);
    REQUIRE_MESSAGE(!ec, ec.message());
    CHECK(r.id == "7");
    CHECK(r.outputs.size() == 1);
    REQUIRE(r.inputs.size() == 3);
    const auto a = values_of<float>(r.inputs[0]);
    REQUIRE(a.size() == 4);
    CHECK(a[0] == 1);
    CHECK(a[1] == -2);
    CHECK(a[2] == 3.5f);
    CHECK(a[3] != a[3]);
    CHECK(values_of<std::int64_t>(r.inputs[1]) == std::vector<std::int64_t>{9007199254740993});
    CHECK(values_of<std::uint8_t>(r.inputs[2]) == std::vector<std::uint8_t>{1, 255});
    CHECK(r.inputs[2].shape == std::vector<std::uint64_t>{2});
}

TEST_SUITE_END();

} // namespace test_server_protocol_limits
