#include "plan/file/record_fields.hpp"

#include "core/escape_text.hpp"

#include <cstring>

namespace coaccel::detail {

bool file_problem::set(errc code, std::initializer_list<message_part> parts)
{
    if (what != errc{})
        return false;
    std::string text;
    for (const std::string& part : {plan, where})
        if (!part.empty())
            text += part + ": ";
    for (const message_part& p : parts)
        p.append_to(text);
    message = std::move(text);
    what = code;
    return false;
}

record_fields::record_fields(const node& record, file_problem& problem)
    : record_(record), problem_(problem), used_(record.items.size())
{}

std::size_t record_fields::position(std::string_view name) const noexcept
{
    std::size_t i = 0;
    while (i < record_.items.size() && record_.items[i].name != name)
        ++i;
    return i;
}

const node* record_fields::get(std::string_view name, node_kind kind)
{
    const std::size_t i = position(name);
    if (i == record_.items.size()) {
        problem_.invalid({name, " is missing"});
        return nullptr;
    }
    const node& found = record_.items[i];
    if (found.kind != kind) {
        problem_.invalid({name, " is ", describe(found)});
        return nullptr;
    }
    used_[i] = true;
    return &found;
}

bool record_fields::get(std::string_view name, std::string& text)
{
    const node* const found = get(name, node_kind::text);
    if (found)
        text = found->text();
    return found != nullptr;
}

bool record_fields::get(std::string_view name, bool& value)
{
    const node* const found = get(name, node_kind::boolean);
    if (found)
        value = found->data[0] != std::byte(0);
    return found != nullptr;
}

bool record_fields::get(std::string_view name, std::vector<std::string>& texts)
{
    const node* const found = get(name, node_kind::list);
    if (!found)
        return false;
    for (const node& item : found->items) {
        if (item.kind != node_kind::text)
            return problem_.invalid({name, " has ", describe(item), " instead of a text"});
        texts.emplace_back(item.text());
    }
    return true;
}

bool record_fields::get(std::string_view name, std::vector<std::uint64_t>& numbers)
{
    const node* const found = get(name, node_kind::list);
    if (!found)
        return false;
    for (const node& item : found->items) {
        if (item.kind != node_kind::number)
            return problem_.invalid({name, " has ", describe(item), " instead of a number"});
        if (!copy_number(name, item, dtype::u64, &numbers.emplace_back()))
            return false;
    }
    return true;
}

bool record_fields::get_number(std::string_view name, dtype type, void* value)
{
    const node* const found = get(name, node_kind::number);
    return found && copy_number(name, *found, type, value);
}

bool record_fields::copy_number(std::string_view name, const node& from, dtype type, void* value)
{
    if (from.type != type)
        return problem_.invalid({name, " is ", describe(from), " instead of ", to_string(type)});
    std::memcpy(value, from.data.data(), from.data.size());
    return true;
}

bool record_fields::done()
{
    for (std::size_t i = 0; i < used_.size(); ++i)
        if (!used_[i])
            return problem_.invalid({escape_text(record_.items[i].name.substr(0, 100)), " is unknown or repeated"});
    return true;
}

} // namespace coaccel::detail
