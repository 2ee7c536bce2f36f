#include "seeds.hpp"

#include <string>

namespace fuzz {
namespace {

std::span<const std::byte> raw(const std::string& text)
{
    return std::as_bytes(std::span(text));
}

} // namespace

std::vector<script> http_seeds()
{
    const std::string json =
        R"({"id":"a","parameters":{"timeout":1000,"priority":1},"inputs":[{"name":"x","shape":[1,2,2],)"
        R"("datatype":"FP32","data":[[1,2.5],["NaN",-4e3]]},{"name":"n","shape":[1],"datatype":"UINT8","data":[7]}]})";
    const std::string plain = R"({"inputs":[{"data":[1,2,3,4],"name":"x","shape":[2,2],"datatype":"FP32"}]})";
    const std::string head =
        R"({"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","parameters":{"binary_data_size":16}},)"
        R"({"name":"n","shape":[1],"datatype":"UINT8","parameters":{"binary_data_size":1}}],)"
        R"("outputs":[{"name":"y3","parameters":{"binary_data":true}},{"name":"y8"}]})";
    const std::string binary = head + std::string(17, 'A');
    std::vector<script> seeds;
    seeds.emplace_back().put(std::uint8_t(2)).put(std::uint16_t(0)).put_rest(raw(json));
    seeds.emplace_back().put(std::uint8_t(0)).put(std::uint16_t(0)).put_rest(raw(plain));
    seeds.emplace_back().put(std::uint8_t(6)).put(static_cast<std::uint16_t>(head.size())).put_rest(raw(binary));
    seeds.emplace_back().put(std::uint8_t(4)).put(std::uint16_t(0)).put_rest(raw(std::string(16, 'z')));
    const std::string length = std::to_string(json.size());
    const std::string request = "POST /v2/models/m%20n/versions/1/infer?q HTTP/1.1\r\nHost: localhost\r\n"
                                "Content-Length: " +
                                length + "\r\nX-Request-Timeout-Ms: 5\r\nX-API-Key: k\r\n\r\n" + json;
    const std::string chunked = "POST /v2/models/m/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
                                "Inference-Header-Content-Length: 0\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
    const std::string get = "GET /v2/health/ready HTTP/1.0\r\nAccept: text/plain\r\nExpect: 100-continue\r\n\r\n";
    for (const auto* text : {&request, &chunked, &get})
        for (const std::uint8_t step : {0, 40, 255})
            seeds.emplace_back().put(std::uint8_t(3)).put(step).put_rest(raw(*text));
    return seeds;
}

} // namespace fuzz
