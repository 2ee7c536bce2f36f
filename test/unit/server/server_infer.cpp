#include "unit/server/server_fixture.hpp"

#include <cstring>

using namespace coaccel;
using test::contains;

namespace {

std::string bytes_of(const std::vector<float>& values)
{
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

} // namespace

TEST_SUITE_BEGIN("server");

TEST_CASE_FIXTURE(test::server_fixture, "a model of the folder answers requests in JSON")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    CHECK(serving->ready());
    const auto a = ask(test::post("/v2/models/scale/infer", test::json_request("1,2,3,4.5", 1, ",\"id\":\"7\"")));
    CHECK(a.status == 200);
    CHECK(a.body == "{\"model_name\":\"scale\",\"model_version\":\"1\",\"id\":\"7\",\"outputs\":[{\"name\":\"y\","
                    "\"datatype\":\"FP32\",\"shape\":[1,4],\"data\":[2,4,6,9]}]}");
    const auto three =
        ask(test::post("/v2/models/scale/versions/1/infer", test::json_request("1,2,3,4,5,6,7,8,9,10,11,12", 3)));
    CHECK(contains(three.body, "\"shape\":[3,4],\"data\":[2,4,6,8,10,12,14,16,18,20,22,24]"));
}

TEST_CASE_FIXTURE(test::server_fixture, "a model answers binary requests")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(3));
    start();
    const std::string json = R"({"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32",
        "parameters":{"binary_data_size":16}}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]})";
    const auto field = "Inference-Header-Content-Length: " + std::to_string(json.size()) + "\r\n";
    const auto a = ask(test::post("/v2/models/scale/infer", json + bytes_of({1, 2, 3, 4}), field));
    CHECK(a.status == 200);
    CHECK(contains(a.head, "Content-Type: application/octet-stream"));
    const auto at = a.head.find("Inference-Header-Content-Length: ");
    REQUIRE(at != std::string::npos);
    const auto length = std::stoul(a.head.substr(at + 33));
    CHECK(a.body.substr(length) == bytes_of({3, 6, 9, 12}));
    CHECK(contains(a.body.substr(0, length), "\"parameters\":{\"binary_data_size\":16}"));

    const auto raw = ask(test::post("/v2/models/scale/infer", bytes_of({1, 1, 1, 1, 2, 2, 2, 2}),
                                    "Inference-Header-Content-Length: 0\r\n"));
    CHECK(raw.status == 200);
    CHECK(raw.body.ends_with(bytes_of({3, 3, 3, 3, 6, 6, 6, 6})));
}

TEST_CASE_FIXTURE(test::server_fixture, "metadata, configuration, statistics and the index come from the plan files")
{
    test::save_model(folder.path(), "scale", 4, test::scale_set(2));
    start();
    CHECK(contains(ask(test::get("/v2")).body, "\"name\":\"coaccel\""));
    CHECK(ask(test::get("/v2/health/live")).status == 200);
    CHECK(ask(test::get("/v2/health/ready")).status == 200);
    CHECK(ask(test::get("/v2/models/scale/ready")).status == 200);
    const auto metadata = ask(test::get("/v2/models/scale"));
    CHECK(contains(metadata.body, "\"versions\":[\"4\"]"));
    CHECK(contains(metadata.body, "{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,4]}"));
    CHECK(contains(ask(test::get("/v2/models/scale/config")).body, "\"max_batch_size\":8"));
    ask(test::post("/v2/models/scale/infer", test::json_request("1,2,3,4")));
    const auto stats = ask(test::get("/v2/models/scale/stats"));
    CHECK_MESSAGE(contains(stats.body, "\"inference_count\":1"), stats.body);
    CHECK(contains(ask(test::get("/v2/models/stats")).body, "\"name\":\"scale\""));
    CHECK(ask(test::post("/v2/repository/index", "")).body ==
          "[{\"name\":\"scale\",\"version\":\"4\",\"state\":\"READY\",\"reason\":\"\"}]");
    const auto head =
        test::co_run(io, test::exchange(serving->port(), "HEAD /v2 HTTP/1.1\r\nConnection: close\r\n\r\n"));
    CHECK(test::status_of(head) == 200);
    CHECK(test::body_of(head).empty());
}

TEST_CASE_FIXTURE(test::server_fixture, "what is wrong with a request is in the reply")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    struct wrong {
        std::string request;
        int status;
        const char* message;
    };
    const std::string path = "/v2/models/scale/infer";
    for (const wrong& w : {
             wrong{test::post(path, "{"), 400, "not valid JSON"},
             wrong{test::post(path, test::json_request("1,2,3")), 400, "inputs[0] has 12 bytes of data"},
             wrong{test::post(path, test::json_request("1,2,3,4", 9)), 400, "more than 8 rows"},
             wrong{test::post("/v2/models/else/infer", "{}"), 404, "there is no model \\\"else\\\""},
             wrong{test::post("/v2/models/scale/versions/2/infer", "{}"), 404, "no version \\\"2\\\""},
             wrong{test::post("/v2/models/scale/versions/x/infer", "{}"), 404, "no version \\\"x\\\""},
             wrong{test::get("/v2/models/else"), 404, "there is no model \\\"else\\\""},
             wrong{test::get("/v2/nothing"), 404, "there is no path"},
             wrong{test::get(path), 405, "the method is \\\"GET\\\""},
             wrong{test::post(path, "{}", "Content-Encoding: gzip\r\n"), 415, "Content-Encoding"},
             wrong{test::post(path, "{}", "Inference-Header-Content-Length: x\r\n"), 400,
                   "Inference-Header-Content-Length is \\\"x\\\""},
             wrong{test::post(path, "{}", "X-Request-Timeout-Ms: soon\r\n"), 400, "X-Request-Timeout-Ms is"},
             wrong{test::post("/v2/repository/models/else/load", ""), 404, "no model \\\"else\\\""},
             wrong{test::post("/v2/repository/models/else/unload", ""), 404, "no model \\\"else\\\""},
             wrong{test::post("/v2/repository/models/scale/unload", "", "Origin: http://evil.example\r\n"), 403,
                   "Origin is"},
             wrong{test::get("/v2/models/%ff%zz"), 400, "the path is not valid"},
         }) {
        CAPTURE(w.request);
        const auto a = ask(w.request);
        CHECK(a.status == w.status);
        CHECK_MESSAGE(contains(a.body, w.message), a.body);
        CHECK(a.body.starts_with("{\"error\":"));
    }
}

TEST_CASE_FIXTURE(test::server_fixture, "the live page, the metrics and files of the page folder are on the same port")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    test::temporary_folder pages;
    std::FILE* f = std::fopen((pages / "index.html").c_str(), "w");
    REQUIRE(f);
    std::fputs("<p>hello", f);
    std::fclose(f);
    options.page_folder = pages.path();
    start();
    ask(test::post("/v2/models/scale/infer", test::json_request("1,2,3,4")));
    CHECK(contains(ask(test::get("/")).head, "text/html"));
    const auto metrics_text = ask(test::get("/metrics")).body;
    CHECK(contains(metrics_text, "coaccel_server_requests_total{status=\"200\"}"));
    CHECK(contains(metrics_text, "coaccel_batcher_batches_total{batcher=\"scale/1\"}"));
    CHECK(contains(metrics_text, "coaccel_device_state"));
    CHECK(ask(test::get("/healthz")).status == 200);
    CHECK(ask(test::get("/readyz")).status == 200);
    CHECK(contains(ask(test::get("/debug/state")).body, "\"cpu0\""));
    CHECK(ask(test::get("/page/")).body == "<p>hello");
    CHECK(ask(test::get("/page/index.html")).status == 200);
    for (const char* path : {"/page/../server", "/page/.hidden", "/page/%2e%2e/x", "/page/none", "/page//etc/passwd"})
        CHECK(ask(test::get(path)).status == 404);
    const auto elsewhere = ask("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    CHECK(elsewhere.status == 421);
}

TEST_CASE_FIXTURE(test::server_fixture, "a plan without rows is served one request at a time")
{
    plan_builder b("sum");
    const auto x = b.input<float>(plan_shape{{2, 2}}, "x");
    const auto y = b.output<float>(4, "y");
    b.add(memory::copy<float>{.src = x, .dst = y});
    const auto where = std::filesystem::path(folder.path()) / "plain" / "1";
    std::filesystem::create_directories(where);
    REQUIRE(b.finish().value().save((where / "model.plan").string()));
    start();
    CHECK(contains(ask(test::get("/v2/models/plain")).body, "\"shape\":[2,2]"));
    const auto a = ask(test::post("/v2/models/plain/infer", R"({"inputs":[{"name":"x","shape":[2,2],"datatype":"FP32",
        "data":[[1,2],[3,4]]}]})"));
    CHECK_MESSAGE(contains(a.body, "\"shape\":[4],\"data\":[1,2,3,4]"), a.body);
}

TEST_SUITE_END();
