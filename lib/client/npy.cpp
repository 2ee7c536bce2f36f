#include "client/npy.hpp"

#include "core/escape_text.hpp"
#include "core/unit_text.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>

namespace coaccel::client {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t most_npy_header_bytes = 65536;
constexpr std::size_t most_npy_dimensions = 32;

struct type_code {
    std::string_view code; ///< Without the byte order.
    std::string_view datatype;
    std::size_t part; ///< The bytes whose order is reversed: half a complex number.
};

constexpr type_code type_codes[] = {
    {"b1", "BOOL", 1}, {"u1", "UINT8", 1}, {"u2", "UINT16", 2},    {"u4", "UINT32", 4},      {"u8", "UINT64", 8},
    {"i1", "INT8", 1}, {"i2", "INT16", 2}, {"i4", "INT32", 4},     {"i8", "INT64", 8},       {"f2", "FP16", 2},
    {"f4", "FP32", 4}, {"f8", "FP64", 8},  {"c8", "COMPLEX64", 4}, {"c16", "COMPLEX128", 8},
};

error_code bad_npy(const std::string& why)
{
    return make_error_with_message(errc::file_invalid, why);
}

std::string shown(std::string_view text)
{
    const auto part = text.substr(0, 60);
    return "'" + detail::escape_text(part) + (part.size() < text.size() ? "…'" : "'");
}

/// What the header says: a dictionary as Python writes it.
struct npy_header {
    std::optional<std::string_view> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::uint64_t>> shape;
};

class header_parser {
public:
    explicit header_parser(std::string_view text) : rest_(text) {}

    /// False: it is no such dictionary.
    bool parse(npy_header& into)
    {
        if (!take('{'))
            return false;
        while (!take('}')) {
            std::string_view key;
            if (!quoted(key) || !take(':') || !value(key, into))
                return false;
            if (!take(',') && !next_is('}'))
                return false;
        }
        blank();
        return rest_.empty();
    }

private:
    void blank()
    {
        const auto n = std::min(rest_.find_first_not_of(" \t\n"), rest_.size());
        rest_.remove_prefix(n);
    }

    bool next_is(char c)
    {
        blank();
        return rest_.starts_with(c);
    }

    bool take(char c)
    {
        if (!next_is(c))
            return false;
        rest_.remove_prefix(1);
        return true;
    }

    bool word(std::string_view w)
    {
        blank();
        if (!rest_.starts_with(w))
            return false;
        rest_.remove_prefix(w.size());
        return true;
    }

    bool quoted(std::string_view& text)
    {
        blank();
        if (!rest_.starts_with('\'') && !rest_.starts_with('"'))
            return false;
        const auto end = rest_.find(rest_.front(), 1);
        if (end == std::string_view::npos)
            return false;
        text = rest_.substr(1, end - 1);
        rest_.remove_prefix(end + 1);
        return true;
    }

    bool value(std::string_view key, npy_header& into)
    {
        if (key == "descr" && !into.descr) {
            std::string_view text;
            // The type of a structure is a list.
            if (!quoted(text))
                return false;
            into.descr = text;
            return true;
        }
        if (key == "fortran_order" && !into.fortran_order) {
            into.fortran_order = word("True");
            return *into.fortran_order || word("False");
        }
        return key == "shape" && !into.shape && shape(into);
    }

    bool shape(npy_header& into)
    {
        if (!take('('))
            return false;
        std::vector<std::uint64_t> dims;
        while (!take(')')) {
            blank();
            const auto digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
            const auto n = detail::number<std::uint64_t>(rest_.substr(0, digits));
            if (!n || dims.size() == most_npy_dimensions)
                return false;
            dims.push_back(*n);
            rest_.remove_prefix(digits);
            if (!take(',') && !next_is(')'))
                return false;
        }
        into.shape = std::move(dims);
        return true;
    }

    std::string_view rest_;
};

std::uint64_t little_endian(std::string_view bytes)
{
    std::uint64_t n = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
        n = n << 8 | static_cast<unsigned char>(bytes[i]);
    return n;
}

} // namespace

result<tensor> parse_npy(std::string_view content)
{
    if (!content.starts_with(magic) || content.size() < 10)
        return bad_npy("it is no .npy file: it does not begin with \\x93NUMPY and a version");
    const int version = static_cast<unsigned char>(content[6]);
    if (version < 1 || version > 3)
        return bad_npy("version " + std::to_string(version) + " of the .npy format is unknown");
    const std::size_t length_bytes = version == 1 ? 2 : 4;
    if (content.size() < 8 + length_bytes)
        return bad_npy("the file ends before its header");
    const auto header_bytes = little_endian(content.substr(8, length_bytes));
    content.remove_prefix(8 + length_bytes);
    if (header_bytes > most_npy_header_bytes || header_bytes > content.size())
        return bad_npy("the header should have " + std::to_string(header_bytes) + " bytes; the file has " +
                       std::to_string(content.size()) + " after its length");
    const auto text = content.substr(0, header_bytes);
    content.remove_prefix(header_bytes);

    npy_header header;
    if (!header_parser(text).parse(header) || !header.descr || !header.fortran_order || !header.shape)
        return bad_npy("the header " + shown(text) + " has no type of numbers, order and shape");
    const auto order = header.descr->empty() ? '\0' : header.descr->front();
    const auto code = header.descr->substr(header.descr->empty() ? 0 : 1);
    const auto* type = std::ranges::find(type_codes, code, &type_code::code);
    if (type == std::end(type_codes) || std::string_view("<>|=").find(order) == std::string_view::npos)
        return bad_npy("the elements have the type " + shown(*header.descr) + "; it must be a number, such as '<f4'");
    if (*header.fortran_order && header.shape->size() > 1)
        return bad_npy("the array is in Fortran order; numpy.ascontiguousarray makes another one");
    tensor t{"", std::string(type->datatype), std::move(*header.shape), {}};
    const auto bytes = tensor_bytes(t.datatype, t.shape);
    if (!bytes || *bytes != content.size())
        return bad_npy("the shape " + shape_text(t.shape) + " of " + t.datatype + " needs " +
                       (bytes ? std::to_string(*bytes) : "too many") + " bytes; the file has " +
                       std::to_string(content.size()));
    t.data = content;
    if (order == '>')
        for (std::size_t at = 0; at < t.data.size(); at += type->part)
            std::reverse(t.data.begin() + static_cast<std::ptrdiff_t>(at),
                         t.data.begin() + static_cast<std::ptrdiff_t>(at + type->part));
    return t;
}

result<std::string> make_npy(const tensor& t)
{
    const auto* type = std::ranges::find(type_codes, t.datatype, &type_code::datatype);
    if (type == std::end(type_codes))
        return make_error_with_message(errc::invalid_argument, "a .npy file cannot have elements of the type " +
                                                                   detail::escape_text(t.datatype));
    std::string header = "{'descr': '" + std::string(element_bytes(t.datatype) == 1 ? "|" : "<") +
                         std::string(type->code) + "', 'fortran_order': False, 'shape': (";
    for (const auto d : t.shape)
        header += std::to_string(d) + (t.shape.size() == 1 || &d != &t.shape.back() ? ", " : "");
    header += "), }";
    // The elements begin at a multiple of 64.
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    std::string all(magic);
    all += '\x01';
    all += '\0';
    all += static_cast<char>(header.size() & 0xff);
    all += static_cast<char>(header.size() >> 8);
    return all + header + t.data;
}

} // namespace coaccel::client
