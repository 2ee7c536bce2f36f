#include "plan/file/tree.hpp"

#include "core/escape_text.hpp"

#include <bit>

namespace coaccel::detail {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are in memory");

// --- writing ------------------------------------------------------------------------------------------------------

void tree_writer::put(const void* data, std::size_t bytes)
{
    const auto* at = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), at, at + bytes);
}

void tree_writer::put_name(std::string_view name)
{
    put(static_cast<std::uint16_t>(name.size()));
    put(name.data(), name.size());
}

void tree_writer::begin(node_kind k)
{
    put(k);
    if (named_)
        put_name(name_);
    named_ = false;
}

void tree_writer::boolean(bool value)
{
    begin(node_kind::boolean);
    put(static_cast<std::uint8_t>(value));
}

void tree_writer::number(dtype type, const void* value)
{
    begin(node_kind::number);
    put(type);
    put(value, size_of(type));
}

void tree_writer::enumerator(dtype type, const void* value, std::string_view name)
{
    begin(node_kind::enumerator);
    put(type);
    put(value, size_of(type));
    put_name(name);
}

void tree_writer::text(std::string_view value)
{
    begin(node_kind::text);
    put(static_cast<std::uint64_t>(value.size()));
    put(value.data(), value.size());
}

void tree_writer::bytes(std::span<const std::byte> value)
{
    begin(node_kind::bytes);
    put(static_cast<std::uint64_t>(value.size()));
    put(value.data(), value.size());
}

void tree_writer::end()
{
    put(node_kind::end);
}

// --- reading ------------------------------------------------------------------------------------------------------

std::string describe(const node& n)
{
    switch (n.kind) {
    case node_kind::boolean: return "a bool";
    case node_kind::number: return "a number of type " + std::string(to_string(n.type));
    case node_kind::enumerator: return "the enumerator " + escape_text(n.enumerator.substr(0, 100));
    case node_kind::text: return "a text";
    case node_kind::bytes: return std::to_string(n.data.size()) + " bytes";
    case node_kind::list: return "a list";
    case node_kind::record: return "a record";
    case node_kind::end: break;
    }
    return "nothing";
}

bool tree_reader::fail(std::string what)
{
    if (problem_.empty())
        problem_ = std::move(what) + " at byte " + std::to_string(all_.size() - left_.size()) + " of the description";
    return false;
}

bool tree_reader::take(std::size_t count, std::span<const std::byte>& bytes)
{
    if (count > left_.size())
        return fail("it is cut off");
    bytes = left_.first(count);
    left_ = left_.subspan(count);
    return true;
}

bool tree_reader::get_kind(node_kind& k)
{
    std::uint8_t number = 0;
    if (!get(number))
        return false;
    k = static_cast<node_kind>(number);
    return k <= node_kind::record || k == node_kind::end || fail("there is a value of an unknown kind");
}

bool tree_reader::get_name(std::string_view& name)
{
    std::uint16_t length = 0;
    std::span<const std::byte> bytes;
    if (!get(length) || !take(length, bytes))
        return false;
    name = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
}

bool tree_reader::get_type(dtype& type)
{
    std::uint8_t number = 0;
    if (!get(number))
        return false;
    type = static_cast<dtype>(number);
    return size_of(type) != 0 || fail("there is a number of an unknown type");
}

bool tree_reader::get_head(std::string_view name, node_kind wanted)
{
    node_kind kind{};
    std::string_view found;
    if (!get_kind(kind))
        return false;
    if (kind == node_kind::end || !get_name(found) || found != name || kind != wanted)
        return fail("there is no " + std::string(name));
    return true;
}

bool tree_reader::has_next(std::string_view name) const
{
    tree_reader ahead(left_);
    node_kind kind{};
    std::string_view found;
    return ahead.get_kind(kind) && kind != node_kind::end && ahead.get_name(found) && found == name;
}

bool tree_reader::get_record(std::string_view name, node& n)
{
    n = {};
    nodes_ = 0;
    return get_head(name, node_kind::record) && get_content(n, 0);
}

bool tree_reader::open_list(std::string_view name)
{
    return get_head(name, node_kind::list);
}

bool tree_reader::get_item(node& n, bool& more)
{
    n = {};
    nodes_ = 0;
    if (!get_kind(n.kind))
        return false;
    more = n.kind != node_kind::end;
    if (!more)
        return true;
    return n.kind == node_kind::record ? get_content(n, 0) : fail("there is an item that is not a record");
}

bool tree_reader::get_content(node& n, std::size_t depth)
{
    std::uint64_t length = 0;
    switch (n.kind) {
    case node_kind::boolean:
        return take(1, n.data) && (n.data[0] <= std::byte(1) || fail("there is a bool that is neither 0 nor 1"));
    case node_kind::number: return get_type(n.type) && take(size_of(n.type), n.data);
    case node_kind::enumerator:
        return get_type(n.type) && (is_integral(n.type) || fail("there is an enumerator that is no integer")) &&
               take(size_of(n.type), n.data) && get_name(n.enumerator);
    case node_kind::text:
    case node_kind::bytes: return get(length) && take(length, n.data);
    case node_kind::list:
    case node_kind::record: return get_items(n, depth + 1);
    case node_kind::end: break;
    }
    return fail("there is a value of an unknown kind");
}

bool tree_reader::get_items(node& n, std::size_t depth)
{
    if (depth > deepest)
        return fail("values are nested too deeply");
    for (;;) {
        node item;
        if (!get_kind(item.kind))
            return false;
        if (item.kind == node_kind::end)
            return true;
        if (++nodes_ > most_nodes)
            return fail("an item has too many values");
        if ((n.kind == node_kind::record && !get_name(item.name)) || !get_content(item, depth))
            return false;
        n.items.push_back(std::move(item));
    }
}

} // namespace coaccel::detail
