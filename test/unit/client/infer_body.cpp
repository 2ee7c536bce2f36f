#include "client/infer_body.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace {

using coaccel::client::elements_text;
using coaccel::client::make_infer_body;
using coaccel::client::parse_infer_reply;
using coaccel::client::tensor;
using coaccel::client::tensor_form;

template <class T>
tensor tensor_of(const char* type, const std::vector<T>& values)
{
    tensor t{"x", type, {values.size()}, {}};
    for (const T v : values) {
        char raw[sizeof v];
        std::memcpy(raw, &v, sizeof v);
        t.data.append(raw, sizeof raw);
    }
    return t;
}

std::string reply_error(std::string_view body, std::optional<std::uint64_t> json_bytes = {})
{
    const auto parsed = parse_infer_reply(body, json_bytes);
    REQUIRE(!parsed);
    CHECK(parsed.error() == coaccel::errc::invalid_argument);
    return parsed.error().message();
}

std::string output(const std::string& members)
{
    return R"({"outputs":[{"name":"y",)" + members + "}]}";
}

} // namespace

TEST_SUITE_BEGIN("client infer body");

TEST_CASE("a request with binary tensors")
{
    const auto a = tensor_of<float>("FP32", {1, 2});
    auto b = tensor_of<std::int8_t>("INT8", {3});
    b.name = "\"b\n";
    const auto made = make_infer_body({a, b}, tensor_form::binary, std::chrono::milliseconds(5)).value();
    const std::string json =
        R"({"parameters":{"binary_data_output":true,"timeout":5000},"inputs":[{"name":"x","datatype":"FP32","shape":[2],)"
        R"("parameters":{"binary_data_size":8}},{"name":"\"b\n","datatype":"INT8","shape":[1],"parameters":{"binary_data_size":1}}]})";
    CHECK(made.body == json + a.data + b.data);
    CHECK(made.json_bytes == json.size());
}

TEST_CASE("a request with tensors as JSON")
{
    const auto made = make_infer_body({tensor_of<float>("FP32", {1, 0.1f, -2.5e-10f})}, tensor_form::json).value();
    CHECK(made.body == R"({"inputs":[{"name":"x","datatype":"FP32","shape":[3],"data":[1, 0.1, -2.5e-10]}]})");
    CHECK(!made.json_bytes);
    CHECK(make_infer_body({{"x", "COMPLEX64", {0}, {}}}, tensor_form::json).error() == coaccel::errc::invalid_argument);
}

TEST_CASE("elements of each type as text")
{
    CHECK(elements_text(tensor_of<std::uint8_t>("UINT8", {0, 255})).value() == "[0, 255]");
    CHECK(elements_text(tensor_of<std::int8_t>("INT8", {-128, 127})).value() == "[-128, 127]");
    CHECK(elements_text(tensor_of<std::uint16_t>("UINT16", {65535})).value() == "[65535]");
    CHECK(elements_text(tensor_of<std::int16_t>("INT16", {-3})).value() == "[-3]");
    CHECK(elements_text(tensor_of<std::uint32_t>("UINT32", {4294967295})).value() == "[4294967295]");
    CHECK(elements_text(tensor_of<std::int32_t>("INT32", {-7})).value() == "[-7]");
    CHECK(elements_text(tensor_of<std::uint64_t>("UINT64", {18446744073709551615u})).value() ==
          "[18446744073709551615]");
    CHECK(elements_text(tensor_of<std::int64_t>("INT64", {-9223372036854775807})).value() == "[-9223372036854775807]");
    CHECK(elements_text(tensor_of<std::uint16_t>("FP16", {0x3c00, 0xc000})).value() == "[1, -2]");
    CHECK(elements_text(tensor_of<std::uint16_t>("BF16", {0x3f80})).value() == "[1]");
    constexpr double infinity = std::numeric_limits<double>::infinity();
    CHECK(elements_text(tensor_of<double>("FP64", {0.1, std::nan(""), infinity, -infinity})).value() ==
          R"([0.1, "NaN", "Infinity", "-Infinity"])");
    CHECK(elements_text(tensor_of<double>("FP64", {})).value() == "[]");
    CHECK(!elements_text({"x", "BYTES", {}, {}}));
}

TEST_CASE("replies with numbers, also in lists of lists")
{
    const auto parsed =
        parse_infer_reply(
            R"({"model_name":"m","outputs":[{"name":"y","datatype":"FP32","shape":[2,2],"data":[[1,2.5],[-3,"NaN"]]},)"
            R"({"name":"n","datatype":"INT64","shape":[1],"data":[-9007199254740993]}]})",
            {})
            .value();
    REQUIRE(parsed.size() == 2);
    CHECK(parsed[0].shape == std::vector<std::uint64_t>{2, 2});
    CHECK(elements_text(parsed[0]).value() == R"([1, 2.5, -3, "NaN"])");
    CHECK(elements_text(parsed[1]).value() == "[-9007199254740993]");
}

TEST_CASE("replies with binary tensors")
{
    const std::string json =
        R"({"outputs":[{"name":"y","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}},)"
        R"({"name":"z","datatype":"UINT8","shape":[2],"data":[7,8]},)"
        R"({"name":"w","datatype":"UINT8","shape":[3],"parameters":{"binary_data_size":3}}]})";
    const auto parsed = parse_infer_reply(json + "abcdxyz", json.size()).value();
    REQUIRE(parsed.size() == 3);
    CHECK(parsed[0].data == "abcd");
    CHECK(parsed[1].data == "\x07\x08");
    CHECK(parsed[2].data == "xyz");
    CHECK(reply_error(json + "abcdxy", json.size())
              .find("needs 3 bytes; binary_data_size is 3, and the reply has 2 more") != std::string::npos);
    CHECK(reply_error(json + "abcdxyz!", json.size()) == "the reply has 1 bytes after its last output");
    CHECK(reply_error("{}", 3) == "the reply has 2 bytes; its JSON should have 3");
}

TEST_CASE("replies that are none are refused with the field")
{
    CHECK(reply_error("<html>").find("the reply is no JSON: ") == 0);
    CHECK(reply_error("[]") == "the reply has no list of outputs");
    CHECK(reply_error(R"({"outputs":3})") == "the reply has no list of outputs");
    CHECK(reply_error(R"({"outputs":[3]})") == "output 0 of the reply: it is no object");
    CHECK(reply_error(R"({"outputs":[{}]})") == "output 0 of the reply: it has no name");
    const std::string begin = "output 0 (y) of the reply: ";
    CHECK(reply_error(output(R"("datatype":"BYTES","shape":[1],"data":["a"])")) ==
          begin + "datatype is no type of numbers");
    CHECK(reply_error(output(R"("datatype":"FP32","shape":1)")) == begin + "shape is no list");
    CHECK(reply_error(output(R"("datatype":"FP32","shape":[-1])")) == begin + "shape has something that is no size");
    CHECK(reply_error(output(R"("datatype":"FP32","shape":[1.5])")) == begin + "shape has something that is no size");
    CHECK(reply_error(output(R"("datatype":"FP32","shape":[4611686018427387904,4])")) ==
          begin + "shape [4611686018427387904, 4] of FP32 is too large");
    CHECK(reply_error(output(R"("datatype":"FP32","shape":[1])")) == begin + "data is no list");
    CHECK(reply_error(output(R"("datatype":"FP32","shape":[1],"data":["x"])")) ==
          begin + "data has something that is no FP32");
    CHECK(reply_error(output(R"("datatype":"UINT8","shape":[1],"data":[256])")) ==
          begin + "data has something that is no UINT8");
    CHECK(reply_error(output(R"("datatype":"INT32","shape":[1],"data":[1.5])")) ==
          begin + "data has something that is no INT32");
    CHECK(reply_error(output(R"("datatype":"FP32","shape":[2],"data":[1])")) ==
          begin + "shape [2] of FP32 needs 8 bytes; data has 4");
    CHECK(reply_error(output(R"("datatype":"COMPLEX64","shape":[1],"data":[1, 2])")) ==
          begin + "COMPLEX64 is supported only as binary data");
}

TEST_CASE("random changes of a reply give outputs that fit, or an error")
{
    const std::string json =
        R"({"outputs":[{"name":"y","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}},{"name":"z","datatype":"INT8","shape":[2],"data":[1,2]}]})";
    std::mt19937 random(3);
    for (int round = 0; round < 30000; ++round) {
        auto body = json + "12345678";
        for (auto n = random() % 4; n > 0; --n)
            switch (const auto at = random() % body.size(); random() % 3) {
            case 0: body[at] = static_cast<char>(random()); break;
            case 1: body.insert(at, 1, "[]{}\",:0129-eE."[random() % 15]); break;
            default: body.erase(at, 1 + random() % 3);
            }
        const auto json_bytes =
            random() % 4 == 0 ? std::nullopt : std::optional<std::uint64_t>(json.size() - 4 + random() % 8);
        const auto parsed = parse_infer_reply(body, json_bytes);
        if (parsed)
            for (const auto& t : parsed.value())
                CHECK(t.data.size() == coaccel::client::tensor_bytes(t.datatype, t.shape));
    }
}

TEST_SUITE_END();
