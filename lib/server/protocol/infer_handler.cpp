#include "server/protocol/infer_handler.hpp"

#include "server/protocol/datatype.hpp"
#include "server/protocol/in_quotes.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::server {
namespace {

// Elements may be read with instructions for aligned memory.
constexpr std::size_t tensor_alignment = 16;
// More than any model has.
constexpr std::size_t most_dims = 32;

std::string_view view(boost::json::string_view s) noexcept
{
    return {s.data(), s.size()};
}

std::string text_of(const json_number& n)
{
    return n.text.empty() ? std::to_string(n.d) : std::string(n.text.substr(0, 64));
}

} // namespace

std::string infer_handler::path() const
{
    const auto input = [this] { return "inputs[" + std::to_string(into_.inputs.size() - 1) + "]"; };
    const auto output = [this] { return "outputs[" + std::to_string(into_.outputs.size() - 1) + "]"; };
    switch (here()) {
    case place::parameters: return "parameters";
    case place::inputs: return "inputs";
    case place::input: return input();
    case place::input_parameters: return input() + ".parameters";
    case place::shape: return input() + ".shape";
    case place::data: return input() + ".data";
    case place::outputs: return "outputs";
    case place::output: return output();
    case place::output_parameters: return output() + ".parameters";
    default: return {};
    }
}

std::string infer_handler::path_of_field() const
{
    switch (here()) {
    case place::document: return "the request";
    case place::inputs: return "inputs[" + std::to_string(into_.inputs.size()) + "]";
    case place::outputs: return "outputs[" + std::to_string(into_.outputs.size()) + "]";
    case place::shape: return path() + "[" + std::to_string(into_.inputs.back().shape.size()) + "]";
    case place::data: return path() + "[" + std::to_string(sources_.back().numbers) + "]";
    default: break;
    }
    auto p = path();
    if (!p.empty())
        p += '.';
    return p + key_;
}

bool infer_handler::refuse(error_type& ec, std::string_view what)
{
    problem_ = what;
    ec = boost::json::error::exception;
    return false;
}

bool infer_handler::refuse_value(error_type& ec, std::string_view value, std::string_view expected)
{
    return refuse(ec, path_of_field() + " is " + std::string(value) + ", expected " + std::string(expected));
}

infer_handler::field infer_handler::field_of(std::string_view key) const noexcept
{
    switch (here()) {
    case place::request:
        if (key == "id")
            return field::id;
        if (key == "parameters")
            return field::parameters;
        if (key == "inputs")
            return field::inputs;
        return key == "outputs" ? field::outputs : field::other;
    case place::parameters:
        if (key == "timeout")
            return field::timeout;
        if (key == "priority")
            return field::priority;
        return key == "binary_data_output" ? field::binary_output : field::other;
    case place::input:
        if (key == "name")
            return field::name;
        if (key == "datatype")
            return field::datatype;
        if (key == "shape")
            return field::shape;
        if (key == "data")
            return field::data;
        return key == "parameters" ? field::parameters : field::other;
    case place::input_parameters: return key == "binary_data_size" ? field::binary_size : field::other;
    case place::output:
        if (key == "name")
            return field::name;
        return key == "parameters" ? field::parameters : field::other;
    case place::output_parameters:
        if (key == "binary_data")
            return field::binary;
        return key == "classification" ? field::classification : field::other;
    default: return field::other;
    }
}

bool infer_handler::on_key_part(text s, std::size_t, error_type&)
{
    partial_ += view(s);
    return true;
}

bool infer_handler::on_key(text s, std::size_t, error_type&)
{
    if (here() == place::ignored)
        return partial_.clear(), true;
    key_ = std::exchange(partial_, {});
    key_ += view(s);
    field_ = field_of(key_);
    if (field_ == field::other)
        key_ = key_.substr(0, 64);
    return true;
}

bool infer_handler::on_object_begin(error_type& ec)
{
    switch (here()) {
    case place::document: enter(place::request); return true;
    case place::request:
        if (field_ == field::parameters)
            return enter(place::parameters), true;
        break;
    case place::inputs:
        into_.inputs.emplace_back();
        sources_.emplace_back();
        // All inputs exist if their types are known.
        append_ = types_.empty() ? nullptr : appender_of(types_[into_.inputs.size() - 1]);
        if (append_)
            into_.inputs.back().type = types_[into_.inputs.size() - 1];
        enter(place::input);
        return true;
    case place::outputs:
        into_.outputs.emplace_back();
        enter(place::output);
        return true;
    case place::input:
        if (field_ == field::parameters)
            return enter(place::input_parameters), true;
        break;
    case place::output:
        if (field_ == field::parameters)
            return enter(place::output_parameters), true;
        break;
    case place::shape: return refuse_value(ec, "an object", "a size");
    case place::data: return refuse_value(ec, "an object", "a number");
    default: break;
    }
    if (field_ != field::other && here() != place::ignored)
        return refuse_value(ec, "an object", "another value");
    enter(place::ignored);
    return true;
}

bool infer_handler::on_object_end(std::size_t, error_type& ec)
{
    const place left = here();
    if (left == place::input && !finish_input(ec))
        return false;
    if (left == place::output && into_.outputs.back().name.empty())
        return refuse(ec, path() + " has no name");
    --depth_;
    return true;
}

bool infer_handler::on_array_begin(error_type& ec)
{
    switch (here()) {
    case place::document: return refuse_value(ec, "an array", "an object");
    case place::request:
        if (field_ == field::inputs) {
            if (std::exchange(has_inputs_, true))
                return refuse(ec, "there are two fields inputs");
            return enter(place::inputs), true;
        }
        if (field_ == field::outputs) {
            if (std::exchange(has_outputs_, true))
                return refuse(ec, "there are two fields outputs");
            return enter(place::outputs), true;
        }
        break;
    case place::inputs: return refuse_value(ec, "an array", "an object");
    case place::outputs: return refuse_value(ec, "an array", "an object");
    case place::input:
        if (field_ == field::shape) {
            if (std::exchange(sources_.back().has_shape, true))
                return refuse(ec, path() + " has two fields shape");
            return enter(place::shape), true;
        }
        if (field_ == field::data) {
            input_source& s = sources_.back();
            if (std::exchange(s.has_data, true))
                return refuse(ec, path() + " has two fields data");
            into_.numbers.resize((into_.numbers.size() + tensor_alignment - 1) / tensor_alignment * tensor_alignment);
            s.offset = into_.numbers.size();
            return enter(place::data), true;
        }
        break;
    case place::shape: return refuse_value(ec, "an array", "a size");
    // Tensors may be nested in arrays by their dimensions.
    case place::data: enter(place::data); return true;
    default: break;
    }
    if (field_ != field::other && here() != place::ignored)
        return refuse_value(ec, "an array", "another value");
    enter(place::ignored);
    return true;
}

bool infer_handler::on_array_end(std::size_t, error_type&)
{
    --depth_;
    return true;
}

bool infer_handler::on_string_part(text s, std::size_t, error_type&)
{
    partial_ += view(s);
    return true;
}

bool infer_handler::on_string(text s, std::size_t, error_type& ec)
{
    if (partial_.empty())
        return text_value(view(s), ec);
    std::string all = std::exchange(partial_, {});
    all += view(s);
    return text_value(all, ec);
}

bool infer_handler::text_value(std::string_view value, error_type& ec)
{
    switch (here()) {
    case place::document: return refuse_value(ec, "a string", "an object");
    case place::inputs:
    case place::outputs: return refuse_value(ec, "a string", "an object");
    case place::shape: return refuse_value(ec, in_quotes(value), "a size");
    case place::ignored: return true;
    case place::data: {
        json_number n;
        if (!special_number(value, n))
            return refuse_value(ec, in_quotes(value), "a number");
        return element(n, ec);
    }
    default: break;
    }
    switch (field_) {
    case field::other: return true;
    case field::id: into_.id = value; return true;
    case field::name:
        if (value.empty())
            return refuse_value(ec, "empty", "a name");
        if (here() == place::output) {
            into_.outputs.back().name = value;
        } else {
            into_.inputs.back().name = value;
            sources_.back().has_name = true;
        }
        return true;
    case field::datatype: {
        const auto type = datatype_of(value);
        if (!type)
            return refuse_value(ec, in_quotes(value), "a data type that models here have, such as \"FP32\"");
        if (std::exchange(sources_.back().has_type, true))
            return refuse(ec, path() + " has two fields datatype");
        into_.inputs.back().type = *type;
        append_ = appender_of(*type);
        return true;
    }
    default: return refuse_value(ec, in_quotes(value), "another value");
    }
}

bool infer_handler::on_int64(std::int64_t i, text s, error_type& ec)
{
    return number({.what = json_number::kind::signed_integer, .i = i, .d = static_cast<double>(i), .text = view(s)},
                  ec);
}

bool infer_handler::on_uint64(std::uint64_t u, text s, error_type& ec)
{
    return number({.what = json_number::kind::unsigned_integer, .u = u, .d = static_cast<double>(u), .text = view(s)},
                  ec);
}

bool infer_handler::on_double(double d, text s, error_type& ec)
{
    return number({.what = json_number::kind::real, .d = d, .text = view(s)}, ec);
}

bool infer_handler::number(const json_number& n, error_type& ec)
{
    if (here() == place::data)
        return element(n, ec);
    if (here() == place::ignored)
        return true;
    const bool is_count =
        n.what == json_number::kind::unsigned_integer || (n.what == json_number::kind::signed_integer && n.i >= 0);
    const std::uint64_t count =
        n.what == json_number::kind::unsigned_integer ? n.u : static_cast<std::uint64_t>(is_count ? n.i : 0);
    switch (here()) {
    case place::shape:
        if (!is_count)
            return refuse_value(ec, text_of(n), "a size");
        if (into_.inputs.back().shape.size() == most_dims)
            return refuse(ec, path() + " has more than " + std::to_string(most_dims) + " dimensions");
        into_.inputs.back().shape.push_back(count);
        return true;
    case place::document:
    case place::inputs:
    case place::outputs: return refuse_value(ec, text_of(n), "an object");
    default: break;
    }
    if (field_ == field::other)
        return true;
    // Clients that keep their identifiers as numbers are common.
    if (field_ == field::id)
        return into_.id = text_of(n), true;
    if (field_ != field::timeout && field_ != field::priority && field_ != field::binary_size &&
        field_ != field::classification)
        return refuse_value(ec, text_of(n), "another value");
    if (!is_count)
        return refuse_value(ec, text_of(n), "a whole number that is not negative");
    if (field_ == field::timeout && count > 0)
        into_.timeout = std::chrono::microseconds(std::min<std::uint64_t>(count, std::uint64_t(1) << 52));
    else if (field_ == field::priority)
        into_.priority = count;
    else if (field_ == field::binary_size)
        sources_.back().binary_size = count;
    else if (field_ == field::classification && count > 0)
        return refuse_value(ec, text_of(n), "0, because this server does not classify");
    return true;
}

bool infer_handler::element(const json_number& n, error_type& ec)
{
    if (!append_) {
        needs_types_ = true;
        ++sources_.back().numbers;
        return true;
    }
    if (n.text.empty() && n.what == json_number::kind::real && is_integral(into_.inputs.back().type))
        return refuse_value(ec, "not a number",
                            "a value of type " + std::string(datatype_name(into_.inputs.back().type)));
    if (!append_(into_.numbers, n))
        return refuse_value(ec, text_of(n), "a value of type " + std::string(datatype_name(into_.inputs.back().type)));
    ++sources_.back().numbers;
    return true;
}

bool infer_handler::finish_input(error_type& ec)
{
    const input_source& s = sources_.back();
    if (!s.has_name)
        return refuse(ec, path() + " has no name");
    if (!s.has_type)
        return refuse(ec, path() + " has no datatype");
    if (!s.has_shape)
        return refuse(ec, path() + " has no shape");
    if (s.has_data && s.binary_size)
        return refuse(ec, path() + " has data and the parameter binary_data_size");
    if (!s.has_data && !s.binary_size)
        return refuse(ec, path() + " has neither data nor the parameter binary_data_size");
    return true;
}

bool infer_handler::on_bool(bool b, error_type& ec)
{
    switch (here()) {
    case place::ignored: return true;
    case place::data:
        return element({.what = json_number::kind::signed_integer, .i = b, .d = b ? 1.0 : 0.0, .text = b ? "1" : "0"},
                       ec);
    case place::document:
    case place::inputs:
    case place::outputs:
    case place::shape: return refuse_value(ec, b ? "true" : "false", "another value");
    default: break;
    }
    if (field_ == field::binary_output)
        into_.binary_output = b;
    else if (field_ == field::binary)
        into_.outputs.back().binary = b;
    else if (field_ != field::other)
        return refuse_value(ec, b ? "true" : "false", "another value");
    return true;
}

bool infer_handler::on_null(error_type& ec)
{
    if (here() == place::ignored || (field_ == field::other && here() != place::data && here() != place::shape &&
                                     here() != place::document && here() != place::inputs && here() != place::outputs))
        return true;
    return refuse_value(ec, "null", "a value");
}

} // namespace coaccel::server
