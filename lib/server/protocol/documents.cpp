#include "server/protocol/documents.hpp"

#include "server/protocol/datatype.hpp"
#include "telemetry/json_writer.hpp"

#include <coaccel/core/config.hpp>

namespace coaccel::server {
namespace {

using detail::json_writer;

constexpr const char* extensions[] = {
    "binary_tensor_data", "model_configuration", "model_repository", "parameters", "schedule_policy", "statistics",
};

void write_shape(json_writer& w, const signature_tensor& t, bool batched)
{
    w.begin_array();
    if (batched)
        w.number(-1);
    for (const auto d : t.dims)
        w.integer(d);
    w.end_array();
}

void write_tensors(json_writer& w, std::string_view key, std::span<const signature_tensor> all, bool batched)
{
    w.key(key);
    w.begin_array();
    for (const auto& t : all) {
        w.begin_object();
        w.member("name", t.name);
        w.member("datatype", datatype_name(t.type));
        w.key("shape");
        write_shape(w, t, batched);
        w.end_object();
    }
    w.end_array();
}

void write_config_tensors(json_writer& w, std::string_view key, std::span<const signature_tensor> all)
{
    w.key(key);
    w.begin_array();
    for (const auto& t : all) {
        w.begin_object();
        w.member("name", t.name);
        w.member("data_type", "TYPE_" + std::string(datatype_name(t.type)));
        w.key("dims");
        write_shape(w, t, false);
        w.end_object();
    }
    w.end_array();
}

void write_total(json_writer& w, std::string_view key, const duration_total& t)
{
    w.key(key);
    w.begin_object();
    w.key("count");
    w.integer(t.count);
    w.key("ns");
    w.integer(t.ns);
    w.end_object();
}

} // namespace

std::string error_document(std::string_view message)
{
    std::string out;
    json_writer w(out);
    w.begin_object();
    w.member("error", message);
    w.end_object();
    return out;
}

std::string server_document()
{
    std::string out;
    json_writer w(out);
    w.begin_object();
    w.member("name", "coaccel");
    w.member("version", COACCEL_VERSION_STRING);
    w.key("extensions");
    w.begin_array();
    for (const char* name : extensions)
        w.text(name);
    w.end_array();
    w.end_object();
    return out;
}

std::string model_document(const model_signature& model, std::span<const std::string> versions)
{
    std::string out;
    json_writer w(out);
    w.begin_object();
    w.member("name", model.model);
    w.key("versions");
    w.begin_array();
    for (const auto& v : versions)
        w.text(v);
    w.end_array();
    w.member("platform", "coaccel_plan");
    write_tensors(w, "inputs", model.inputs, model.batched);
    write_tensors(w, "outputs", model.outputs, model.batched);
    w.end_object();
    return out;
}

std::string config_document(const model_signature& model)
{
    std::string out;
    json_writer w(out);
    w.begin_object();
    w.member("name", model.model);
    w.member("platform", "coaccel_plan");
    w.member("backend", "coaccel");
    w.key("max_batch_size");
    w.integer(model.batched ? model.max_rows : 0);
    write_config_tensors(w, "input", model.inputs);
    write_config_tensors(w, "output", model.outputs);
    w.key("dynamic_batching");
    w.begin_object();
    w.end_object();
    w.end_object();
    return out;
}

std::string statistics_document(std::span<const model_statistics> all)
{
    std::string out;
    json_writer w(out);
    w.begin_object();
    w.key("model_stats");
    w.begin_array();
    for (const auto& s : all) {
        w.begin_object();
        w.member("name", s.model);
        w.member("version", s.version);
        w.key("last_inference");
        w.integer(s.last_inference_ms);
        w.key("inference_count");
        w.integer(s.inferences);
        w.key("execution_count");
        w.integer(s.executions);
        w.key("inference_stats");
        w.begin_object();
        write_total(w, "success", s.success);
        write_total(w, "fail", s.fail);
        write_total(w, "queue", s.queue);
        write_total(w, "compute_input", s.compute_input);
        write_total(w, "compute_infer", s.compute_infer);
        write_total(w, "compute_output", s.compute_output);
        w.end_object();
        w.key("batch_stats");
        w.begin_array();
        w.end_array();
        w.end_object();
    }
    w.end_array();
    w.end_object();
    return out;
}

std::string index_document(std::span<const index_entry> all)
{
    std::string out;
    json_writer w(out);
    w.begin_array();
    for (const auto& e : all) {
        w.begin_object();
        w.member("name", e.model);
        if (!e.version.empty())
            w.member("version", e.version);
        w.member("state", e.state);
        w.member("reason", e.reason);
        w.end_object();
    }
    w.end_array();
    return out;
}

} // namespace coaccel::server
