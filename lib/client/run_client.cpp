#include "client/run_client.hpp"

#include "client/files.hpp"
#include "client/json_text.hpp"
#include "client/load_test.hpp"
#include "client/model_metadata.hpp"
#include "client/npy.hpp"
#include "client/server_connection.hpp"
#include "core/escape_text.hpp"

#include <algorithm>
#include <cstdio>
#include <istream>
#include <iterator>
#include <ostream>
#include <utility>

namespace coaccel::client {
namespace {

/// One run of the program. The functions return an exit status.
class client_run {
public:
    client_run(const client_options& o, client_streams s) : o_(o), s_(s), server_(o.where, o.key, o.timeout) {}

    int run()
    {
        switch (o_.verb) {
        case client_verb::help: s_.out << client_help(); return exit_success;
        case client_verb::version: s_.out << "coaccel " COACCEL_VERSION_STRING "\n"; return exit_success;
        case client_verb::health: return health();
        case client_verb::metadata: return document({"GET", o_.model.empty() ? "/v2" : model_target("")});
        case client_verb::stats:
            return document({"GET", o_.model.empty() ? "/v2/models/stats" : model_target("/stats")});
        case client_verb::index: return document({"POST", "/v2/repository/index", "{}"});
        case client_verb::infer: return infer();
        case client_verb::load: return load();
        }
        return exit_usage;
    }

private:
    int fail(int status, const std::string& message)
    {
        s_.err << "coaccel-client: " << message << "\n";
        return status;
    }

    int no_reply(const error_code& ec) { return fail(exit_connection, o_.where.text() + ": " + failure_kind(ec)); }

    int refused(const http_reply& reply)
    {
        return fail(exit_refused,
                    o_.where.text() + ": status " + std::to_string(reply.status) + ": " + error_message(reply.body));
    }

    std::string model_target(std::string_view what) const
    {
        return "/v2/models/" + encoded_name(o_.model) +
               (o_.model_version.empty() ? "" : "/versions/" + o_.model_version) + std::string(what);
    }

    int health()
    {
        const auto live = server_.exchange({"GET", "/v2/health/live"});
        if (!live)
            return no_reply(live.error());
        const auto ready = server_.exchange({"GET", o_.model.empty() ? "/v2/health/ready" : model_target("/ready")});
        if (!ready)
            return no_reply(ready.error());
        const bool good = live.value().status == 200 && ready.value().status == 200;
        s_.out << o_.where.text() << ": " << (live.value().status == 200 ? "live" : "not live") << ", "
               << (o_.model.empty() ? "" : "model " + detail::escape_text(o_.model) + " ")
               << (ready.value().status == 200 ? "ready" : "not ready") << "\n";
        if (!good && !ready.value().body.empty())
            s_.out << error_message(ready.value().body) << "\n";
        return good ? exit_success : exit_refused;
    }

    int document(const http_request& request)
    {
        const auto reply = server_.exchange(request);
        if (!reply)
            return no_reply(reply.error());
        if (reply.value().status != 200)
            return refused(reply.value());
        s_.out << indented_json(reply.value().body) << "\n";
        return exit_success;
    }

    /// The inputs in the metadata of the model.
    int describe_inputs(std::vector<input_description>& into)
    {
        const auto reply = server_.exchange({"GET", model_target("")});
        if (!reply)
            return no_reply(reply.error());
        if (reply.value().status != 200)
            return refused(reply.value());
        auto parsed = parse_inputs(reply.value().body);
        if (!parsed)
            return fail(exit_connection, parsed.error().message());
        into = std::move(parsed.value());
        return exit_success;
    }

    /// The name of a tensor from a file without one: that of the only input.
    int name_input(tensor& t, const std::string& file)
    {
        std::vector<input_description> inputs;
        if (const int status = describe_inputs(inputs))
            return status;
        if (inputs.size() != 1)
            return fail(exit_usage, "the model has " + std::to_string(inputs.size()) +
                                        " inputs; name one: --input NAME=" + detail::escape_text(file));
        t.name = inputs.front().name;
        return exit_success;
    }

    int read_inputs(std::vector<tensor>& into)
    {
        for (const auto& [name, file] : o_.inputs) {
            const auto content = read_file(file);
            if (!content)
                return fail(exit_file, content.error().message());
            auto parsed = parse_npy(content.value());
            if (!parsed)
                return fail(exit_file, detail::escape_text(file) + ": " + parsed.error().message());
            parsed.value().name = name;
            if (name.empty())
                if (const int status = name_input(parsed.value(), file))
                    return status;
            into.push_back(std::move(parsed.value()));
        }
        return exit_success;
    }

    int make_up_inputs(std::vector<tensor>& into)
    {
        std::vector<input_description> inputs;
        if (const int status = describe_inputs(inputs))
            return status;
        for (const auto& i : inputs) {
            auto made = make_input(i, o_.rows, into.size());
            if (!made)
                return fail(exit_usage, made.error().message());
            into.push_back(std::move(made.value()));
        }
        return exit_success;
    }

    int read_request(std::string& into)
    {
        if (o_.request_file == "-") {
            into.assign(std::istreambuf_iterator<char>(s_.in), std::istreambuf_iterator<char>());
            return exit_success;
        }
        auto content = read_file(o_.request_file);
        if (!content)
            return fail(exit_file, content.error().message());
        into = std::move(content.value());
        return exit_success;
    }

    int make_request(http_request& into)
    {
        into.method = "POST";
        into.target = model_target("/infer");
        if (!o_.request_file.empty())
            return read_request(into.body);
        std::vector<tensor> inputs;
        if (const int status = o_.inputs.empty() ? make_up_inputs(inputs) : read_inputs(inputs))
            return status;
        auto body = make_infer_body(inputs, o_.form, o_.deadline);
        if (!body)
            return fail(exit_usage, body.error().message());
        into.body = std::move(body.value().body);
        into.json_bytes = body.value().json_bytes;
        return exit_success;
    }

    int infer()
    {
        http_request request;
        if (const int status = make_request(request))
            return status;
        const auto reply = server_.exchange(request);
        if (!reply)
            return no_reply(reply.error());
        if (reply.value().status != 200)
            return refused(reply.value());
        auto outputs = parse_infer_reply(reply.value().body, reply.value().json_bytes);
        if (!outputs)
            return fail(exit_connection, o_.where.text() + ": " + outputs.error().message());
        return write_outputs(outputs.value());
    }

    int write_outputs(const std::vector<tensor>& outputs)
    {
        if (o_.outputs.empty())
            for (const auto& t : outputs) {
                const auto text = elements_text(t);
                s_.out << detail::escape_text(t.name) << " " << t.datatype << " " << shape_text(t.shape) << "\n"
                       << (text ? text.value() : text.error().message()) << "\n";
            }
        for (const auto& [name, file] : o_.outputs) {
            const auto found = std::ranges::find(outputs, name, &tensor::name);
            if (name.empty() ? outputs.size() != 1 : found == outputs.end())
                return fail(exit_usage, name.empty()
                                            ? "the reply has " + std::to_string(outputs.size()) +
                                                  " outputs; name one: --output NAME=" + detail::escape_text(file)
                                            : "the reply has no output " + detail::escape_text(name));
            const auto content = make_npy(name.empty() ? outputs.front() : *found);
            if (!content)
                return fail(exit_file, detail::escape_text(file) + ": " + content.error().message());
            if (const auto written = write_file(file, content.value()); !written)
                return fail(exit_file, written.error().message());
        }
        return exit_success;
    }

    void show_progress(const load_progress& p)
    {
        const auto seconds = std::chrono::duration<double>(p.elapsed).count();
        char line[160];
        std::snprintf(line, sizeof line, "%6.0f s: %llu answered, %.0f per second, %llu failed", seconds,
                      static_cast<unsigned long long>(p.answered),
                      static_cast<double>(p.answered) / std::max(seconds, 1e-9),
                      static_cast<unsigned long long>(p.failed));
        // A terminal shows one line, which the next one overwrites.
        s_.err << (s_.terminal ? "\r" : "") << line << (s_.terminal ? "   " : "\n") << std::flush;
        progress_shown_ = true;
    }

    int load()
    {
        load_options l{.where = o_.where,
                       .key = o_.key,
                       .timeout = o_.timeout,
                       .connections = o_.connections,
                       .threads = o_.threads,
                       .count = o_.count,
                       .duration = o_.duration};
        if (const int status = make_request(l.request))
            return status;
        if (s_.terminal || o_.progress)
            l.on_progress = [this](const load_progress& p) { show_progress(p); };
        const auto report = run_load(l);
        if (progress_shown_ && s_.terminal)
            s_.err << "\n";
        s_.out << (o_.json_report ? report_json(report) + "\n" : report_text(report));
        return report.failed() == 0 && report.latencies.count() > 0 ? exit_success : exit_refused;
    }

    const client_options& o_;
    client_streams s_;
    server_connection server_;
    bool progress_shown_ = false;
};

} // namespace

int run_client(const client_options& options, client_streams streams)
{
    return client_run(options, streams).run();
}

} // namespace coaccel::client
