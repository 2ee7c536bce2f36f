#include "plan/file/slot_records.hpp"

#include "core/escape_text.hpp"
#include "plan/content_hash.hpp"
#include "plan/file/plan_file.hpp"

#include <algorithm>

namespace coaccel::detail {
namespace {

bool to_slot_kind(std::string_view name, slot_kind& kind) noexcept
{
    for (std::size_t i = 0; i < slot_kind_count; ++i)
        if (name == to_string(slot_kind(i))) {
            kind = slot_kind(i);
            return true;
        }
    return false;
}

bool read_rule(record_fields& from, file_problem& problem, plan_slot& slot)
{
    std::string name;
    if (!from.get("durable", name))
        return false;
    if (slot.kind != slot_kind::state)
        return problem.invalid({"its kind is ", to_string(slot.kind), ", but it is durable"});
    for (const auto rule : {suspect_rule::keep, suspect_rule::reset, suspect_rule::fail})
        if (name == to_string(rule)) {
            slot.durable = rule;
            return true;
        }
    return problem.invalid({"its rule is ", escape_text(name.substr(0, 100))});
}

bool read_number(record_fields& from, file_problem& problem, slot_record& made)
{
    if (!from.get("common", made.common))
        return false;
    if (made.slot.kind != slot_kind::state)
        return problem.invalid({"its kind is ", to_string(made.slot.kind), ", but it is common to several plans"});
    return made.common != own_state ||
           problem.invalid({"its number among the common states is ", made.common, ", which is none"});
}

bool read_shape(record_fields& from, file_problem& problem, plan_slot& slot)
{
    if (!from.get("shape", slot.shape.dims) || (from.has("batched") && !from.get("batched", slot.shape.batched)))
        return false;
    if (slot.kind != slot_kind::input && slot.kind != slot_kind::output)
        return problem.invalid({"its kind is ", to_string(slot.kind), ", but it has a shape"});
    return slot.shape.count() == slot.count ||
           problem.invalid({"its shape has ", slot.shape.count(), " elements, the slot ", slot.count});
}

} // namespace

bool read_slot(const node& record, file_problem& problem, slot_record& made)
{
    std::string kind, type;
    record_fields from(record, problem);
    if (!from.get("name", made.slot.name) || !from.get("kind", kind) || !from.get("type", type) ||
        !from.get("count", made.slot.count))
        return false;
    if (!to_slot_kind(kind, made.slot.kind))
        return problem.invalid({"its kind is ", escape_text(kind.substr(0, 100))});
    const auto known = to_dtype(type);
    if (!known)
        return problem.invalid({"its type is ", escape_text(type.substr(0, 100))});
    made.slot.type = known.value();
    if (from.has("durable") && !read_rule(from, problem, made.slot))
        return false;
    if (from.has("shape") && !read_shape(from, problem, made.slot))
        return false;
    made.has_content = from.has("content");
    if (made.has_content) {
        const node* const content = from.get("content", node_kind::record);
        if (!content)
            return false;
        record_fields fields(*content, problem);
        if (!fields.get("offset", made.offset) || !fields.get("bytes", made.bytes) ||
            !fields.get("hash_high", made.id.high) || !fields.get("hash_low", made.id.low) || !fields.done())
            return false;
    }
    return (!from.has("common") || read_number(from, problem, made)) && from.done();
}

bool same_state(const slot_record& a, const slot_record& b) noexcept
{
    return a.slot.type == b.slot.type && a.slot.count == b.slot.count && a.slot.durable == b.slot.durable &&
           a.has_content == b.has_content && a.offset == b.offset && a.bytes == b.bytes && a.id == b.id;
}

void content_writer::write(tree_writer& out, const plan_content& c)
{
    const void* const key = c.identity ? c.identity.get() : c.data.get();
    const auto [known, added] = offsets_.try_emplace({key, c.bytes}, aligned_content(end_));
    if (added) {
        contents_.push_back(c);
        end_ = known->second + c.bytes;
    }
    out["content"].begin_record();
    out["offset"].number(known->second);
    out["bytes"].number(c.bytes);
    out["hash_high"].number(c.id.high);
    out["hash_low"].number(c.id.low);
    out.end();
}

void write_slot(tree_writer& out, const plan_slot& s, const plan_content* content, std::uint32_t common,
                content_writer& contents)
{
    out.begin_record();
    out["name"].text(s.name);
    out["kind"].text(to_string(s.kind));
    out["type"].text(to_string(s.type));
    out["count"].number(s.count);
    if (s.shape) {
        out["shape"].begin_list();
        for (const std::uint64_t d : s.shape.dims)
            out.number(d);
        out.end();
        if (s.shape.batched)
            out["batched"].boolean(true);
    }
    if (s.durable)
        out["durable"].text(to_string(*s.durable));
    if (content)
        contents.write(out, *content);
    if (common != own_state)
        out["common"].number(common);
    out.end();
}

bool content_reader::skip_padding()
{
    const std::uint64_t bytes = aligned_content(position_) - position_;
    if (bytes > area_.size())
        return problem_.invalid({"the file ends before its content"});
    const auto padding = area_.first(bytes);
    if (std::ranges::any_of(padding, [](std::byte b) { return b != std::byte(0); }))
        return problem_.invalid({"there are bytes before its content"});
    position_ += bytes;
    area_ = area_.subspan(bytes);
    return true;
}

bool content_reader::read(const slot_record& s, plan_content& made)
{
    if (s.bytes != s.slot.bytes())
        return problem_.invalid({"its content has ", s.bytes, " bytes, the slot ", s.slot.bytes()});
    if (const auto known = taken_.find(s.offset);
        known != taken_.end() && known->second.bytes == s.bytes && known->second.id == s.id) {
        made = known->second;
        return true;
    }
    if (!skip_padding())
        return false;
    if (first_ == 0)
        first_ = position_;
    if (s.offset != position_ - first_)
        return problem_.invalid(
            {"its content begins at byte ", s.offset, " of the contents instead of ", position_ - first_});
    if (s.bytes > area_.size())
        return problem_.invalid({"its content has ", s.bytes, " bytes, the rest of the file ", area_.size()});
    const auto content = area_.first(static_cast<std::size_t>(s.bytes));
    if (file_.check == content_check::hash && hash_content(content.data(), content.size()) != s.id)
        return problem_.invalid({"its content is damaged: it does not have the hash ", to_string(s.id)});
    made = {.data = {file_.owner, content.data()}, .bytes = s.bytes, .id = s.id, .identity = {}, .file = file_.mapped};
    taken_.emplace(s.offset, made);
    position_ += s.bytes;
    area_ = area_.subspan(content.size());
    return true;
}

bool content_reader::at_end()
{
    return area_.empty() || problem_.invalid({"there are ", area_.size(), " bytes after its end"});
}

} // namespace coaccel::detail
