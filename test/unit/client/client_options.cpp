#include "client/client_options.hpp"

#include "client/client_flags.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace {

namespace client = coaccel::client;
using client::client_verb;
using namespace std::chrono_literals;

template <class... Words>
coaccel::result<client::client_options> parsed(Words... words)
{
    const std::array<const char*, sizeof...(words)> all{words...};
    return client::parse_client_options(all, {});
}

template <class... Words>
std::string usage_error(Words... words)
{
    const auto got = parsed(words...);
    REQUIRE(!got);
    CHECK(got.error() == coaccel::errc::invalid_argument);
    return got.error().message();
}

} // namespace

TEST_SUITE_BEGIN("client options");

TEST_CASE("verbs")
{
    CHECK(parsed().value().verb == client_verb::help);
    CHECK(parsed("--help").value().verb == client_verb::help);
    CHECK(parsed("-h").value().verb == client_verb::help);
    CHECK(parsed("--version").value().verb == client_verb::version);
    CHECK(parsed("infer", "--help").value().verb == client_verb::help);
    CHECK(parsed("health").value().verb == client_verb::health);
    CHECK(parsed("health", "m").value().model == "m");
    CHECK(parsed("index").value().verb == client_verb::index);
    CHECK(parsed("stats", "m", "--version=3").value().model_version == "3");
    for (const auto& v : client::client_verbs())
        if (!v.needs_model)
            CHECK(parsed(std::string(v.name).c_str()).value().verb ==
                  static_cast<client_verb>(&v - client::client_verbs().data()));
}

TEST_CASE("flags of infer")
{
    const auto o = parsed("infer", "m", "--url", "gpu:81", "--key=k", "--timeout", "5s", "--input", "a=1.npy",
                          "--input", "b=x=y.npy", "--output", "o.npy", "--json", "--deadline", "20ms")
                       .value();
    CHECK(o.verb == client_verb::infer);
    CHECK(o.where == client::server_address{"gpu", "81", ""});
    CHECK(o.key == "k");
    CHECK(o.timeout == 5s);
    CHECK(o.inputs == std::vector<client::named_file>{{"a", "1.npy"}, {"b", "x=y.npy"}});
    CHECK(o.outputs == std::vector<client::named_file>{{"", "o.npy"}});
    CHECK(o.form == client::tensor_form::json);
    CHECK(o.deadline == 20ms);
    CHECK(parsed("infer", "m", "--request", "-").value().request_file == "-");
    CHECK(parsed("infer", "m", "--input", "f", "--deadline", "1ns").value().deadline == 1us);
}

TEST_CASE("flags of load")
{
    const auto o = parsed("load", "m", "--connections", "300", "--threads=2", "--count", "1000", "--rows", "8",
                          "--progress", "--report", "json")
                       .value();
    CHECK(o.connections == 300);
    CHECK(o.threads == 2);
    CHECK(o.count == 1000);
    CHECK(!o.duration);
    CHECK(o.rows == 8);
    CHECK(o.progress);
    CHECK(o.json_report);
    CHECK(parsed("load", "m").value().duration == 10s);
    CHECK(parsed("load", "m", "--duration", "1min").value().duration == 1min);
}

TEST_CASE("the environment has defaults")
{
    const std::array<const char*, 1> words{"health"};
    const auto o = client::parse_client_options(words, {"http://h:9", "secret"}).value();
    CHECK(o.where.port == "9");
    CHECK(o.key == "secret");
    const std::array<const char*, 5> more{"health", "--url", "i", "--key", "other"};
    CHECK(client::parse_client_options(more, {"http://h:9", "secret"}).value().where.host == "i");
    CHECK(client::parse_client_options(more, {"http://h:9", "secret"}).value().key == "other");
    CHECK(client::parse_client_options(words, {"https://h", ""}).error().message() ==
          "COACCEL_SERVER: the address 'https://h': only http is supported");
}

TEST_CASE("wrong words are named, with what is near")
{
    CHECK(usage_error("helth") == "unknown verb 'helth'; did you mean health?");
    CHECK(usage_error("x\n\x1b") == "unknown verb 'x\\x0a\\x1b'");
    CHECK(usage_error("load", "m", "--conections", "3") == "unknown flag '--conections'; did you mean connections?");
    CHECK(usage_error("health", "--count", "3") == "--count has no meaning for health");
    CHECK(usage_error("infer", "m", "--rows", "3") == "--rows has no meaning for infer");
    CHECK(usage_error("infer", "m", "--input") == "--input: the value is missing");
    CHECK(usage_error("load", "m", "--json=1") == "--json has no value");
    CHECK(usage_error("load", "m", "n") == "load: unexpected word 'n'");
    CHECK(usage_error("index", "n") == "index: unexpected word 'n'");
    CHECK(usage_error("load") == "load: the name of the model is missing");
    CHECK(usage_error("infer", "m") == "infer: an input is missing: --input FILE or --request FILE");
    CHECK(usage_error("infer", "m", "--input", "f", "--request", "g") ==
          "infer: --request and --input exclude each other");
    CHECK(usage_error("load", "m", "--request", "g", "--deadline", "1s") ==
          "load: --deadline has no meaning with --request, which has its own parameters");
    CHECK(usage_error("health", "--version", "2") == "health: --version needs a model");
}

TEST_CASE("wrong values are named, with what is right; keys are not shown")
{
    CHECK(usage_error("load", "m", "--connections", "0") == "--connections: '0' must be a number from 1 to 65536");
    CHECK(usage_error("load", "m", "--threads", "x") == "--threads: 'x' must be a number from 1 to 256");
    CHECK(usage_error("load", "m", "--count", "0") == "--count: '0' must be a number from 1");
    CHECK(usage_error("load", "m", "--rows", "-1") == "--rows: '-1' must be a number from 1 to 1000000");
    CHECK(usage_error("load", "m", "--report", "xml") == "--report: 'xml' must be text or json");
    for (const char* bad : {"0s", "5", "x", "-1s", "2000000min", ""})
        CHECK(usage_error("load", "m", "--duration", bad) ==
              "--duration: '" + std::string(bad) + "' must be a time above zero, such as 20us, 5ms, 30s or 2min");
    CHECK(usage_error("health", "--url", "ftp://x") == "--url: 'ftp://x' must be http://HOST:PORT");
    CHECK(usage_error("health", "--key", "a b") ==
          "--key: the value must be printable ASCII characters without spaces");
    CHECK(usage_error("health", "m", "--version", "v1") == "--version: 'v1' must be a number from 1");
    CHECK(usage_error("infer", "m", "--input", "a=") == "--input: 'a=' must be NAME=FILE or FILE");
    CHECK(usage_error("infer", "m", "--request", "") == "--request: '' must be a file or -");
}

TEST_CASE("the help text and the reference have every verb and flag")
{
    const auto help = client::client_help();
    const auto reference = client::client_reference();
    for (const auto& v : client::client_verbs()) {
        CHECK(help.find(v.help) != std::string::npos);
        CHECK(reference.find("| `" + std::string(v.name)) != std::string::npos);
    }
    for (const auto& f : client::client_flags()) {
        CHECK(help.find("--" + std::string(f.name)) != std::string::npos);
        CHECK(reference.find("| `--" + std::string(f.name)) != std::string::npos);
    }
}

TEST_SUITE_END();
