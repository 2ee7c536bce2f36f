#include "server/protocol/infer_call.hpp"

#include "server/protocol/datatype.hpp"
#include "server/protocol/in_quotes.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <span>
#include <string>

namespace coaccel::server {
namespace {

using detail::op_error;

// Elements may be read with instructions for aligned memory.
constexpr std::size_t output_alignment = 16;

// A client chooses the shape, and messages are kept.
constexpr std::size_t most_dims_in_text = 16;

std::string shape_text(std::span<const std::uint64_t> dims, bool batched = false)
{
    std::string text = "[";
    if (batched)
        text += "-1";
    for (const auto d : dims.first(std::min(dims.size(), most_dims_in_text)))
        text.append(text.size() > 1 ? "," : "").append(std::to_string(d));
    if (dims.size() > most_dims_in_text)
        text += ",...and " + std::to_string(dims.size() - most_dims_in_text) + " more";
    return text + "]";
}

std::string names_of(std::span<const signature_tensor> all)
{
    std::string text;
    for (const auto& t : all)
        text.append(text.empty() ? "" : ", ").append(in_quotes(t.name));
    return text;
}

const signature_tensor* find(std::span<const signature_tensor> all, std::string_view name) noexcept
{
    const auto found = std::ranges::find(all, name, &signature_tensor::name);
    return found == all.end() ? nullptr : &*found;
}

/// The number of rows that the shape tells, or an error.
error_code rows_of(const request_input& in, std::size_t index, const signature_tensor& expected,
                   const model_signature& model, std::uint64_t& rows)
{
    std::span<const std::uint64_t> dims = in.shape;
    const auto refuse = [&] {
        return op_error(errc::invalid_argument, infer_subject,
                        {"inputs[", index, "].shape is ", shape_text(in.shape), ", the input ", in_quotes(in.name),
                         " has ", shape_text(expected.dims, model.batched)});
    };
    rows = 1;
    if (model.batched) {
        if (dims.empty())
            return refuse();
        rows = dims.front();
        dims = dims.subspan(1);
    }
    if (!std::ranges::equal(dims, expected.dims))
        return refuse();
    if (rows == 0)
        return op_error(errc::invalid_argument, infer_subject,
                        {"inputs[", index, "].shape is ", shape_text(in.shape), ", which has no rows"});
    if (rows > model.max_rows)
        return op_error(
            errc::invalid_argument, infer_subject,
            {"inputs[", index, "].shape is ", shape_text(in.shape), ", which has more than ", model.max_rows, " rows"});
    return {};
}

error_code match_input(const request_input& in, std::size_t index, const model_signature& model, infer_call& into)
{
    const signature_tensor* expected = find(model.inputs, in.name);
    if (!expected)
        return op_error(
            errc::invalid_argument, infer_subject,
            {"inputs[", index, "].name is ", in_quotes(in.name), ", the model has ", names_of(model.inputs)});
    run_range& range = into.ranges[static_cast<std::size_t>(expected - model.inputs.data())];
    if (range.data)
        return op_error(errc::invalid_argument, infer_subject, {"there are two inputs ", in_quotes(in.name)});
    if (in.type != expected->type)
        return op_error(errc::wrong_dtype, infer_subject,
                        {"inputs[", index, "].datatype is \"", datatype_name(in.type), "\", the input ",
                         in_quotes(in.name), " has \"", datatype_name(expected->type), "\""});
    std::uint64_t rows = 0;
    if (auto ec = rows_of(in, index, *expected, model, rows))
        return ec;
    if (into.rows != 0 && rows != into.rows)
        return op_error(errc::invalid_argument, infer_subject,
                        {"inputs[", index, "].shape has ", rows, " rows, another input ", into.rows});
    into.rows = rows;
    const std::uint64_t bytes = rows * expected->count * size_of(in.type);
    if (in.data.size() != bytes)
        return op_error(
            errc::length_mismatch, infer_subject,
            {"inputs[", index, "] has ", in.data.size(), " bytes of data, its shape and datatype need ", bytes});
    range = {const_cast<std::byte*>(in.data.data()), rows * expected->count, in.type, slot_kind::input};
    return {};
}

/// A body without JSON: its size tells the number of rows.
error_code match_raw(const request_input& in, const model_signature& model, infer_call& into)
{
    if (model.inputs.size() != 1)
        return op_error(errc::invalid_argument, infer_subject,
                        {"Inference-Header-Content-Length is 0, which is for models with one input; this one has ",
                         model.inputs.size()});
    const signature_tensor& expected = model.inputs[0];
    const std::uint64_t row = expected.count * size_of(expected.type);
    const std::uint64_t rows = in.data.size() / row;
    if (in.data.empty() || in.data.size() % row != 0 || rows > model.max_rows)
        return op_error(errc::length_mismatch, infer_subject,
                        {"the body has ", in.data.size(), " bytes, the input ", in_quotes(expected.name),
                         " takes from 1 to ", model.max_rows, " rows of ", row, " bytes"});
    into.rows = rows;
    into.ranges[0] = {const_cast<std::byte*>(in.data.data()), rows * expected.count, expected.type, slot_kind::input};
    return {};
}

error_code choose_outputs(const infer_request& request, const model_signature& model, infer_call& into)
{
    into.answers.clear();
    if (request.outputs.empty()) {
        for (std::uint32_t i = 0; i < model.outputs.size(); ++i)
            into.answers.push_back({i, request.binary_output});
        return {};
    }
    for (std::size_t i = 0; i < request.outputs.size(); ++i) {
        const request_output& wanted = request.outputs[i];
        const signature_tensor* found = find(model.outputs, wanted.name);
        if (!found)
            return op_error(
                errc::invalid_argument, infer_subject,
                {"outputs[", i, "].name is ", in_quotes(wanted.name), ", the model has ", names_of(model.outputs)});
        const auto index = static_cast<std::uint32_t>(found - model.outputs.data());
        if (std::ranges::find(into.answers, index, &infer_call::answer::output) != into.answers.end())
            return op_error(errc::invalid_argument, infer_subject, {"there are two outputs ", in_quotes(wanted.name)});
        into.answers.push_back({index, wanted.binary.value_or(request.binary_output)});
    }
    return {};
}

void make_outputs(const model_signature& model, infer_call& into)
{
    const auto padded = [](std::size_t n) { return (n + output_alignment - 1) / output_alignment * output_alignment; };
    std::size_t bytes = 0;
    for (const auto& t : model.outputs)
        bytes += padded(into.rows * t.count * size_of(t.type));
    into.memory.resize(bytes);
    std::size_t at = 0;
    for (std::size_t i = 0; i < model.outputs.size(); ++i) {
        const signature_tensor& t = model.outputs[i];
        run_range& range = into.ranges[model.inputs.size() + i];
        range = {into.memory.data() + at, into.rows * t.count, t.type, slot_kind::output};
        at += padded(range.bytes());
    }
}

} // namespace

error_code match_request(const infer_request& request, const model_signature& model, infer_call& into)
{
    into.rows = 0;
    into.ranges.assign(model.inputs.size() + model.outputs.size(), run_range());
    if (request.raw) {
        if (auto ec = match_raw(request.inputs.front(), model, into))
            return ec;
    } else {
        for (std::size_t i = 0; i < request.inputs.size(); ++i)
            if (auto ec = match_input(request.inputs[i], i, model, into))
                return ec;
        for (std::size_t i = 0; i < model.inputs.size(); ++i)
            if (!into.ranges[i].data)
                return op_error(errc::invalid_argument, infer_subject,
                                {"the input ", in_quotes(model.inputs[i].name), " is missing"});
    }
    if (auto ec = choose_outputs(request, model, into))
        return ec;
    make_outputs(model, into);
    return {};
}

priority priority_of(std::uint64_t level) noexcept
{
    if (level == 1)
        return priority::high;
    return level > 2 ? priority::low : priority::normal;
}

} // namespace coaccel::server
