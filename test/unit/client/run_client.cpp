#include "client/run_client.hpp"

#include "client/npy.hpp"
#include "protocol_server.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace {

namespace client = coaccel::client;
using test::protocol_server;

struct client_outcome {
    int status = 0;
    std::string out;
    std::string err;
};

/// Runs the program with these words and the address of the server.
template <class... Words>
client_outcome run(const std::string& url, const std::string& input, const Words&... words)
{
    const std::array<std::string, sizeof...(words)> kept{std::string(words)...};
    std::vector<const char*> all;
    for (const auto& w : kept)
        all.push_back(w.c_str());
    all.insert(all.end(), {"--url", url.c_str()});
    const auto options = client::parse_client_options(all, {});
    REQUIRE_MESSAGE(options.has_value(), options.error().message());
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream err;
    const int status = client::run_client(options.value(), {in, out, err, false});
    return {status, out.str(), err.str()};
}

std::string file_text(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

client::tensor four_floats(std::array<float, 4> values)
{
    client::tensor t{"", "FP32", {1, 4}, std::string(16, '\0')};
    std::memcpy(t.data.data(), values.data(), 16);
    return t;
}

void write_text(const std::string& path, const std::string& content)
{
    std::ofstream(path, std::ios::binary) << content;
}

} // namespace

TEST_SUITE_BEGIN("client program");

TEST_CASE("health")
{
    const protocol_server server;
    const auto where = server.address().text();
    CHECK(run(server.url(), "", "health").out == where + ": live, ready\n");
    CHECK(run(server.url(), "", "health", "double").out == where + ": live, model double ready\n");
    const auto unknown = run(server.url(), "", "health", "none");
    CHECK(unknown.status == client::exit_refused);
    CHECK(unknown.out == where + ": live, model none not ready\nunknown: /v2/models/none/ready\n");
    CHECK(server.connections() == 3);
}

TEST_CASE("metadata, statistics and the index")
{
    const protocol_server server;
    CHECK(run(server.url(), "", "metadata").out.find("\"name\": \"test\"") != std::string::npos);
    CHECK(run(server.url(), "", "metadata", "double").out.find("\"shape\": [-1,4]") != std::string::npos);
    CHECK(run(server.url(), "", "stats").out.find("\"inference_count\": 3") != std::string::npos);
    CHECK(run(server.url(), "", "stats", "double").status == 0);
    CHECK(run(server.url(), "", "index").out.find("\"state\": \"READY\"") != std::string::npos);
    const auto bad = run(server.url(), "", "metadata", "a/b c");
    CHECK(bad.status == client::exit_refused);
    CHECK(bad.err == "coaccel-client: " + server.address().text() + ": status 404: unknown: /v2/models/a%2Fb%20c\n");
}

TEST_CASE("an inference from a file, to the standard output and to a file")
{
    const test::temporary_folder folder;
    const protocol_server server;
    write_text(folder / "x.npy", client::make_npy(four_floats({1, 2, 3, 0.5})).value());
    const auto binary = run(server.url(), "", "infer", "double", "--input", "x=" + (folder / "x.npy"));
    const auto json = run(server.url(), "", "infer", "double", "--input", "x=" + (folder / "x.npy"), "--json");
    for (const auto& got : {binary, json}) {
        CHECK(got.status == 0);
        CHECK(got.err.empty());
        CHECK(got.out == "y FP32 [1, 4]\n[2, 4, 6, 1]\n");
    }
    const auto named = run(server.url(), "", "infer", "double", "--version", "1", "--input", folder / "x.npy",
                           "--output", "y=" + (folder / "y.npy"));
    CHECK(named.status == 0);
    CHECK(named.out.empty());
    CHECK(client::parse_npy(file_text(folder / "y.npy")).value() == four_floats({2, 4, 6, 1}));
    CHECK(run(server.url(), "", "infer", "double", "--input", folder / "x.npy", "--output", folder / "z.npy").status ==
          0);
    CHECK(file_text(folder / "z.npy") == file_text(folder / "y.npy"));
}

TEST_CASE("a whole request as JSON")
{
    const test::temporary_folder folder;
    const protocol_server server;
    const std::string request = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}]})";
    CHECK(run(server.url(), request, "infer", "double", "--request", "-").out == "y FP32 [1, 4]\n[2, 4, 6, 8]\n");
    write_text(folder / "r.json", request);
    CHECK(run(server.url(), "", "infer", "double", "--request", folder / "r.json").status == 0);
    const auto bad = run(server.url(), "{", "infer", "double", "--request", "-");
    CHECK(bad.status == client::exit_refused);
    CHECK(bad.err == "coaccel-client: " + server.address().text() + ": status 400: no inputs\n");
}

TEST_CASE("errors of files name them")
{
    const test::temporary_folder folder;
    const protocol_server server;
    const auto none = run(server.url(), "", "infer", "double", "--input", "x=" + (folder / "none.npy"));
    CHECK(none.status == client::exit_file);
    CHECK(none.err ==
          "coaccel-client: " + (folder / "none.npy") + ": the file cannot be opened: No such file or directory\n");
    write_text(folder / "bad.npy", "hello");
    const auto bad = run(server.url(), "", "infer", "double", "--input", "x=" + (folder / "bad.npy"));
    CHECK(bad.status == client::exit_file);
    CHECK(bad.err == "coaccel-client: " + (folder / "bad.npy") +
                         ": it is no .npy file: it does not begin with \\x93NUMPY and a version\n");
    CHECK(run(server.url(), "", "infer", "double", "--input", "x=" + folder.path())
              .err.find("it is not a regular file") != std::string::npos);
    CHECK(run(server.url(), "", "infer", "double", "--request", folder / "none").status == client::exit_file);
    write_text(folder / "x.npy", client::make_npy(four_floats({})).value());
    const auto unwritten = run(server.url(), "", "infer", "double", "--input", "x=" + (folder / "x.npy"), "--output",
                               "y=" + (folder / "none/y.npy"));
    CHECK(unwritten.status == client::exit_file);
    const auto unknown = run(server.url(), "", "infer", "double", "--input", "x=" + (folder / "x.npy"), "--output",
                             "z=" + (folder / "z.npy"));
    CHECK(unknown.status == client::exit_usage);
    CHECK(unknown.err == "coaccel-client: the reply has no output z\n");
    CHECK(!std::filesystem::exists(folder / "z.npy"));
}

TEST_CASE("errors of the server name it, the status and its message")
{
    const test::temporary_folder folder;
    const protocol_server server;
    write_text(folder / "x.npy", client::make_npy({"", "INT8", {1}, "a"}).value());
    const auto refused = run(server.url(), "", "infer", "double", "--input", "x=" + (folder / "x.npy"));
    CHECK(refused.status == client::exit_refused);
    CHECK(refused.err ==
          "coaccel-client: " + server.address().text() + ": status 400: the input must be x, FP32, [-1, 4]\n");
}

TEST_CASE("servers that answer nonsense")
{
    const test::temporary_folder folder;
    write_text(folder / "x.npy", client::make_npy(four_floats({})).value());
    const auto infer = [&](const protocol_server& server) {
        return run(server.url(), "", "infer", "double", "--input", "x=" + (folder / "x.npy"));
    };
    const protocol_server garbage([](const auto&, auto&) { return protocol_server::action::garbage; });
    CHECK(infer(garbage).status == client::exit_connection);
    const protocol_server closing([](const auto&, auto&) { return protocol_server::action::close; });
    CHECK(infer(closing).status == client::exit_connection);
    CHECK(infer(closing).err == "coaccel-client: " + closing.address().text() + ": connection closed\n");
    const protocol_server no_json([](const auto&, auto& reply) {
        reply.body() = "hello";
        reply.erase("Inference-Header-Content-Length");
        return protocol_server::action::reply;
    });
    CHECK(infer(no_json).status == client::exit_connection);
    CHECK(infer(no_json).err.find("the reply is no JSON") != std::string::npos);
    const protocol_server bad_length([](const auto&, auto& reply) {
        reply.set("Inference-Header-Content-Length", "99999999999999999999999");
        return protocol_server::action::reply;
    });
    CHECK(infer(bad_length).err.find("Inference-Header-Content-Length that is no number") != std::string::npos);
}

TEST_CASE("a load test with made-up inputs")
{
    const protocol_server server;
    const auto text = run(server.url(), "", "load", "double", "--count", "100", "--connections", "3", "--rows", "2");
    CHECK_MESSAGE(text.status == 0, text.err);
    CHECK(text.out.find("answered  100 requests in ") == 0);
    CHECK(text.out.find("failed    0\n") != std::string::npos);
    CHECK(text.out.find("p99.9 ") != std::string::npos);
    CHECK(text.out.find("#") != std::string::npos);
    CHECK(text.err.empty());
    const auto json = run(server.url(), "", "load", "double", "--count", "10", "--json", "--report", "json");
    CHECK(json.status == 0);
    CHECK(boost::json::parse(json.out).as_object().at("answered").to_number<int>() == 10);
    const auto unknown = run(server.url(), "", "load", "none", "--count", "1");
    CHECK(unknown.status == client::exit_refused);
    CHECK(unknown.err == "coaccel-client: " + server.address().text() + ": status 404: unknown: /v2/models/none\n");
}

TEST_CASE("a load test with failures exits with their status")
{
    const protocol_server server([](const auto& request, auto& reply) {
        if (request.target().ends_with("/infer"))
            reply.result(429);
        return protocol_server::action::reply;
    });
    const auto got = run(server.url(), "", "load", "double", "--count", "5");
    CHECK(got.status == client::exit_refused);
    CHECK(got.out.find("5 x status 429") != std::string::npos);
}

TEST_CASE("the key of the client is sent")
{
    std::string seen;
    const protocol_server server([&seen](const auto& request, auto&) {
        seen = std::string(request["Authorization"]);
        return protocol_server::action::reply;
    });
    CHECK(run(server.url(), "", "health", "--key", "secret").status == 0);
    CHECK(seen == "Bearer secret");
}

TEST_SUITE_END();
