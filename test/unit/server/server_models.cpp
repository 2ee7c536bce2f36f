#include "unit/server/poisonable_models.hpp"

#include <fstream>

using namespace coaccel;
using test::contains;

namespace {

std::string scaled(test::server_fixture& f, const std::string& path = "/v2/models/scale/infer")
{
    const auto a = f.ask(test::post(path, test::json_request("1,0,0,0")));
    const auto at = a.body.find("\"data\":[");
    return at == std::string::npos ? std::to_string(a.status) : a.body.substr(at + 8, a.body.find(',', at) - at - 8);
}

template <class Condition>
void wait_until(test::server_fixture& f, Condition condition)
{
    const auto end = std::chrono::steady_clock::now() + test::patience;
    while (!condition() && std::chrono::steady_clock::now() < end)
        f.io.run_one_for(std::chrono::milliseconds(1));
    CHECK(condition());
}

} // namespace

TEST_SUITE_BEGIN("server.models");

TEST_CASE_FIXTURE(test::server_fixture, "models are loaded and unloaded by request")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "")).status == 200);
    CHECK(ask(test::get("/v2/models/scale/ready")).status == 404);
    CHECK(scaled(*this) == "404");
    CHECK(contains(ask(test::post("/v2/repository/index", "")).body, "\"UNAVAILABLE\""));
    CHECK(ask(test::post("/v2/repository/models/scale/load", "")).status == 200);
    CHECK(scaled(*this) == "2");
    test::save_model(folder.path(), "other", 1, test::scale_set(5));
    CHECK(scaled(*this, "/v2/models/other/infer") == "404");
    CHECK(ask(test::post("/v2/repository/models/other/load", "")).status == 200);
    CHECK(scaled(*this, "/v2/models/other/infer") == "5");
}

TEST_CASE_FIXTURE(test::server_fixture, "a version that appears in the folder takes over without a lost request")
{
    options.poll_interval = std::chrono::milliseconds(10);
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    CHECK(scaled(*this) == "2");
    test::save_model(folder.path(), "scale", 2, test::scale_set(3));
    std::string last;
    wait_until(*this, [&] {
        last = scaled(*this);
        CHECK((last == "2" || last == "3"));
        return last == "3";
    });
    wait_until(*this, [&] { return scaled(*this, "/v2/models/scale/versions/1/infer") == "404"; });
    // The content of a file changes.
    test::save_model(folder.path(), "scale", 2, test::scale_set(4));
    wait_until(*this, [&] {
        last = scaled(*this);
        CHECK((last == "3" || last == "4"));
        return last == "4";
    });
    // The newest version disappears.
    std::filesystem::remove_all(std::filesystem::path(folder.path()) / "scale" / "2");
    wait_until(*this, [&] {
        last = scaled(*this);
        CHECK((last == "4" || last == "2"));
        return last == "2";
    });
    std::filesystem::remove_all(std::filesystem::path(folder.path()) / "scale");
    wait_until(*this, [&] { return scaled(*this) == "404"; });
}

TEST_CASE_FIXTURE(test::server_fixture, "several versions are served side by side")
{
    options.model_defaults.versions.how = coaccel::server::version_policy::rule::all;
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    test::save_model(folder.path(), "scale", 10, test::scale_set(3));
    start();
    CHECK(scaled(*this) == "3");
    CHECK(scaled(*this, "/v2/models/scale/versions/1/infer") == "2");
    CHECK(scaled(*this, "/v2/models/scale/versions/10/infer") == "3");
    CHECK(contains(ask(test::get("/v2/models/scale")).body, "\"versions\":[\"1\",\"10\"]"));
}

TEST_CASE_FIXTURE(test::server_fixture, "a damaged file is reported, and the version before it goes on")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    const auto where = std::filesystem::path(folder.path()) / "scale" / "2";
    std::filesystem::create_directories(where);
    std::ofstream(where / "model.plan") << "not a plan";
    const auto a = ask(test::post("/v2/repository/models/scale/load", ""));
    CHECK(a.status == 400);
    CHECK_MESSAGE(contains(a.body, "version 2"), a.body);
    CHECK(contains(ask(test::post("/v2/repository/index", "")).body, "\"version\":\"2\",\"state\":\"UNAVAILABLE\""));
    CHECK(scaled(*this) == "2");
    CHECK(ask(test::get("/v2/health/ready")).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "a folder that disappears changes nothing")
{
    options.poll_interval = std::chrono::milliseconds(10);
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    start();
    const auto away = folder.path() + "-away";
    std::filesystem::rename(folder.path(), away);
    for (int i = 0; i < 20; ++i)
        io.run_for(std::chrono::milliseconds(5));
    CHECK(scaled(*this) == "2");
    std::filesystem::rename(away, folder.path());
}

TEST_CASE_FIXTURE(test::server_fixture, "requests beyond the queue get 429, those beyond their deadline 504")
{
    test::add_poisonable(*this, {1});
    options.model_defaults.instances = 1;
    options.model_defaults.max_queued = 1;
    start();
    const std::string path = "/v2/models/slow/infer";
    auto running = test::connected(io, serving->port());
    asio::write(running, asio::buffer(test::post(path, test::slow_request(700))));
    const auto in_flight = [&] {
        return contains(ask(test::get("/metrics")).body, "coaccel_batcher_batches_in_flight{batcher=\"slow/1\"} 1");
    };
    wait_until(*this, in_flight);
    auto queued = test::connected(io, serving->port());
    asio::write(queued, asio::buffer(test::post(path, test::slow_request(0))));
    wait_until(*this, [&] {
        return contains(ask(test::get("/metrics")).body,
                        "coaccel_batcher_queue{batcher=\"slow/1\",level=\"normal\"} 1");
    });
    const auto full = ask(test::post(path, test::slow_request(0)));
    CHECK(full.status == 429);
    CHECK(contains(full.head, "Retry-After: "));
    // Another priority has a queue of its own.
    const auto late = ask(test::post(path, test::json_request("1,1,1,1", 1,
                                                              ",\"parameters\":{\"priority\":1,"
                                                              "\"timeout\":2000}")));
    CHECK(late.status == 504);
    const auto by_field = ask(test::post(path, test::json_request("1,1,1,1", 1, ",\"parameters\":{\"priority\":3}"),
                                         "X-Request-Timeout-Ms: 2\r\n"));
    CHECK(by_field.status == 504);
    std::string rest;
    CHECK(test::co_run(io, test::read_answer(running, rest)).status == 200);
    CHECK(test::co_run(io, test::read_answer(queued, rest)).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture,
                  "a request that ends its worker gets 500, the others of its batch their answers")
{
    test::add_poisonable(*this);
    options.devices[0].isolation = isolation::worker;
    options.devices[0].standby = 1;
    start();
    const std::string path = "/v2/models/slow/infer";
    std::vector<test::tcp::socket> clients;
    for (int i = 0; i < 7; ++i) {
        clients.push_back(test::connected(io, serving->port()));
        const std::string data = i == 3 ? "-1,1,1,1" : std::to_string(i + 1) + ",1,1,1";
        asio::write(clients.back(), asio::buffer(test::post(path, test::json_request(data))));
    }
    for (int i = 0; i < 7; ++i) {
        CAPTURE(i);
        std::string rest;
        const auto a = test::co_run(io, test::read_answer(clients[static_cast<std::size_t>(i)], rest));
        CHECK(a.status == (i == 3 ? 500 : 200));
        if (i != 3)
            CHECK_MESSAGE(contains(a.body, "\"data\":[" + std::to_string(2 * (i + 1)) + ","), a.body);
    }
}

TEST_CASE_FIXTURE(test::server_fixture, "a device that has failed for good gives 503, and the server is not ready")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    fault_injector faults;
    options.devices[0].host.injector = &faults;
    options.devices[0].restart.initial_backoff = std::chrono::milliseconds(1);
    options.devices[0].restart.max_backoff = std::chrono::milliseconds(1);
    start();
    CHECK(scaled(*this) == "2");
    faults.refuse_starts(1'000'000);
    faults.poison();
    wait_until(*this, [&] { return scaled(*this) == "503"; });
    const auto a = ask(test::post("/v2/models/scale/infer", test::json_request("1,0,0,0")));
    CHECK(contains(a.head, "Retry-After: "));
    CHECK(ask(test::get("/v2/health/ready")).status == 503);
    CHECK(ask(test::get("/v2/health/live")).status == 200);
    CHECK(ask(test::get("/v2/models/scale/ready")).status == 503);
    // Loading a model fails for the same reason.
    test::save_model(folder.path(), "other", 1, test::scale_set(3));
    const auto load = ask(test::post("/v2/repository/models/other/load", ""));
    CHECK_MESSAGE(load.status == 503, load.body);
    CHECK(contains(load.head, "Retry-After: "));
}

TEST_CASE_FIXTURE(test::server_fixture, "tenants are known by their keys, and have their rates")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    test::temporary_folder logs;
    options.access_log = logs / "access.log";
    options.anonymous = false;
    options.tenants["gold"].api_key = "golden";
    options.tenants["gold"].weight = 3;
    options.tenants["small"].api_key = "tiny";
    options.tenants["small"].rate = 1;
    start();
    const std::string path = "/v2/models/scale/infer";
    const auto body = test::json_request("1,0,0,0");
    CHECK(ask(test::post(path, body)).status == 401);
    CHECK(ask(test::post(path, body, "X-API-Key: wrong\r\n")).status == 401);
    CHECK(ask(test::get("/v2/models/scale")).status == 401);
    CHECK(ask(test::get("/v2/health/ready")).status == 200);
    CHECK(ask(test::post(path, body, "X-API-Key: golden\r\n")).status == 200);
    CHECK(ask(test::post(path, body, "Authorization: Bearer golden\r\n")).status == 200);
    // More at once than come back while they are answered, however slow the machine is.
    auto small = test::connected(io, serving->port());
    std::string many;
    for (int i = 0; i < 50; ++i)
        many += test::post(path, body, "X-API-Key: tiny\r\n");
    asio::write(small, asio::buffer(many));
    std::string rest;
    CHECK(test::co_run(io, test::read_answer(small, rest)).status == 200);
    test::http_answer too_many;
    for (int i = 1; i < 50 && too_many.status != 429; ++i)
        too_many = test::co_run(io, test::read_answer(small, rest));
    CHECK(too_many.status == 429);
    CHECK(contains(too_many.head, "Retry-After: 1"));
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "", "X-API-Key: golden\r\n")).status == 403);
    CHECK(contains(ask(test::get("/metrics")).body, "tenant=\"gold\""));
    stop();
    std::ifstream log(logs / "access.log");
    const std::string lines((std::istreambuf_iterator<char>(log)), {});
    CHECK_MESSAGE(contains(lines, " 127.0.0.1 gold \"POST /v2/models/scale/infer\" 200 "), lines);
    CHECK(contains(lines, " 127.0.0.1 small \"POST /v2/models/scale/infer\" 429 "));
    CHECK(contains(lines, " - \"POST /v2/models/scale/infer\" 401 "));
}

TEST_CASE_FIXTURE(test::server_fixture, "the token of the server protects metrics and the control of models")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    options.telemetry_token = "secret";
    start();
    CHECK(ask(test::get("/metrics")).status == 401);
    CHECK(ask(test::get("/metrics", "Authorization: Bearer secret\r\n")).status == 200);
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "")).status == 401);
    CHECK(scaled(*this) == "2");
    CHECK(ask(test::post("/v2/repository/models/scale/unload", "", "Authorization: Bearer secret\r\n")).status == 200);
    CHECK(scaled(*this) == "404");
}

TEST_SUITE_END();
