#include "client/client_flags.hpp"

#include "core/unit_text.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace coaccel::client {
namespace {

constexpr verb_entry verbs[] = {
    {"help", "", "print this text", false, false},
    {"version", "", "print the version", false, false},
    {"health", "[MODEL]", "whether the server, or the model, is ready; exits with 1 if not", true, false},
    {"metadata", "[MODEL]", "name, version and extensions of the server; inputs and outputs of the model", true, false},
    {"stats", "[MODEL]", "the statistics of all models, or of one", true, false},
    {"index", "", "the models and versions in the folder of the server, and their states", false, false},
    {"infer", "MODEL", "run the model once and print its outputs, or write them to files", true, true},
    {"load", "MODEL", "run the model many times over several connections; exits with 1 if a request has failed", true,
     true},
};

std::optional<std::chrono::nanoseconds> parse_time(std::string_view text)
{
    const auto ns = detail::with_unit(text, detail::time_units);
    constexpr std::uint64_t day = 86'400'000'000'000;
    return ns && *ns > 0 && *ns <= day ? std::optional(std::chrono::nanoseconds(*ns)) : std::nullopt;
}

template <class T>
bool set_number(T& into, std::string_view text, T least, T most)
{
    const auto n = detail::number<T>(text);
    if (!n || *n < least || *n > most)
        return false;
    into = *n;
    return true;
}

/// "NAME=FILE", or "FILE" for the only input or output.
bool add_file(std::vector<named_file>& into, std::string_view text)
{
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
        into.push_back({"", std::string(text)});
    else
        into.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
    return !into.back().file.empty();
}

constexpr std::string_view a_time = "a time above zero, such as 20us, 5ms, 30s or 2min";

constexpr flag_entry flags[] = {
    {"url", for_all, "URL", "the server; default http://127.0.0.1:8000, or the environment variable COACCEL_SERVER",
     [](client_options& o, std::string_view v) -> std::string_view {
         const auto parsed = parse_address(v);
         if (parsed)
             o.where = parsed.value();
         return parsed ? "" : "http://HOST:PORT";
     }},
    {"key", for_all, "KEY",
     "the API key, or the token of the server for index, sent as Authorization: Bearer KEY; the environment variable "
     "COACCEL_API_KEY is not visible to other users",
     [](client_options& o, std::string_view v) -> std::string_view {
         o.key = v;
         return std::ranges::all_of(v, [](char c) { return c > ' ' && c <= '~'; }) && !v.empty()
                    ? ""
                    : "printable ASCII characters without spaces";
     }},
    {"timeout", for_all, "TIME", "the longest wait for a reply; default 30s",
     [](client_options& o, std::string_view v) -> std::string_view {
         const auto time = parse_time(v);
         o.timeout = time.value_or(o.timeout);
         return time ? "" : a_time;
     }},
    {"version", for_all, "N", "the version of the model; default: the server chooses",
     [](client_options& o, std::string_view v) -> std::string_view {
         const auto n = detail::number<std::uint64_t>(v);
         o.model_version = v;
         return n && *n > 0 ? "" : "a number from 1";
     }},
    {"input", for_infer | for_load, "[NAME=]FILE", "an input from a .npy file; without a name for the only input",
     [](client_options& o, std::string_view v) -> std::string_view {
         return add_file(o.inputs, v) ? "" : "NAME=FILE or FILE";
     }},
    {"request", for_infer | for_load, "FILE", "the whole request, as JSON from a file; -: from the standard input",
     [](client_options& o, std::string_view v) -> std::string_view {
         o.request_file = v;
         return v.empty() ? "a file or -" : "";
     }},
    {"output", for_infer, "[NAME=]FILE", "write an output to a .npy file instead of printing it",
     [](client_options& o, std::string_view v) -> std::string_view {
         return add_file(o.outputs, v) ? "" : "NAME=FILE or FILE";
     }},
    {"json", for_infer | for_load, "", "send and receive tensors as JSON instead of binary data",
     [](client_options& o, std::string_view) -> std::string_view {
         o.form = tensor_form::json;
         return "";
     }},
    {"deadline", for_infer | for_load, "TIME", "let the server give up a request after this time",
     [](client_options& o, std::string_view v) -> std::string_view {
         const auto time = parse_time(v);
         if (time)
             o.deadline =
                 std::max(std::chrono::microseconds(1), std::chrono::duration_cast<std::chrono::microseconds>(*time));
         return time ? "" : a_time;
     }},
    {"connections", for_load, "N", "connections, each with one request at a time; default 8",
     [](client_options& o, std::string_view v) -> std::string_view {
         return set_number(o.connections, v, 1, 65536) ? "" : "a number from 1 to 65536";
     }},
    {"threads", for_load, "N", "threads that serve the connections; default 1",
     [](client_options& o, std::string_view v) -> std::string_view {
         return set_number(o.threads, v, 1, 256) ? "" : "a number from 1 to 256";
     }},
    {"duration", for_load, "TIME", "how long requests are started; default 10s without --count",
     [](client_options& o, std::string_view v) -> std::string_view {
         o.duration = parse_time(v);
         return o.duration ? "" : a_time;
     }},
    {"count", for_load, "N", "how many requests are started",
     [](client_options& o, std::string_view v) -> std::string_view {
         o.count = detail::number<std::uint64_t>(v);
         return o.count && *o.count > 0 ? "" : "a number from 1";
     }},
    {"rows", for_load, "N", "the rows of each request if no input is given; default 1",
     [](client_options& o, std::string_view v) -> std::string_view {
         return set_number<std::uint64_t>(o.rows, v, 1, 1'000'000) ? "" : "a number from 1 to 1000000";
     }},
    {"progress", for_load, "", "write a progress line each second also if the standard error is no terminal",
     [](client_options& o, std::string_view) -> std::string_view {
         o.progress = true;
         return "";
     }},
    {"report", for_load, "text|json", "the form of the report; default text",
     [](client_options& o, std::string_view v) -> std::string_view {
         o.json_report = v == "json";
         return v == "json" || v == "text" ? "" : "text or json";
     }},
};

} // namespace

std::span<const verb_entry> client_verbs() noexcept
{
    return verbs;
}

std::span<const flag_entry> client_flags() noexcept
{
    return flags;
}

std::string client_help()
{
    std::string all = "coaccel-client VERB [MODEL] [--FLAG VALUE]...\n"
                      "  Talks to an inference server with the Open Inference Protocol over HTTP.\n\n";
    const auto line = [&all](std::string left, std::string_view help) {
        left.resize(std::max<std::size_t>(left.size() + 1, 26), ' ');
        all += "  " + left + std::string(help) + "\n";
    };
    for (const auto& v : verbs)
        line(std::string(v.name) + (v.arguments.empty() ? "" : " ") + std::string(v.arguments), v.help);
    const std::pair<unsigned, const char*> groups[] = {
        {for_all, "\nFor all verbs:\n"}, {for_infer, "\nFor infer:\n"}, {for_load, "\nFor load:\n"}};
    for (const auto& [group, title] : groups) {
        all += title;
        for (const auto& f : flags)
            if ((f.verbs & group) != 0)
                line("--" + std::string(f.name) + (f.value.empty() ? "" : " ") + std::string(f.value), f.help);
    }
    return all +
           "\nExit status: 0 success; 1 the server has refused, is not ready or a request has failed; 2 wrong usage;\n"
           "3 no connection or no valid reply; 4 a file cannot be read or written.\n";
}

std::string client_reference()
{
    std::string all = "| verb | meaning |\n|---|---|\n";
    for (const auto& v : verbs)
        all += "| `" + std::string(v.name) + (v.arguments.empty() ? "" : " ") + std::string(v.arguments) + "` | " +
               std::string(v.help) + " |\n";
    all += "\n| flag | verbs | meaning |\n|---|---|---|\n";
    for (const auto& f : flags)
        all += "| `--" + std::string(f.name) + (f.value.empty() ? "" : " ") + std::string(f.value) + "` | " +
               (f.verbs == for_all     ? "all"
                : f.verbs == for_infer ? "infer"
                : f.verbs == for_load  ? "load"
                                       : "infer, load") +
               " | " + std::string(f.help) + " |\n";
    // A bar would end the cell.
    for (auto at = all.find("text|json"); at != std::string::npos; at = all.find("text|json", at + 1))
        all.replace(at, 9, "text\\|json");
    return all;
}

} // namespace coaccel::client
