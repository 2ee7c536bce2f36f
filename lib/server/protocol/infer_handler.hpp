#ifndef COACCEL_SERVER_PROTOCOL_INFER_HANDLER_HPP
#define COACCEL_SERVER_PROTOCOL_INFER_HANDLER_HPP

#include "server/protocol/element_writer.hpp"
#include "server/protocol/infer_request.hpp"

#include <boost/json/error.hpp>
#include <boost/json/string_view.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coaccel::server {

/// What the JSON says about an input apart from what a request_input has.
struct input_source {
    std::size_t offset = 0;  ///< Of its elements in infer_request::numbers.
    std::size_t numbers = 0; ///< JSON numbers that were read.
    std::optional<std::uint64_t> binary_size;
    bool has_name = false;
    bool has_type = false;
    bool has_shape = false;
    bool has_data = false;
};

/// The handler of Boost.JSON's event parser for an inference request: there is no tree of values, and numbers of
/// tensors go directly to their place. Fields that it does not know are ignored, as the protocol demands.
class infer_handler {
public:
    static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();

    using error_type = boost::json::error_code;
    using text = boost::json::string_view;

    /// `types`: those of the inputs in their order, if the text was parsed before.
    explicit infer_handler(infer_request& into, std::vector<dtype> types = {}) : into_(into), types_(std::move(types))
    {}

    /// Why the handler has refused the text; empty if it has not.
    const std::string& problem() const noexcept { return problem_; }
    /// Whether the `data` of an input came before its `datatype`. Its numbers were skipped then, because keeping them
    /// would take many times the memory of the text: the text must be parsed again with the types.
    bool needs_types() const noexcept { return needs_types_; }
    /// For each input, in their order.
    std::vector<input_source>& sources() noexcept { return sources_; }

    // What the parser calls.
    bool on_document_begin(error_type&) { return true; }
    bool on_document_end(error_type&) { return true; }
    bool on_object_begin(error_type& ec);
    bool on_object_end(std::size_t, error_type& ec);
    bool on_array_begin(error_type& ec);
    bool on_array_end(std::size_t, error_type& ec);
    bool on_key_part(text s, std::size_t, error_type&);
    bool on_key(text s, std::size_t, error_type& ec);
    bool on_string_part(text s, std::size_t, error_type&);
    bool on_string(text s, std::size_t, error_type& ec);
    bool on_number_part(text, error_type&) { return true; }
    bool on_int64(std::int64_t i, text s, error_type& ec);
    bool on_uint64(std::uint64_t u, text s, error_type& ec);
    bool on_double(double d, text s, error_type& ec);
    bool on_bool(bool b, error_type& ec);
    bool on_null(error_type& ec);
    bool on_comment_part(text, error_type&) { return true; }
    bool on_comment(text, error_type&) { return true; }

private:
    /// Where in the document the parser is.
    enum class place : std::uint8_t {
        document,
        request,
        parameters,
        inputs,
        input,
        input_parameters,
        shape,
        data,
        outputs,
        output,
        output_parameters,
        ignored,
    };

    /// The field whose value comes next.
    enum class field : std::uint8_t {
        none,
        id,
        parameters,
        inputs,
        outputs,
        name,
        datatype,
        shape,
        data,
        timeout,
        priority,
        binary_output,
        binary_size,
        binary,
        classification,
        other,
    };

    // As deep as the parser goes, and the document.
    static constexpr std::size_t most_places = 34;

    place here() const noexcept { return places_[depth_]; }
    void enter(place p) noexcept { places_[++depth_] = p; }
    std::string path() const;
    std::string path_of_field() const;
    bool refuse(error_type& ec, std::string_view what);
    bool refuse_value(error_type& ec, std::string_view value, std::string_view expected);
    bool number(const json_number& n, error_type& ec);
    bool element(const json_number& n, error_type& ec);
    bool finish_input(error_type& ec);
    bool text_value(std::string_view value, error_type& ec);
    field field_of(std::string_view key) const noexcept;

    infer_request& into_;
    std::vector<input_source> sources_;
    const std::vector<dtype> types_;
    append_number_fn append_ = nullptr;
    std::array<place, most_places> places_{};
    std::size_t depth_ = 0;
    field field_ = field::none;
    std::string key_;
    std::string partial_;
    std::string problem_;
    bool needs_types_ = false;
    bool has_inputs_ = false;
    bool has_outputs_ = false;
};

} // namespace coaccel::server

#endif
