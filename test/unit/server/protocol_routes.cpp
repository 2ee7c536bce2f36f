#include "server/protocol/datatype.hpp"
#include "server/protocol/route.hpp"
#include "server/protocol/status.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace coaccel;
using namespace coaccel::server;

TEST_SUITE_BEGIN("server.route");

TEST_CASE("paths lead to their endpoints")
{
    struct expectation {
        const char* method;
        const char* target;
        endpoint where;
        const char* model = "";
        const char* version = "";
    };
    using enum endpoint;
    for (const expectation& e : {
             expectation{"GET", "/v2", server_metadata},
             expectation{"HEAD", "/v2/", server_metadata},
             expectation{"GET", "/v2/health/live", server_live},
             expectation{"GET", "/v2/health/ready", server_ready},
             expectation{"GET", "/v2/models/digits", model_metadata, "digits"},
             expectation{"GET", "/v2/models/digits/versions/12", model_metadata, "digits", "12"},
             expectation{"GET", "/v2/models/a%2Fb%20c/ready?x=1", model_ready, "a/b c"},
             expectation{"GET", "/v2/models/d/versions/1/ready", model_ready, "d", "1"},
             expectation{"GET", "/v2/models/d/stats", model_stats, "d"},
             expectation{"GET", "/v2/models/stats", model_stats},
             expectation{"POST", "/v2/models/stats", model_stats},
             expectation{"GET", "/v2/models/d/versions/1/stats", model_stats, "d", "1"},
             expectation{"GET", "/v2/models/d/config", model_config, "d"},
             expectation{"POST", "/v2/models/d/infer", infer, "d"},
             expectation{"POST", "/v2/models/d/versions/7/infer", infer, "d", "7"},
             expectation{"POST", "/v2/models/versions/infer", infer, "versions"},
             expectation{"POST", "/v2/repository/index", repository_index},
             expectation{"GET", "/v2/repository/index", repository_index},
             expectation{"POST", "/v2/repository/models/d/load", repository_load, "d"},
             expectation{"POST", "/v2/repository/models/d/unload", repository_unload, "d"},
             expectation{"GET", "/page/index.html", page_file, "index.html"},
             expectation{"GET", "/page/", page_file},
             expectation{"GET", "/", telemetry},
             expectation{"GET", "/metrics", telemetry},
             expectation{"GET", "/v2/models", telemetry},
             expectation{"GET", "/v2/models/", telemetry},
             expectation{"GET", "/v2/models/d/", telemetry},
             expectation{"GET", "/v2/models/d/else", telemetry},
             expectation{"GET", "/v2/models/d/versions", telemetry},
             expectation{"GET", "/v2/models/d/versions/", telemetry},
             expectation{"POST", "/v2/models/d/infer/more", telemetry},
             expectation{"POST", "/v2/models/d/versions/1/infer/a/b/c/d/e/f/g", telemetry},
             expectation{"GET", "/v2/health/else", telemetry},
             expectation{"POST", "/v2/repository/models//load", telemetry},
             expectation{"POST", "/v2/repository/models/d/else", telemetry},
             expectation{"GET", "/v20", telemetry},
             expectation{"GET", "/V2", telemetry},
             expectation{"GET", "", telemetry},
             expectation{"GET", "/v2/models/d/infer", wrong_method},
             expectation{"POST", "/v2/health/live", wrong_method},
             expectation{"DELETE", "/v2/models/d", wrong_method},
             expectation{"POST", "/page/x", wrong_method},
             expectation{"GET", "/v2/models/%zz", bad_path},
             expectation{"GET", "/v2/models/%4", bad_path},
             expectation{"GET", "/v2/models/%00", bad_path},
         }) {
        CAPTURE(e.target);
        CAPTURE(e.method);
        const route r = choose_endpoint(e.method, e.target);
        CHECK(r.where == e.where);
        if (e.where != bad_path) {
            CHECK(r.model == e.model);
            CHECK(r.version == e.version);
        }
        CHECK((r.where == wrong_method) == !r.allowed.empty());
    }
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("server.status");

TEST_CASE("each error has the status of whom is to blame")
{
    struct expectation {
        errc what;
        unsigned status;
    };
    for (const expectation& e : {
             expectation{errc::invalid_argument, 400},
             expectation{errc::wrong_dtype, 400},
             expectation{errc::length_mismatch, 400},
             expectation{errc::queue_full, 429},
             expectation{errc::deadline_exceeded, 504},
             expectation{errc::context_lost, 500},
             expectation{errc::device_failed, 503},
             expectation{errc::device_stopped, 503},
             expectation{errc::device_lost, 503},
             expectation{errc::actor_stopped, 503},
             expectation{errc::plan_quarantined, 503},
             expectation{errc::out_of_memory, 503},
             expectation{errc::backend_error, 500},
         }) {
        CAPTURE(static_cast<int>(e.what));
        const auto s = status_of(make_error_code(e.what));
        CHECK(s.status == e.status);
        CHECK((s.retry_after > 0) == (e.status == 429 || e.status == 503));
    }
    CHECK(reason_of(404) == "Not Found");
    CHECK(reason_of(429) == "Too Many Requests");
}

TEST_CASE("every element type has a name of its own")
{
    for (int d = 1; d <= 16; ++d) {
        const auto type = static_cast<dtype>(d);
        CHECK(datatype_of(datatype_name(type)) == type);
    }
    CHECK(datatype_name(dtype::f32) == "FP32");
    CHECK(datatype_name(dtype::u8) == "UINT8");
    CHECK_FALSE(datatype_of("BOOL").has_value());
    CHECK_FALSE(datatype_of("fp32").has_value());
}

TEST_SUITE_END();
