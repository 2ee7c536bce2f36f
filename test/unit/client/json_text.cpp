#include "client/json_text.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_SUITE_BEGIN("client json text");

TEST_CASE("documents are indented")
{
    using coaccel::client::indented_json;
    CHECK(indented_json(R"({"a":1,"b":[1,"x"],"c":[],"d":{},"e":[{"f":null},[2]]})") == R"({
  "a": 1,
  "b": [1,"x"],
  "c": [],
  "d": {},
  "e": [
    {
      "f": null
    },
    [2]
  ]
})");
    CHECK(indented_json("not \x1b json") == "not \\x1b json");
}

TEST_CASE("messages of errors")
{
    using coaccel::client::error_message;
    CHECK(error_message(R"({"error":"no\nmodel"})") == "no\\x0amodel");
    CHECK(error_message(R"({"error":3})") == R"({"error":3})");
    CHECK(error_message("<html>") == "<html>");
    CHECK(error_message(std::string(1000, 'x')).size() == 300);
}

TEST_SUITE_END();
