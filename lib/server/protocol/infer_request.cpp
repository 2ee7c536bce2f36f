#include "server/protocol/infer_request.hpp"

#include "server/protocol/infer_handler.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/json/basic_parser_impl.hpp>

#include <utility>

namespace coaccel::server {
namespace {

using detail::op_error;
using request_parser = boost::json::basic_parser<infer_handler>;

error_code not_json(std::string_view json, std::size_t at, const boost::system::error_code& why)
{
    if (json.find_first_not_of(" \t\r\n") == json.npos)
        return op_error(errc::invalid_argument, infer_subject, {"the request is empty, expected a JSON object"});
    return op_error(errc::invalid_argument, infer_subject,
                    {"the request is not valid JSON: ", why.message(), " at byte ", at, " of ", json.size()});
}

/// Parses the JSON part. The elements of inputs are attached afterwards, because their memory may move until the end.
error_code parse_json(std::string_view json, request_parser& parser)
{
    boost::system::error_code ec;
    const std::size_t read = parser.write_some(false, json.data(), json.size(), ec);
    if (!parser.handler().problem().empty())
        return op_error(errc::invalid_argument, infer_subject, {parser.handler().problem()});
    if (ec)
        return not_json(json, read, ec);
    if (json.find_first_not_of(" \t\r\n", read) != json.npos)
        return op_error(
            errc::invalid_argument, infer_subject,
            {"the request is not valid JSON: there is more after the object, at byte ", read, " of ", json.size()});
    return {};
}

void clear(infer_request& r) noexcept
{
    r.id.clear();
    r.timeout.reset();
    r.priority = 0;
    r.binary_output = false;
    r.raw = false;
    r.inputs.clear();
    r.outputs.clear();
    r.numbers.clear();
}

} // namespace

error_code parse_infer_request(std::string_view body, std::optional<std::uint64_t> json_bytes, infer_request& into)
{
    clear(into);
    if (json_bytes && *json_bytes > body.size())
        return op_error(errc::invalid_argument, infer_subject,
                        {"Inference-Header-Content-Length is ", *json_bytes, ", the body has ", body.size(), " bytes"});
    if (json_bytes && *json_bytes == 0) {
        into.raw = true;
        into.binary_output = true;
        into.inputs.emplace_back().data = std::as_bytes(std::span(body));
        return {};
    }
    const auto json = body.substr(0, json_bytes.value_or(body.size()));
    auto rest = std::as_bytes(std::span(body)).subspan(json.size());

    std::optional<request_parser> parser(std::in_place, boost::json::parse_options(), into);
    if (auto ec = parse_json(json, *parser))
        return ec;
    if (parser->handler().needs_types()) {
        std::vector<dtype> types;
        for (const request_input& in : into.inputs)
            types.push_back(in.type);
        clear(into);
        parser.emplace(boost::json::parse_options(), into, std::move(types));
        if (auto ec = parse_json(json, *parser))
            return ec;
    }
    infer_handler& handler = parser->handler();
    if (into.inputs.empty())
        return op_error(errc::invalid_argument, infer_subject, {"inputs is empty or missing"});
    for (std::size_t i = 0; i < into.inputs.size(); ++i) {
        request_input& in = into.inputs[i];
        const input_source& source = handler.sources()[i];
        if (source.binary_size) {
            if (*source.binary_size > rest.size())
                return op_error(errc::invalid_argument, infer_subject,
                                {"inputs[", i, "].parameters.binary_data_size is ", *source.binary_size, ", and only ",
                                 rest.size(), " bytes are left after the JSON"});
            in.data = rest.first(*source.binary_size);
            rest = rest.subspan(*source.binary_size);
            continue;
        }
        const std::size_t each = numbers_in(in.type);
        if (source.numbers % each != 0)
            return op_error(
                errc::invalid_argument, infer_subject,
                {"inputs[", i, "].data has ", source.numbers, " numbers, expected two for each complex element"});
        in.data =
            std::span<const std::byte>(into.numbers).subspan(source.offset, source.numbers / each * size_of(in.type));
    }
    if (!rest.empty())
        return op_error(errc::invalid_argument, infer_subject,
                        {"the body has ", rest.size(), " bytes after the data of the last input"});
    return {};
}

} // namespace coaccel::server
