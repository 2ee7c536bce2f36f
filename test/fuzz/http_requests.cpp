// What a client sends to the inference server: an HTTP request in pieces, its path, and the tensors in its body.
#include "core/escape_text.hpp"
#include "input.hpp"
#include "server/http/request_reader.hpp"
#include "server/protocol/infer_call.hpp"
#include "server/protocol/infer_response.hpp"
#include "server/protocol/route.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace {

using namespace coaccel;
using namespace coaccel::server;
using fuzz::require;

constexpr std::size_t max_header = 2048;
constexpr std::size_t max_body = 1 << 16;

model_signature signature(bool batched)
{
    model_signature m;
    m.model = "m";
    m.version = "1";
    m.batched = batched;
    m.max_rows = batched ? 8 : 1;
    m.inputs = {{"x", dtype::f32, {2, 2}, 4}, {"n", dtype::u8, {}, 1}};
    if (!batched)
        m.inputs.resize(1);
    for (int d = 1; d <= 16; ++d)
        m.outputs.push_back({"y" + std::to_string(d), static_cast<dtype>(d), {2}, 2});
    return m;
}

void check_refusal(const error_code& ec)
{
    require(ec == fault::caller, "a refusal is an error of the caller");
    require(ec.message().size() < 2000, "a message is not too long");
    require(detail::escape_text(ec.message()) == ec.message(), "a message has no control characters");
}

/// Decodes the body, fits it to a model, and encodes a reply that has the bytes of the body as its outputs.
void decode(std::string_view body, std::optional<std::uint64_t> json_bytes, bool batched)
{
    infer_request request;
    if (const auto ec = parse_infer_request(body, json_bytes, request))
        return check_refusal(ec);
    for (const auto& in : request.inputs)
        require(in.data.size() <= 8 * body.size() + 16, "elements come from the body");
    const auto model = signature(batched);
    infer_call call;
    if (const auto ec = match_request(request, model, call))
        return check_refusal(ec);
    require(call.rows >= 1 && call.rows <= model.max_rows, "rows are within the limit");
    for (std::size_t i = 0; i < call.memory.size(); ++i)
        call.memory[i] = static_cast<std::byte>(body[i % body.size()]);
    std::string reply;
    const auto parts = append_response(reply, request.id, model, call);
    std::string binary;
    append_binary(binary, model, call);
    require(binary.size() == parts.binary_bytes, "the reply says how long it is");
    if (parts.json_bytes)
        return;
    // The outputs of a reply have the form of the inputs of a request.
    const auto at = reply.find("\"outputs\":");
    require(at != reply.npos, "a reply has outputs");
    std::string again = "{\"inputs\":" + reply.substr(at + 10);
    infer_request echoed;
    const auto ec = parse_infer_request(again, std::nullopt, echoed);
    require(!ec, "a reply can be read");
    require(echoed.inputs.size() == call.answers.size(), "with all its outputs");
    for (std::size_t i = 0; i < echoed.inputs.size(); ++i)
        require(echoed.inputs[i].data.size() == call.output(call.answers[i].output, model).bytes(),
                "and all their elements");
}

void read(fuzz::input& in, bool batched)
{
    request_head head;
    std::string body;
    request_reader reader(head, body, max_header, max_body);
    const auto step = std::size_t(in.take<std::uint8_t>()) + 1;
    const auto rest = in.take_rest();
    const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
    // As a connection does it: what the parser does not use stays, and more is added.
    std::size_t from = 0;
    for (std::size_t to = 0; from <= text.size() && !reader.is_done();) {
        to = std::min(to + step, text.size());
        boost::system::error_code ec;
        from += reader.put(boost::asio::buffer(text.data() + from, to - from), ec);
        require(from <= to, "the parser uses what there is");
        if (ec && ec != boost::beast::http::error::need_more)
            return;
        if (to == text.size() && !reader.is_done())
            return;
    }
    require(body.size() <= max_body, "a body is within the limit");
    const auto where = choose_endpoint(head.method, head.target);
    require(where.model.size() + where.version.size() <= head.target.size(), "names come from the path");
    decode(body, head.json_bytes, batched);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    fuzz::input in(data, size);
    const auto flags = in.take<std::uint8_t>();
    if ((flags & 1) != 0) {
        read(in, (flags & 2) != 0);
        return 0;
    }
    const auto json = in.take<std::uint16_t>();
    const auto rest = in.take_rest();
    const std::string_view body(reinterpret_cast<const char*>(rest.data()), rest.size());
    decode(body, (flags & 4) != 0 ? std::optional<std::uint64_t>(json) : std::nullopt, (flags & 2) != 0);
    return 0;
}
