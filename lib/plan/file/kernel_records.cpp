#include "plan/file/kernel_records.hpp"

#include "jit/registry.hpp"

namespace coaccel::detail {
namespace {

void write_texts(tree_writer& out, const std::vector<std::string>& texts)
{
    out.begin_list();
    for (const std::string& t : texts)
        out.text(t);
    out.end();
}

void write_headers(tree_writer& out, const std::vector<jit::header>& headers)
{
    out.begin_list();
    for (const jit::header& h : headers) {
        out.begin_record();
        out["name"].text(h.name);
        out["text"].text(h.text);
        out.end();
    }
    out.end();
}

void write_parameters(tree_writer& out, const jit::signature& s)
{
    out.begin_list();
    for (const jit::parameter& p : s.parameters) {
        out.begin_record();
        out["form"].number(static_cast<std::uint8_t>(p.type.form));
        out["code"].number(static_cast<std::uint8_t>(p.type.code));
        out["size"].number(p.type.size);
        out["text"].text(p.text);
        out.end();
    }
    out.end();
}

bool read_options(record_fields& from, file_problem& problem, jit::compile_options& made)
{
    std::vector<std::string> options, folders;
    std::int32_t architecture = 0;
    if (!from.get("options", options) || !from.get("include_folders", folders) ||
        !from.get("architecture", architecture))
        return false;
    for (std::string& o : options)
        made.option(std::move(o));
    for (std::string& f : folders)
        made.include_folder(std::move(f));
    made.architecture(architecture);
    const node* const headers = from.get("headers", node_kind::list);
    if (!headers)
        return false;
    for (const node& h : headers->items) {
        std::string name, text;
        record_fields fields(h, problem);
        if (!fields.get("name", name) || !fields.get("text", text) || !fields.done())
            return false;
        made.add_header(std::move(name), std::move(text));
    }
    return true;
}

bool read_parameters(const node& list, file_problem& problem, jit::signature& made)
{
    for (const node& n : list.items) {
        std::uint8_t form = 0, code = 0;
        jit::parameter p;
        record_fields from(n, problem);
        if (!from.get("form", form) || !from.get("code", code) || !from.get("size", p.type.size) ||
            !from.get("text", p.text) || !from.done())
            return false;
        p.type.form = static_cast<jit::type_form>(form);
        p.type.code = static_cast<jit::type_code>(code);
        if (p.type.form > jit::type_form::pointer_to_const || p.type.code > jit::type_code::nothing)
            return problem.invalid({"parameter ", made.parameters.size() + 1, " has an unknown type"});
        made.parameters.push_back(std::move(p));
    }
    return true;
}

} // namespace

void write_kernel(tree_writer& out, const jit::image& i)
{
    out.begin_record();
    out["name"].text(i.name);
    out["source"].text(i.source);
    write_texts(out["options"], i.options.options());
    write_texts(out["include_folders"], i.options.include_folders());
    write_headers(out["headers"], i.options.headers());
    out["architecture"].number(static_cast<std::int32_t>(i.options.architecture()));
    out["symbol"].text(i.symbol);
    out["code"].bytes(std::as_bytes(std::span(i.code)));
    out["knows_parameters"].boolean(i.parameters.known);
    write_parameters(out["parameters"], i.parameters);
    out.end();
}

std::shared_ptr<const jit::image> read_kernel(const node& record, file_problem& problem)
{
    auto made = std::make_shared<jit::image>();
    record_fields from(record, problem);
    if (!from.get("name", made->name) || !from.get("source", made->source) || !from.get("symbol", made->symbol) ||
        !from.get("knows_parameters", made->parameters.known))
        return nullptr;
    made->options.name(made->name);
    const node* const code = from.get("code", node_kind::bytes);
    // Not derived from the symbol again: what a demangler does with arbitrary symbols is not known. A device compares
    // the arguments of a launch with the code.
    const node* const parameters = code ? from.get("parameters", node_kind::list) : nullptr;
    if (!parameters || !read_parameters(*parameters, problem, made->parameters) ||
        !read_options(from, problem, made->options) || !from.done())
        return nullptr;
    made->code = code->text();
    if (made->code.empty() || made->source.empty()) {
        problem.invalid({"it has no ", made->code.empty() ? "code" : "source"});
        return nullptr;
    }
    return jit::register_image(std::move(made));
}

} // namespace coaccel::detail
