#include "server/protocol/documents.hpp"
#include "server/protocol/infer_call.hpp"
#include "server/protocol/infer_response.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <string>

using namespace coaccel;
using namespace coaccel::server;

namespace {

model_signature two_inputs()
{
    model_signature m;
    m.model = "m";
    m.version = "3";
    m.max_rows = 8;
    m.inputs = {{"x", dtype::f32, {2, 2}, 4}, {"n", dtype::i32, {}, 1}};
    m.outputs = {{"y", dtype::f32, {4}, 4}, {"k", dtype::u8, {}, 1}};
    return m;
}

const std::string right = R"({"inputs":[{"name":"n","shape":[2],"datatype":"INT32","data":[5,6]},
    {"name":"x","shape":[2,2,2],"datatype":"FP32","data":[1,2,3,4,5,6,7,8]}]})";

struct matched {
    infer_request request;
    infer_call call;
    error_code ec;

    explicit matched(std::string_view body, const model_signature& m = two_inputs(),
                     std::optional<std::uint64_t> json = {})
    {
        ec = parse_infer_request(body, json, request);
        REQUIRE_MESSAGE(!ec, ec.message());
        ec = match_request(request, m, call);
    }
};

std::string with(std::string text, std::string_view from, std::string_view to)
{
    const auto at = text.find(from);
    REQUIRE(at != text.npos);
    return text.replace(at, from.size(), to);
}

bool contains(const std::string& text, std::string_view part)
{
    return text.find(part) != text.npos;
}

template <class T>
void set(const run_range& to, std::initializer_list<T> values)
{
    REQUIRE(to.bytes() == values.size() * sizeof(T));
    std::memcpy(to.data, values.begin(), to.bytes());
}

} // namespace

TEST_SUITE_BEGIN("server.infer_call");

TEST_CASE("inputs are brought into the order of the model, and outputs get memory")
{
    const auto m = two_inputs();
    matched r(right);
    REQUIRE_MESSAGE(!r.ec, r.ec.message());
    CHECK(r.call.rows == 2);
    REQUIRE(r.call.ranges.size() == 4);
    CHECK(r.call.ranges[0].type == dtype::f32);
    CHECK(r.call.ranges[0].count == 8);
    CHECK(r.call.ranges[0].direction == slot_kind::input);
    CHECK(r.call.ranges[1].type == dtype::i32);
    CHECK(r.call.ranges[2].direction == slot_kind::output);
    CHECK(r.call.ranges[2].count == 8);
    CHECK(r.call.ranges[3].count == 2);
    CHECK(r.call.ranges[2].data >= r.call.memory.data());
    CHECK(r.call.ranges[3].data + 2 <= r.call.memory.data() + r.call.memory.size());
    CHECK(r.call.ranges[3].data >= r.call.ranges[2].data + r.call.ranges[2].bytes());
    CHECK(r.call.answers.size() == m.outputs.size());
}

TEST_CASE("requests that do not fit the model are refused with field and value")
{
    struct wrong {
        const char* from;
        const char* to;
        const char* message;
    };
    for (const wrong& w : {
             wrong{"\"n\"", "\"z\"", "inputs[0].name is \"z\", the model has \"x\", \"n\""},
             wrong{"\"n\"", "\"x\"", "inputs[0].datatype is \"INT32\", the input \"x\" has \"FP32\""},
             wrong{"[2,2,2]", "[2,4]", "inputs[1].shape is [2,4], the input \"x\" has [-1,2,2]"},
             wrong{"[2,2,2]", "[]", "inputs[1].shape is [], the input \"x\" has [-1,2,2]"},
             wrong{"[2,2,2]", "[1,2,2]", "inputs[1].shape has 1 rows, another input 2"},
             wrong{"[2,2,2]", "[0,2,2]", "inputs[1].shape is [0,2,2], which has no rows"},
             wrong{"[2,2,2]", "[9,2,2]", "inputs[1].shape is [9,2,2], which has more than 8 rows"},
             wrong{"[2,2,2]", "[18446744073709551615,2,2]", "which has more than 8 rows"},
             wrong{"[5,6]", "[5]", "inputs[0] has 4 bytes of data, its shape and datatype need 8"},
             wrong{"[5,6]", "[]", "inputs[0] has 0 bytes of data"},
             wrong{"]}]}", "]}],\"outputs\":[{\"name\":\"q\"}]}",
                   "outputs[0].name is \"q\", the model has \"y\", \"k\""},
             wrong{"]}]}", "]}],\"outputs\":[{\"name\":\"y\"},{\"name\":\"y\"}]}", "there are two outputs \"y\""},
         }) {
        const auto body = with(right, w.from, w.to);
        CAPTURE(body);
        matched r(body);
        REQUIRE(r.ec);
        CHECK_MESSAGE(contains(r.ec.message(), w.message), r.ec.message());
        CHECK(r.ec == fault::caller);
    }
    matched missing(R"({"inputs":[{"name":"n","shape":[2],"datatype":"INT32","data":[5,6]}]})");
    CHECK(contains(missing.ec.message(), "the input \"x\" is missing"));
    matched twice(R"({"inputs":[{"name":"n","shape":[1],"datatype":"INT32","data":[5]},
        {"name":"n","shape":[1],"datatype":"INT32","data":[5]}]})");
    CHECK(contains(twice.ec.message(), "there are two inputs \"n\""));
}

TEST_CASE("a model without a batch dimension takes exactly its shape")
{
    model_signature m;
    m.batched = false;
    m.max_rows = 1;
    m.inputs = {{"x", dtype::u8, {2, 2}, 4}};
    m.outputs = {{"y", dtype::u8, {4}, 4}};
    matched fits(R"({"inputs":[{"name":"x","shape":[2,2],"datatype":"UINT8","data":[1,2,3,4]}]})", m);
    CHECK_FALSE(fits.ec);
    matched does_not(R"({"inputs":[{"name":"x","shape":[1,2,2],"datatype":"UINT8","data":[1,2,3,4]}]})", m);
    CHECK(contains(does_not.ec.message(), "inputs[0].shape is [1,2,2], the input \"x\" has [2,2]"));
    std::string out;
    append_response(out, "", m, fits.call);
    CHECK(contains(out, "\"shape\":[4]"));
}

TEST_CASE("a body without JSON has as many rows as its size tells")
{
    auto m = two_inputs();
    matched several("abcd", m, 0);
    CHECK(contains(several.ec.message(), "for models with one input; this one has 2"));
    m.inputs.pop_back();
    matched two(std::string(32, 'a'), m, 0);
    REQUIRE_FALSE(two.ec);
    CHECK(two.call.rows == 2);
    CHECK(two.call.answers.at(0).binary);
    matched odd(std::string(33, 'a'), m, 0);
    CHECK(contains(odd.ec.message(), "the body has 33 bytes"));
    matched many(std::string(16 * 9, 'a'), m, 0);
    CHECK(contains(many.ec.message(), "from 1 to 8 rows of 16 bytes"));
    matched none("", m, 0);
    CHECK(none.ec == errc::length_mismatch);
}

TEST_CASE("priorities are those of a Triton server")
{
    CHECK(priority_of(0) == priority::normal);
    CHECK(priority_of(1) == priority::high);
    CHECK(priority_of(2) == priority::normal);
    CHECK(priority_of(3) == priority::low);
    CHECK(priority_of(1000) == priority::low);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("server.infer_response");

TEST_CASE("a reply is JSON, with special numbers as texts")
{
    const auto m = two_inputs();
    matched r(right);
    set<float>(r.call.ranges[2],
               {0.1f, 1, -2.5f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                -std::numeric_limits<float>::infinity(), 1e20f, 0});
    set<std::uint8_t>(r.call.ranges[3], {7, 255});
    std::string out = "before";
    const auto parts = append_response(out, "i\"d\n", m, r.call);
    CHECK_FALSE(parts.json_bytes.has_value());
    CHECK(parts.binary_bytes == 0);
    CHECK(out == "before{\"model_name\":\"m\",\"model_version\":\"3\",\"id\":\"i\\\"d\\n\",\"outputs\":["
                 "{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[2,4],"
                 "\"data\":[0.1,1,-2.5,\"NaN\",\"Infinity\",\"-Infinity\",1e+20,0]},"
                 "{\"name\":\"k\",\"datatype\":\"UINT8\",\"shape\":[2],\"data\":[7,255]}]}");
}

TEST_CASE("binary outputs follow the JSON, in the order in which they were asked for")
{
    const auto m = two_inputs();
    matched r(with(right, "]}]}", R"(]}],"outputs":[{"name":"k","parameters":{"binary_data":true}},{"name":"y"}],
        "parameters":{"binary_data_output":true}})"));
    REQUIRE_FALSE(r.ec);
    set<float>(r.call.ranges[2], {1, 2, 3, 4, 5, 6, 7, 8});
    set<std::uint8_t>(r.call.ranges[3], {'a', 'b'});
    std::string out;
    const auto parts = append_response(out, "", m, r.call);
    CHECK(parts.json_bytes == out.size());
    CHECK(parts.binary_bytes == 34);
    CHECK(out == "{\"model_name\":\"m\",\"model_version\":\"3\",\"outputs\":["
                 "{\"name\":\"k\",\"datatype\":\"UINT8\",\"shape\":[2],\"parameters\":{\"binary_data_size\":2}},"
                 "{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[2,4],\"parameters\":{\"binary_data_size\":32}}]}");
    std::string binary;
    append_binary(binary, m, r.call);
    CHECK(binary.size() == 34);
    CHECK(binary.substr(0, 2) == "ab");
    float last = 0;
    std::memcpy(&last, binary.data() + 30, sizeof last);
    CHECK(last == 8);
}

TEST_CASE("an output filter leaves the others out")
{
    const auto m = two_inputs();
    matched r(with(right, "]}]}", R"(]}],"outputs":[{"name":"k"}]})"));
    set<std::uint8_t>(r.call.ranges[3], {1, 2});
    std::string out;
    append_response(out, "", m, r.call);
    CHECK_FALSE(contains(out, "\"y\""));
    CHECK(contains(out, "\"data\":[1,2]"));
}

TEST_CASE("what was written as JSON reads back as the same elements")
{
    model_signature m;
    m.model = "m";
    m.version = "1";
    m.max_rows = 300;
    for (int d = 1; d <= 16; ++d) {
        const auto type = static_cast<dtype>(d);
        const auto each = size_of(type);
        m.inputs = {{"x", type, {}, 1}};
        m.outputs = m.inputs;
        std::string body(each * 256, '\0');
        for (std::size_t i = 0; i < body.size(); ++i)
            body[i] = static_cast<char>((i * 37 + i / each * 11) % 251 & (i % each == each - 1 ? 0x3b : 0xff));
        matched sent(body, m, 0);
        REQUIRE_MESSAGE(!sent.ec, sent.ec.message());
        std::memcpy(sent.call.memory.data(), body.data(), body.size());
        sent.call.answers[0].binary = false;
        std::string reply;
        append_response(reply, "", m, sent.call);
        const auto at = reply.find("\"data\":");
        REQUIRE(at != reply.npos);
        const std::string again = "{\"inputs\":[" + reply.substr(reply.find("{\"name\""));
        matched read(again, m);
        REQUIRE_MESSAGE(!read.ec, read.ec.message());
        CHECK_MESSAGE(std::memcmp(read.call.ranges[0].data, body.data(), body.size()) == 0, to_string(type));
    }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("server.documents");

TEST_CASE("documents describe the server, models, statistics and the folder")
{
    const auto m = two_inputs();
    CHECK(error_document("a \"b\"") == "{\"error\":\"a \\\"b\\\"\"}");
    CHECK(contains(server_document(), "\"binary_tensor_data\""));
    const std::string versions[] = {"1", "3"};
    CHECK(model_document(m, versions) == "{\"name\":\"m\",\"versions\":[\"1\",\"3\"],\"platform\":\"coaccel_plan\","
                                         "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,2,2]},"
                                         "{\"name\":\"n\",\"datatype\":\"INT32\",\"shape\":[-1]}],"
                                         "\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,4]},"
                                         "{\"name\":\"k\",\"datatype\":\"UINT8\",\"shape\":[-1]}]}");
    CHECK(contains(config_document(m), "\"max_batch_size\":8"));
    CHECK(contains(config_document(m), "\"data_type\":\"TYPE_FP32\",\"dims\":[2,2]"));
    const model_statistics s{.model = "m", .version = "3", .inferences = 5, .executions = 2, .success = {4, 900}};
    CHECK(contains(statistics_document({&s, 1}), "\"inference_count\":5,\"execution_count\":2"));
    CHECK(contains(statistics_document({&s, 1}), "\"success\":{\"count\":4,\"ns\":900}"));
    const index_entry e{"m", "3", "UNAVAILABLE", "damaged"};
    CHECK(index_document({&e, 1}) ==
          "[{\"name\":\"m\",\"version\":\"3\",\"state\":\"UNAVAILABLE\",\"reason\":\"damaged\"}]");
}

TEST_SUITE_END();
