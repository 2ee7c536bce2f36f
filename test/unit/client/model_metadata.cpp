#include "client/model_metadata.hpp"

#include "client/infer_body.hpp"

#include <doctest/doctest.h>

#include <string>

namespace {

using coaccel::client::make_input;
using coaccel::client::parse_inputs;

} // namespace

TEST_SUITE_BEGIN("client model metadata");

TEST_CASE("the inputs of a model")
{
    const auto inputs = parse_inputs(R"({"name":"m","inputs":[{"name":"a","datatype":"FP32","shape":[-1,8,8]},)"
                                     R"({"name":"b","datatype":"INT64","shape":[]}]})")
                            .value();
    REQUIRE(inputs.size() == 2);
    CHECK(inputs[0].name == "a");
    CHECK(inputs[0].shape == std::vector<std::int64_t>{-1, 8, 8});
    CHECK(inputs[1].datatype == "INT64");
    for (const char* bad : {"", "[]", R"({"inputs":{}})", R"({"inputs":[1]})", R"({"inputs":[{"name":"a"}]})",
                            R"({"inputs":[{"name":"a","datatype":"FP32","shape":[-2]}]})",
                            R"({"inputs":[{"name":"a","datatype":"FP32","shape":["x"]}]})"})
        CHECK(parse_inputs(bad).error() == coaccel::errc::invalid_argument);
}

TEST_CASE("elements are made up in the same way each time")
{
    const auto a = make_input({"a", "FP32", {-1, 3}}, 2, 7).value();
    CHECK(a.shape == std::vector<std::uint64_t>{2, 3});
    CHECK(a.data.size() == 24);
    CHECK(a == make_input({"a", "FP32", {-1, 3}}, 2, 7).value());
    CHECK(a != make_input({"a", "FP32", {-1, 3}}, 2, 8).value());
    for (const char* type : {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16",
                             "BF16", "FP64", "COMPLEX64", "FP8_E4M3"})
        CHECK(make_input({"a", type, {5}}, 1, 0).value().data.size() == 5 * coaccel::client::element_bytes(type));
    const auto b = make_input({"b", "INT32", {100}}, 1, 0).value();
    CHECK(coaccel::client::elements_text(b).value().find_first_not_of("[]0123456789, ") == std::string::npos);
    CHECK(!make_input({"a", "BYTES", {1}}, 1, 0));
    CHECK(!make_input({"a", "FP32", {-1, -1, 1000}}, 1'000'000, 0));
}

TEST_SUITE_END();
