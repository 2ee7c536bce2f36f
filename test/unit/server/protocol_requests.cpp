#include "server/protocol/infer_request.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace coaccel;
using namespace coaccel::server;

namespace {

infer_request parsed(std::string_view body, std::optional<std::uint64_t> json = {})
{
    infer_request r;
    const auto ec = parse_infer_request(body, json, r);
    REQUIRE_MESSAGE(!ec, ec.message());
    return r;
}

std::string refusal(std::string_view body, std::optional<std::uint64_t> json = {})
{
    infer_request r;
    const auto ec = parse_infer_request(body, json, r);
    REQUIRE(ec == errc::invalid_argument);
    return ec.message();
}

bool refused_with(std::string_view body, std::string_view part, std::optional<std::uint64_t> json = {})
{
    const auto text = refusal(body, json);
    INFO(text);
    const bool right = text.find(part) != text.npos;
    CHECK_MESSAGE(right, text);
    return right;
}

std::string one_input(std::string_view fields)
{
    return "{\"inputs\":[{" + std::string(fields) + "}]}";
}

std::string tensor(std::string_view type, std::string_view data, std::string_view shape = "[1]")
{
    return one_input("\"name\":\"x\",\"shape\":" + std::string(shape) + ",\"datatype\":\"" + std::string(type) +
                     "\",\"data\":" + std::string(data));
}

template <class T>
std::vector<T> elements(const request_input& in)
{
    REQUIRE(in.data.size() % sizeof(T) == 0);
    std::vector<T> all(in.data.size() / sizeof(T));
    if (!all.empty())
        std::memcpy(all.data(), in.data.data(), in.data.size());
    return all;
}

template <class T>
T only(std::string_view type, std::string_view number)
{
    const std::string body = tensor(type, "[" + std::string(number) + "]");
    const auto r = parsed(body);
    const auto all = elements<T>(r.inputs.at(0));
    REQUIRE(all.size() == 1);
    return all[0];
}

bool fits(std::string_view type, std::string_view number)
{
    const std::string body = tensor(type, "[" + std::string(number) + "]");
    infer_request r;
    const auto ec = parse_infer_request(body, {}, r);
    if (ec)
        CHECK_MESSAGE(ec.message().find("inputs[0].data[0] is ") != std::string::npos, ec.message());
    return !ec;
}

} // namespace

TEST_SUITE_BEGIN("server.infer_request");

TEST_CASE("all fields of a JSON request are read, in any order")
{
    const std::string body = R"({"id":"a\u00e9\"b","parameters":{"timeout":1500,"priority":1,"binary_data_output":true,
        "sequence_id":7,"other":{"deep":[1,{"inputs":[]}]}},
        "inputs":[{"name":"x","shape":[2,3],"datatype":"FP32","data":[[1,2,3],[4.5,-5,6e1]]},
                  {"data":[7],"parameters":{"unknown":[1]},"datatype":"INT64","shape":[1],"name":"n"}],
        "outputs":[{"name":"y","parameters":{"binary_data":false,"classification":0}},{"name":"z"}], "extra":null})";
    const auto r = parsed(body);
    CHECK(r.id == "a\xc3\xa9\"b");
    CHECK(r.timeout == std::chrono::microseconds(1500));
    CHECK(r.priority == 1);
    CHECK(r.binary_output);
    CHECK_FALSE(r.raw);
    REQUIRE(r.inputs.size() == 2);
    CHECK(r.inputs[0].name == "x");
    CHECK(r.inputs[0].type == dtype::f32);
    CHECK(r.inputs[0].shape == std::vector<std::uint64_t>{2, 3});
    CHECK(elements<float>(r.inputs[0]) == std::vector<float>{1, 2, 3, 4.5, -5, 60});
    CHECK(r.inputs[1].name == "n");
    CHECK(elements<std::int64_t>(r.inputs[1]) == std::vector<std::int64_t>{7});
    REQUIRE(r.outputs.size() == 2);
    CHECK(r.outputs[0].name == "y");
    CHECK(r.outputs[0].binary == false);
    CHECK_FALSE(r.outputs[1].binary.has_value());
}

TEST_CASE("a request that is decoded twice into the same object is decoded afresh")
{
    infer_request r;
    const std::string first = R"({"id":"1","parameters":{"timeout":5,"priority":2,"binary_data_output":true},
        "inputs":[{"name":"x","shape":[1],"datatype":"UINT8","data":[1]}],"outputs":[{"name":"y"}]})";
    REQUIRE_FALSE(parse_infer_request(first, {}, r));
    const std::string second = tensor("UINT8", "[9]");
    REQUIRE_FALSE(parse_infer_request(second, {}, r));
    CHECK(r.id.empty());
    CHECK_FALSE(r.timeout.has_value());
    CHECK(r.priority == 0);
    CHECK_FALSE(r.binary_output);
    CHECK(r.outputs.empty());
    REQUIRE(r.inputs.size() == 1);
    CHECK(elements<std::uint8_t>(r.inputs[0]) == std::vector<std::uint8_t>{9});
}

TEST_CASE("numbers of every type are exact, and out of range they are refused")
{
    CHECK(only<float>("FP32", "0.1") == 0.1f);
    CHECK(only<double>("FP64", "0.1") == 0.1);
    CHECK(only<double>("FP64", "2.2250738585072011e-308") == 2.2250738585072011e-308);
    CHECK(only<double>("FP64", "9007199254740993.0") == 9007199254740993.0);
    CHECK(only<double>("FP64", "1e-400") == 0);
    CHECK(std::signbit(only<float>("FP32", "-1e-300")));
    CHECK(static_cast<float>(only<half>("FP16", "1.5")) == 1.5f);
    CHECK(static_cast<float>(only<bfloat16>("BF16", "-2")) == -2.0f);
    CHECK(static_cast<float>(only<float8_e4m3>("FP8_E4M3", "0.5")) == 0.5f);
    CHECK(static_cast<float>(only<float8_e5m2>("FP8_E5M2", "-4")) == -4.0f);
    CHECK(static_cast<float>(only<float8_e4m3>("FP8_E4M3", "448")) == 448.0f);
    CHECK(static_cast<float>(only<float8_e5m2>("FP8_E5M2", "57344")) == 57344.0f);
    CHECK(std::isinf(static_cast<float>(only<float8_e5m2>("FP8_E5M2", "\"Infinity\""))));
    CHECK(only<std::int8_t>("INT8", "-128") == -128);
    CHECK(only<std::uint64_t>("UINT64", "18446744073709551615") == 18446744073709551615u);
    CHECK(only<std::int64_t>("INT64", "-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
    CHECK(only<std::int32_t>("INT32", "2.0") == 2);
    CHECK(only<std::uint16_t>("UINT16", "1e3") == 1000);
    CHECK(only<std::uint8_t>("UINT8", "true") == 1);
    CHECK(std::isnan(only<float>("FP32", "\"NaN\"")));
    CHECK(only<double>("FP64", "\"-Infinity\"") == -INFINITY);
    CHECK(std::isinf(static_cast<float>(only<half>("FP16", "\"Infinity\""))));

    CHECK_FALSE(fits("INT8", "128"));
    CHECK_FALSE(fits("INT8", "-129"));
    CHECK_FALSE(fits("UINT8", "-1"));
    CHECK_FALSE(fits("UINT16", "65536"));
    CHECK_FALSE(fits("INT32", "2147483648"));
    CHECK_FALSE(fits("INT32", "1.5"));
    CHECK_FALSE(fits("UINT64", "18446744073709551616"));
    CHECK_FALSE(fits("INT64", "9223372036854775808"));
    CHECK_FALSE(fits("INT64", "9223372036854775808.0"));
    CHECK_FALSE(fits("FP32", "1e39"));
    CHECK_FALSE(fits("FP64", "1e309"));
    CHECK_FALSE(fits("FP16", "1e6"));
    CHECK_FALSE(fits("FP8_E4M3", "1000"));
    CHECK_FALSE(fits("FP8_E4M3", "\"Infinity\""));
    CHECK_FALSE(fits("FP8_E5M2", "-70000"));
    CHECK_FALSE(fits("INT32", "\"NaN\""));
    CHECK_FALSE(fits("FP32", "\"one\""));
    CHECK_FALSE(fits("FP32", "null"));
    CHECK_FALSE(fits("FP32", "{}"));
}

TEST_CASE("complex elements are pairs of numbers")
{
    const std::string body = tensor("COMPLEX64", "[[1,2],[3,4]]", "[2]");
    const auto r = parsed(body);
    CHECK(elements<std::complex<float>>(r.inputs[0]) == std::vector<std::complex<float>>{{1, 2}, {3, 4}});
    refused_with(tensor("COMPLEX128", "[1,2,3]"), "inputs[0].data has 3 numbers");
}

TEST_CASE("binary elements are taken from the body without a copy")
{
    const std::string json =
        R"({"inputs":[{"name":"a","shape":[2],"datatype":"UINT16","parameters":{"binary_data_size":4}},
        {"name":"j","shape":[1],"datatype":"UINT8","data":[5]},
        {"name":"b","shape":[3],"datatype":"UINT8","parameters":{"binary_data_size":3}}]})";
    const std::string body = json + "\x01\x02\x03\x04" + "xyz";
    const auto r = parsed(body, json.size());
    REQUIRE(r.inputs.size() == 3);
    CHECK(static_cast<const void*>(r.inputs[0].data.data()) == body.data() + json.size());
    CHECK(elements<std::uint16_t>(r.inputs[0]) == std::vector<std::uint16_t>{0x0201, 0x0403});
    CHECK(elements<std::uint8_t>(r.inputs[1]) == std::vector<std::uint8_t>{5});
    CHECK(elements<char>(r.inputs[2]) == std::vector<char>{'x', 'y', 'z'});

    refused_with(json + "\x01\x02\x03\x04xy", "inputs[2].parameters.binary_data_size is 3, and only 2 bytes",
                 json.size());
    refused_with(body + "z", "1 bytes after the data of the last input", json.size());
    refused_with(body, "Inference-Header-Content-Length is 99999", 99999);
    refused_with(json, "inputs[0].parameters.binary_data_size is 4, and only 0 bytes");
}

TEST_CASE("a body without JSON is the data of one input")
{
    const auto r = parsed("abcd", 0);
    CHECK(r.raw);
    CHECK(r.binary_output);
    REQUIRE(r.inputs.size() == 1);
    CHECK(r.inputs[0].data.size() == 4);
}

TEST_CASE("what is not JSON, or not a request, is refused with the place")
{
    refused_with("", "the request is empty");
    refused_with("  \n", "the request is empty");
    refused_with("{", "not valid JSON");
    refused_with("{\"inputs\":[}", "at byte 11");
    refused_with(tensor("FP32", "[1]") + "x", "there is more after the object");
    refused_with("[]", "the request is an array, expected an object");
    refused_with("1", "the request is 1, expected an object");
    refused_with("null", "the request is null");
    refused_with("\"text\"", "the request is a string");
    refused_with("{}", "inputs is empty or missing");
    refused_with("{\"inputs\":[]}", "inputs is empty or missing");
    refused_with("{\"inputs\":{}}", "inputs is an object");
    refused_with("{\"inputs\":5}", "inputs is 5");
    refused_with("{\"inputs\":[5]}", "inputs[0] is 5, expected an object");
    refused_with("{\"inputs\":[[]]}", "inputs[0] is an array");
    refused_with("{\"inputs\":[\"a\"]}", "inputs[0] is a string");
    refused_with("{\"inputs\":[true]}", "inputs[0] is true");
    refused_with("{\"inputs\":[null]}", "inputs[0] is null");
    refused_with("{\"id\":{}}", "id is an object");
    refused_with("{\"id\":true}", "id is true");
    refused_with("{\"parameters\":[]}", "parameters is an array");
    refused_with("{\"parameters\":{\"timeout\":-1}}", "parameters.timeout is -1");
    refused_with("{\"parameters\":{\"timeout\":\"soon\"}}", "parameters.timeout is \"soon\"");
    refused_with("{\"parameters\":{\"priority\":1.5}}", "parameters.priority is 1.5");
    refused_with("{\"parameters\":{\"binary_data_output\":1}}", "parameters.binary_data_output is 1");
    refused_with("{\"outputs\":[{}]}", "outputs[0] has no name");
    refused_with("{\"outputs\":[{\"name\":\"\"}]}", "outputs[0].name is empty");
    refused_with("{\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":2}}]}",
                 "outputs[0].parameters.classification is 2");
    refused_with("{\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":1}}]}",
                 "outputs[0].parameters.binary_data is 1");
    refused_with("{\"inputs\":[],\"inputs\":[]}", "two fields inputs");
    refused_with("{\"outputs\":[],\"outputs\":[]}", "two fields outputs");
    refused_with(std::string(100, '[') + std::string(100, ']'), "expected an object");
    refused_with("{\"x\":" + std::string(100, '[') + std::string(100, ']') + "}", "not valid JSON: too deep");
    refused_with(tensor("FP32", std::string(100, '[') + std::string(100, ']')), "not valid JSON: too deep");
    refused_with("{\"inputs\":[{\"name\":\"\xff\"}]}", "not valid JSON");
}

TEST_CASE("an input without one of its fields, or with a wrong one, is refused")
{
    refused_with(one_input(""), "inputs[0] has no name");
    refused_with(one_input(R"("name":"x")"), "inputs[0] has no datatype");
    refused_with(one_input(R"("name":"x","datatype":"FP32")"), "inputs[0] has no shape");
    refused_with(one_input(R"("name":"x","datatype":"FP32","shape":[1])"), "neither data nor");
    refused_with(
        one_input(R"("name":"x","datatype":"FP32","shape":[1],"data":[1],"parameters":{"binary_data_size":4})"),
        "data and the parameter binary_data_size");
    refused_with(one_input(R"("name":"x","datatype":"BYTES")"), "inputs[0].datatype is \"BYTES\"");
    refused_with(one_input(R"("name":"x","datatype":"BOOL")"), "inputs[0].datatype is \"BOOL\"");
    refused_with(one_input(R"("name":"x","datatype":3)"), "inputs[0].datatype is 3");
    refused_with(one_input(R"("name":3)"), "inputs[0].name is 3");
    refused_with(one_input(R"("shape":[-1])"), "inputs[0].shape[0] is -1");
    refused_with(one_input(R"("shape":[1,2.5])"), "inputs[0].shape[1] is 2.5");
    refused_with(one_input(R"("shape":[1,"2"])"), "inputs[0].shape[1] is \"2\"");
    refused_with(one_input(R"("shape":[[1]])"), "inputs[0].shape[0] is an array");
    refused_with(one_input(R"("shape":7)"), "inputs[0].shape is 7");
    refused_with(one_input(R"("data":7)"), "inputs[0].data is 7");
    refused_with(one_input(R"("data":"text")"), "inputs[0].data is \"text\"");
    refused_with(one_input(R"("shape":[1],"shape":[1])"), "two fields shape");
    refused_with(one_input(R"("data":[1],"data":[1])"), "two fields data");
    refused_with(one_input(R"("datatype":"FP32","datatype":"FP32")"), "two fields datatype");
    refused_with(one_input(R"("parameters":{"binary_data_size":-4})"), "inputs[0].parameters.binary_data_size is -4");
    refused_with(one_input(R"("name":"x","data":[1,300],"datatype":"UINT8","shape":[2])"), "inputs[0].data[1] is 300");
    const auto text = refusal(one_input("\"datatype\":\"" + std::string(5000, 'a') + "\""));
    CHECK(text.size() < 400);
}

TEST_SUITE_END();
