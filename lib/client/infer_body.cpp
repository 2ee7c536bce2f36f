#include "client/infer_body.hpp"

#include "client/element_values.hpp"
#include "core/escape_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace coaccel::client {
namespace {

namespace json = boost::json;

error_code bad_body(const std::string& why)
{
    return make_error_with_message(errc::invalid_argument, why);
}

template <class T>
void append_number(std::string& out, T value)
{
    std::array<char, 40> room{};
    if constexpr (std::is_integral_v<T>) {
        out.append(room.data(), std::to_chars(room.data(), room.data() + room.size(), +value).ptr);
    } else {
        // Narrow types are exact as float.
        const std::conditional_t<std::is_same_v<T, double>, double, float> v = value;
        if (std::isfinite(v))
            out.append(room.data(), std::to_chars(room.data(), room.data() + room.size(), v).ptr);
        else
            out += std::isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    }
}

template <class T>
bool append_element(std::string& data, const json::value& v)
{
    T made{};
    if constexpr (std::is_integral_v<T>) {
        error_code ec;
        if (v.is_bool())
            made = static_cast<T>(v.get_bool());
        else if (made = v.to_number<T>(ec); ec)
            return false;
    } else {
        double d = 0;
        if (v.is_string()) {
            const auto& text = v.get_string();
            constexpr auto infinity = std::numeric_limits<double>::infinity();
            if (text != "NaN" && text != "Infinity" && text != "-Infinity")
                return false;
            d = text == "NaN" ? std::nan("") : text == "Infinity" ? infinity : -infinity;
        } else {
            error_code ec;
            d = v.to_number<double>(ec);
            if (ec)
                return false;
        }
        made = T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(d));
    }
    char bytes[sizeof(T)];
    std::memcpy(bytes, &made, sizeof made);
    data.append(bytes, sizeof bytes);
    return true;
}

/// The numbers of a list, which may have lists in it.
template <class T>
bool append_elements(std::string& data, const json::value& v)
{
    if (!v.is_array())
        return append_element<T>(data, v);
    for (const auto& part : v.get_array())
        if (!append_elements<T>(data, part))
            return false;
    return true;
}

const json::value* member(const json::object& o, std::string_view name)
{
    return o.if_contains(name);
}

std::optional<std::uint64_t> natural(const json::value* v)
{
    if (!v)
        return std::nullopt;
    error_code ec;
    const auto n = v->to_number<std::uint64_t>(ec);
    return ec ? std::nullopt : std::optional(n);
}

std::optional<std::uint64_t> binary_bytes(const json::object& output)
{
    const auto* parameters = member(output, "parameters");
    if (!parameters || !parameters->is_object())
        return std::nullopt;
    return natural(member(parameters->get_object(), "binary_data_size"));
}

/// The output without its elements. Returns what is wrong; empty: nothing.
std::string read_head(const json::value& v, tensor& t)
{
    if (!v.is_object())
        return "it is no object";
    const auto& o = v.get_object();
    const auto* name = member(o, "name");
    const auto* datatype = member(o, "datatype");
    const auto* shape = member(o, "shape");
    if (!name || !name->is_string())
        return "it has no name";
    t.name = name->get_string();
    if (!datatype || !datatype->is_string() || element_bytes(std::string_view(datatype->get_string())) == 0)
        return "datatype is no type of numbers";
    t.datatype = datatype->get_string();
    if (!shape || !shape->is_array())
        return "shape is no list";
    for (const auto& d : shape->get_array()) {
        const auto n = natural(&d);
        if (!n)
            return "shape has something that is no size";
        t.shape.push_back(*n);
    }
    return {};
}

std::string read_output(const json::value& v, std::string_view& binary, tensor& t)
{
    if (auto problem = read_head(v, t); !problem.empty())
        return problem;
    const auto expected = tensor_bytes(t.datatype, t.shape);
    const std::string whole = "shape " + shape_text(t.shape) + " of " + t.datatype;
    if (!expected)
        return whole + " is too large";
    const auto& o = v.get_object();
    if (const auto bytes = binary_bytes(o)) {
        if (*bytes != *expected || *bytes > binary.size())
            return whole + " needs " + std::to_string(*expected) + " bytes; binary_data_size is " +
                   std::to_string(*bytes) + ", and the reply has " + std::to_string(binary.size()) + " more";
        t.data = binary.substr(0, *bytes);
        binary.remove_prefix(*bytes);
        return {};
    }
    const auto* data = member(o, "data");
    if (!data || !data->is_array())
        return "data is no list";
    bool good = true;
    if (!with_element_type(t.datatype, [&](auto zero) { good = append_elements<decltype(zero)>(t.data, *data); }))
        return t.datatype + " is supported only as binary data";
    if (!good)
        return "data has something that is no " + t.datatype;
    if (t.data.size() != *expected)
        return whole + " needs " + std::to_string(*expected) + " bytes; data has " + std::to_string(t.data.size());
    return {};
}

} // namespace

result<std::string> elements_text(const tensor& t)
{
    std::string all = "[";
    const bool known = with_element_type(t.datatype, [&](auto zero) {
        using element = decltype(zero);
        for (std::size_t at = 0; at + sizeof(element) <= t.data.size(); at += sizeof(element)) {
            std::memcpy(&zero, t.data.data() + at, sizeof zero);
            all += at == 0 ? "" : ", ";
            append_number(all, zero);
        }
    });
    if (!known)
        return bad_body("elements of the type " + detail::escape_text(t.datatype) + " cannot be written as JSON");
    return all + "]";
}

result<infer_body> make_infer_body(const std::vector<tensor>& inputs, tensor_form form,
                                   std::chrono::microseconds deadline)
{
    json::object parameters;
    if (form == tensor_form::binary)
        parameters["binary_data_output"] = true;
    if (deadline.count() > 0)
        parameters["timeout"] = deadline.count();
    std::string all = "{";
    if (!parameters.empty())
        all += "\"parameters\":" + json::serialize(parameters) + ",";
    all += "\"inputs\":[";
    std::string binary;
    for (const auto& t : inputs) {
        json::object o{{"name", t.name}, {"datatype", t.datatype}};
        o["shape"] = json::array(t.shape.begin(), t.shape.end());
        if (form == tensor_form::binary) {
            o["parameters"] = {{"binary_data_size", t.data.size()}};
            binary += t.data;
        }
        if (&t != &inputs.front())
            all += ',';
        all += json::serialize(o);
        if (form == tensor_form::json) {
            BOOST_OUTCOME_TRY(const auto elements, elements_text(t));
            all.back() = ',';
            all += "\"data\":" + elements + "}";
        }
    }
    all += "]}";
    infer_body made{std::move(all), std::nullopt};
    if (form == tensor_form::binary) {
        made.json_bytes = made.body.size();
        made.body += binary;
    }
    return made;
}

result<std::vector<tensor>> parse_infer_reply(std::string_view body, std::optional<std::uint64_t> json_bytes)
{
    if (json_bytes && *json_bytes > body.size())
        return bad_body("the reply has " + std::to_string(body.size()) + " bytes; its JSON should have " +
                        std::to_string(*json_bytes));
    auto binary = json_bytes ? body.substr(*json_bytes) : std::string_view();
    error_code ec;
    const auto document = json::parse(body.substr(0, json_bytes.value_or(body.size())), ec);
    if (ec)
        return bad_body("the reply is no JSON: " + ec.message());
    const auto* outputs = document.is_object() ? member(document.get_object(), "outputs") : nullptr;
    if (!outputs || !outputs->is_array())
        return bad_body("the reply has no list of outputs");
    std::vector<tensor> all;
    for (const auto& o : outputs->get_array()) {
        auto& t = all.emplace_back();
        if (const auto problem = read_output(o, binary, t); !problem.empty())
            return bad_body("output " + std::to_string(all.size() - 1) +
                            (t.name.empty() ? "" : " (" + detail::escape_text(t.name) + ")") +
                            " of the reply: " + problem);
    }
    if (!binary.empty())
        return bad_body("the reply has " + std::to_string(binary.size()) + " bytes after its last output");
    return all;
}

} // namespace coaccel::client
