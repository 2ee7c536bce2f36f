#include "server/protocol/infer_response.hpp"

#include "server/protocol/datatype.hpp"
#include "server/protocol/element_text.hpp"
#include "server/protocol/json_text.hpp"

#include <charconv>

namespace coaccel::server {
namespace {

void append_shape(std::string& out, const signature_tensor& t, const model_signature& model, std::uint64_t rows)
{
    out += '[';
    if (model.batched)
        append_integer_text(out, rows);
    for (std::size_t i = 0; i < t.dims.size(); ++i) {
        if (i > 0 || model.batched)
            out += ',';
        append_integer_text(out, t.dims[i]);
    }
    out += ']';
}

} // namespace

response_parts append_response(std::string& out, std::string_view id, const model_signature& model,
                               const infer_call& call)
{
    const std::size_t begin = out.size();
    out += "{\"model_name\":";
    append_json_text(out, model.model);
    out += ",\"model_version\":";
    append_json_text(out, model.version);
    if (!id.empty()) {
        out += ",\"id\":";
        append_json_text(out, id);
    }
    out += ",\"outputs\":[";
    response_parts parts;
    bool any_binary = false;
    for (std::size_t i = 0; i < call.answers.size(); ++i) {
        const auto& a = call.answers[i];
        const signature_tensor& t = model.outputs[a.output];
        const run_range& range = call.output(a.output, model);
        out += i > 0 ? ",{\"name\":" : "{\"name\":";
        append_json_text(out, t.name);
        out += ",\"datatype\":\"";
        out += datatype_name(t.type);
        out += "\",\"shape\":";
        append_shape(out, t, model, call.rows);
        if (a.binary) {
            any_binary = true;
            out += ",\"parameters\":{\"binary_data_size\":";
            append_integer_text(out, range.bytes());
            out += "}}";
            parts.binary_bytes += range.bytes();
        } else {
            out += ",\"data\":[";
            append_elements(out, t.type, {range.data, range.bytes()});
            out += "]}";
        }
    }
    out += "]}";
    if (any_binary)
        parts.json_bytes = out.size() - begin;
    return parts;
}

void append_binary(std::string& out, const model_signature& model, const infer_call& call)
{
    for (const auto& a : call.answers) {
        if (!a.binary)
            continue;
        const run_range& range = call.output(a.output, model);
        out.append(reinterpret_cast<const char*>(range.data), range.bytes());
    }
}

} // namespace coaccel::server
