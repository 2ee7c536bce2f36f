#include "client/model_metadata.hpp"

#include "client/element_values.hpp"
#include "core/escape_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <cstring>
#include <random>
#include <type_traits>

namespace coaccel::client {
namespace {

error_code bad_metadata(const std::string& why)
{
    return make_error_with_message(errc::invalid_argument, "the metadata of the model: " + why);
}

} // namespace

result<std::vector<input_description>> parse_inputs(std::string_view document)
{
    error_code ec;
    const auto parsed = boost::json::parse(document, ec);
    if (ec)
        return bad_metadata("no JSON: " + ec.message());
    const auto* inputs = parsed.is_object() ? parsed.get_object().if_contains("inputs") : nullptr;
    if (!inputs || !inputs->is_array())
        return bad_metadata("there is no list of inputs");
    std::vector<input_description> all;
    for (const auto& v : inputs->get_array()) {
        const auto* o = v.if_object();
        const auto* name = o ? o->if_contains("name") : nullptr;
        const auto* datatype = o ? o->if_contains("datatype") : nullptr;
        const auto* shape = o ? o->if_contains("shape") : nullptr;
        if (!name || !name->is_string() || !datatype || !datatype->is_string() || !shape || !shape->is_array())
            return bad_metadata("input " + std::to_string(all.size()) + " has no name, datatype and shape");
        auto& made = all.emplace_back();
        made.name = name->get_string();
        made.datatype = datatype->get_string();
        for (const auto& d : shape->get_array()) {
            const auto n = d.to_number<std::int64_t>(ec);
            if (ec || n < -1)
                return bad_metadata("input " + detail::escape_text(made.name) + " has a shape that is none");
            made.shape.push_back(n);
        }
    }
    return all;
}

result<tensor> make_input(const input_description& input, std::uint64_t rows, std::uint64_t seed)
{
    tensor t{input.name, input.datatype, {}, {}};
    for (const auto d : input.shape)
        t.shape.push_back(d < 0 ? rows : static_cast<std::uint64_t>(d));
    const auto bytes = tensor_bytes(t.datatype, t.shape);
    if (!bytes || *bytes > std::uint64_t(1) << 30)
        return make_error_with_message(errc::invalid_argument, "input " + detail::escape_text(t.name) +
                                                                   ": elements for the shape " + shape_text(t.shape) +
                                                                   " of " + detail::escape_text(t.datatype) +
                                                                   " cannot be made up");
    std::mt19937_64 random(seed);
    const bool known = with_element_type(t.datatype, [&](auto zero) {
        using element = decltype(zero);
        for (std::uint64_t at = 0; at < *bytes; at += sizeof(element)) {
            element v{};
            // Not a distribution of the standard library: those differ between implementations.
            if constexpr (std::is_integral_v<element>)
                v = static_cast<element>(random() % (t.datatype == "BOOL" ? 2 : 10));
            else
                v = element(static_cast<float>(random() >> 40) / static_cast<float>(1 << 24));
            char raw[sizeof v];
            std::memcpy(raw, &v, sizeof v);
            t.data.append(raw, sizeof raw);
        }
    });
    // For types without numbers of C++, zeros.
    if (!known)
        t.data.assign(*bytes, '\0');
    return t;
}

} // namespace coaccel::client
