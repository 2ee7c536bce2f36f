#include "server/model/quarantine.hpp"
#include "unit/server/poisonable_models.hpp"

#include <fstream>

using test::contains;

namespace {

struct poisonable_server : test::server_fixture {
    poisonable_server()
    {
        test::add_poisonable(*this, {1});
        options.devices[0].isolation = coaccel::isolation::worker;
        options.devices[0].standby = 1;
    }

    int status_of(const std::string& data)
    {
        return ask(test::post("/v2/models/slow/infer", test::json_request(data))).status;
    }

    template <class Condition>
    void run_until(Condition condition)
    {
        const auto end = std::chrono::steady_clock::now() + test::patience;
        while (!condition() && std::chrono::steady_clock::now() < end)
            io.run_one_for(std::chrono::milliseconds(1));
        CHECK(condition());
    }
};

} // namespace

TEST_SUITE_BEGIN("server.rollback");

TEST_CASE("a version in quarantine is revived once after each pause")
{
    using server_quarantine = coaccel::server::quarantine;
    using verdict = server_quarantine::verdict;
    const server_quarantine::time_point start{std::chrono::hours(5)};
    const auto tick = std::chrono::nanoseconds(1);
    server_quarantine q;
    CHECK_FALSE(q.active());
    CHECK(q.judge(start) == verdict::run);
    q.begin(start);
    // The first request counts.
    q.begin(start + std::chrono::seconds(30));
    CHECK(q.active());
    CHECK(q.judge(start) == verdict::refuse);
    CHECK(q.judge(start + server_quarantine::pause - tick) == verdict::refuse);
    CHECK(q.judge(start + server_quarantine::pause) == verdict::revive);
    CHECK_FALSE(q.active());
    CHECK(q.judge(start + server_quarantine::pause) == verdict::run);
    q.begin(start + 2 * server_quarantine::pause);
    CHECK(q.judge(start + 2 * server_quarantine::pause) == verdict::refuse);
}

TEST_CASE_FIXTURE(poisonable_server, "a model is not ready while its plan is quarantined")
{
    start();
    CHECK(ask(test::get("/v2/models/slow/ready")).status == 200);
    int status = 0;
    for (int i = 0; i < 30 && status != 503; ++i)
        status = status_of("-1,1,1,1");
    CHECK(status == 503);
    CHECK(ask(test::get("/v2/models/slow/ready")).status == 503);
    CHECK(ask(test::get("/v2/models/slow/versions/1/ready")).status == 503);
    CHECK(contains(ask(test::post("/v2/models/slow/infer", test::json_request("1,1,1,1"))).head, "Retry-After: "));
    CHECK(ask(test::get("/v2/health/ready")).status == 200);
}

TEST_CASE_FIXTURE(poisonable_server, "a version whose requests fail is rolled back, which the index and its path show")
{
    start();
    test::save_model(folder.path(), "slow", 2, test::poisonable_set({2}));
    CHECK(ask(test::post("/v2/repository/models/slow/load", "")).status == 200);
    CHECK(ask(test::get("/v2/models/slow/versions/2/ready")).status == 200);
    for (int i = 0; i < 20; ++i)
        CHECK(status_of("-1,1,1,1") >= 500);
    run_until([&] { return ask(test::get("/v2/models/slow/versions/2/ready")).status == 503; });
    run_until([&] {
        const auto index = ask(test::post("/v2/repository/index", "")).body;
        return contains(index, "\"version\":\"2\",\"state\":\"UNAVAILABLE\",\"reason\":\"rolled back: ") &&
               contains(index, "\"version\":\"1\",\"state\":\"READY\"");
    });
    const auto back = ask(test::get("/v2/models/slow/versions/2/ready"));
    CHECK(back.status == 503);
    CHECK_MESSAGE(contains(back.body, "rolled back"), back.body);
    CHECK(ask(test::get("/v2/models/slow/versions/1/ready")).status == 200);
    CHECK(contains(ask(test::get("/v2/models/slow/stats")).body, "\"version\":\"1\""));
    CHECK_FALSE(contains(ask(test::get("/v2/models/slow/stats")).body, "\"version\":\"2\""));
    CHECK(status_of("1,1,1,1") == 200);
    // By hand it is tried again.
    CHECK(ask(test::post("/v2/repository/models/slow/load", "")).status == 200);
    CHECK(ask(test::get("/v2/models/slow/versions/2/ready")).status == 200);
}

TEST_CASE_FIXTURE(test::server_fixture, "a load fails only because of the versions that the policy wants")
{
    test::save_model(folder.path(), "scale", 1, test::scale_set(2));
    test::save_model(folder.path(), "scale", 2, test::scale_set(3));
    start();
    // Version 1 is idle because of the policy.
    CHECK(ask(test::post("/v2/repository/models/scale/load", "")).status == 200);
    // The version that is loaded stays, but its file is wrong.
    std::ofstream(std::filesystem::path(folder.path()) / "scale" / "2" / "model.plan") << "not a plan";
    const auto a = ask(test::post("/v2/repository/models/scale/load", ""));
    CHECK(a.status == 400);
    CHECK_MESSAGE(contains(a.body, "version 2"), a.body);
    CHECK(contains(ask(test::post("/v2/models/scale/infer", test::json_request("1,0,0,0"))).body, "\"data\":[3,"));
}

TEST_CASE_FIXTURE(test::server_fixture, "a server that stops while it scans and loads leaves nothing behind")
{
    for (int i = 0; i < 10; ++i)
        test::save_model(folder.path(), "scale" + std::to_string(i), 1, test::scale_set(2));
    options.poll_interval = std::chrono::milliseconds(10);
    start();
    auto client = test::connected(io, serving->port());
    for (int i = 0; i < 10; ++i)
        test::save_model(folder.path(), "scale" + std::to_string(i), 2, test::scale_set(3));
    boost::asio::write(client, boost::asio::buffer(test::post("/v2/repository/models/scale3/load", "")));
    io.run_one();
    stop(coaccel::shutdown::abandon);
    client.close();
    // Nothing of the server is left that could run, or keep the executor.
    metrics = coaccel::telemetry::registry(io.get_executor());
    io.restart();
    const auto end = std::chrono::steady_clock::now() + test::patience;
    while (!io.stopped() && std::chrono::steady_clock::now() < end)
        io.run_one_for(std::chrono::milliseconds(10));
    CHECK(io.stopped());
}

TEST_SUITE_END();
