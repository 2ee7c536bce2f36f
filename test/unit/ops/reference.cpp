#include "host/op_table.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace test_ops_reference {

// docs/operations.md has a table for every op of the host backend, with a row for every described field, and one for
// every enumeration of a field, with a row for every enumerator.
namespace {

using namespace coaccel;

struct section {
    /// What it says about CUDA graphs, such as "no (`reply`)".
    std::string graph;
    std::vector<std::string> rows;
};

using sections = std::map<std::string, section>;

/// Returns the last name in backquotes of a line such as "### `blas::axpy` (`blas.axpy`)".
std::string last_quoted(const std::string& line)
{
    const auto end = line.rfind('`');
    const auto begin = line.rfind('`', end - 1);
    return line.substr(begin + 1, end - begin - 1);
}

/// The tables below a heading such as "## Enumerations", by their names.
sections read_page(const std::string& heading)
{
    std::ifstream page(COACCEL_TEST_OPERATIONS_PAGE);
    REQUIRE(page.good());
    sections all;
    std::string line, name;
    bool inside = false;
    while (std::getline(page, line)) {
        if (line.starts_with("## "))
            inside = line == heading;
        else if (inside && line.starts_with("### "))
            all[name = last_quoted(line)];
        else if (inside && line.starts_with("| `"))
            all.at(name).rows.push_back(line);
        else if (const auto at = line.find("CUDA graph: "); inside && at != std::string::npos)
            all.at(name).graph = line.substr(at + 12, line.rfind('.') - at - 12);
    }
    return all;
}

/// The enumerators in the table of an enumeration.
std::vector<std::string> enumerators(const std::vector<std::string>& rows)
{
    std::vector<std::string> names;
    for (const std::string& row : rows)
        names.push_back(row.substr(3, row.find('`', 3) - 3));
    return names;
}

/// The enumerators of a field as the library describes them.
std::vector<std::string> enumerators(const op_field& f)
{
    std::vector<std::string> names;
    for (std::uint64_t value = 0; const char* name = f.enumerator(&value); ++value)
        names.emplace_back(name);
    return names;
}

std::string short_name(const op_info& info)
{
    return info.name.substr(0, info.name.find('<'));
}

/// A field of the struct. A list of operands has several of the fields that the library describes.
struct struct_field {
    std::string name;
    const op_field* first;
    std::size_t operands;
};

std::vector<struct_field> struct_fields(const op_info& info)
{
    std::vector<struct_field> all;
    for (const op_field& f : info.fields) {
        const auto bracket = f.name.find('[');
        const std::string name(f.name.substr(0, bracket));
        if (bracket == std::string::npos) {
            all.push_back({name, &f, 1});
            continue;
        }
        if (all.empty() || all.back().name != name)
            all.push_back({name, &f, 0});
        CHECK(f.name == name + '[' + std::to_string(all.back().operands++) + ']');
    }
    return all;
}

/// How the row of a field begins.
std::string text_of(const struct_field& field)
{
    const op_field& f = *field.first;
    std::string type;
    if (f.name != field.name)
        type += "std::array<";
    if (f.optional)
        type += "optional_";
    if (f.what == op_field::kind::operand)
        type += f.mode == access::read ? "in<" : f.mode == access::write ? "out<" : "inout<";
    return "| `" + field.name + "` | `" + type;
}

/// Whether the page has no table of its own for an op: that of the op within it is enough.
bool contains_another(const op_info& info)
{
    return info.name.ends_with(" stored") || info.name.ends_with(" tuned");
}

/// What the page says about an op with its default values.
std::string graph_of(const op_info& info)
{
    switch (info.obstacle) {
    case capture_obstacle::none: return "yes";
    case capture_obstacle::reply: return "no (`reply`)";
    case capture_obstacle::state: return "no (`state`)";
    case capture_obstacle::host_work: return "no (`host_work`)";
    case capture_obstacle::unknown_code: return "no (`unknown_code`)";
    }
    return {};
}

} // namespace

TEST_SUITE_BEGIN("reference of the ops");

TEST_CASE("the reference has a table for every host op and a row for every field, in order")
{
    // The device calls that use these ops have no fields for the caller to set.
    const std::set<std::string> internal{"memory.write", "memory.read", "memory.download"};
    const auto page = read_page("## Every operation");
    std::set<std::string> seen;
    host::all_ops().for_each([&](const op_info& info) {
        const auto op = short_name(info);
        if (internal.contains(op) || contains_another(info))
            return;
        CAPTURE(info.name);
        REQUIRE_MESSAGE(page.contains(op), "run docs/check_operations --write");
        seen.insert(op);
        const auto& rows = page.at(op).rows;
        CHECK(page.at(op).graph == graph_of(info));
        const auto fields = struct_fields(info);
        REQUIRE(rows.size() == fields.size());
        for (std::size_t i = 0; i < rows.size(); ++i)
            CHECK_MESSAGE(rows[i].starts_with(text_of(fields[i])), rows[i]);
    });
    // Only on a GPU.
    for (const char* op : {"interop.wait_event", "interop.record_event"}) {
        REQUIRE(page.contains(op));
        CHECK(page.at(op).rows.size() == 2);
        CHECK(page.at(op).graph == "no (`host_work`)");
        seen.insert(op);
    }
    for (const auto& entry : page)
        CHECK_MESSAGE(seen.contains(entry.first), entry.first);
    CHECK(page.size() == seen.size());
}

TEST_CASE("a field of an enumeration leads to the table of its enumerators")
{
    const auto page = read_page("## Every operation");
    const auto tables = read_page("## Enumerations");
    host::all_ops().for_each([&](const op_info& info) {
        const auto op = short_name(info);
        if (!page.contains(op) || contains_another(info))
            return;
        const auto fields = struct_fields(info);
        REQUIRE(page.at(op).rows.size() == fields.size());
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const op_field& field = *fields[i].first;
            if (field.holds != op_field::content::enumeration)
                continue;
            const std::string& row = page.at(op).rows[i];
            CAPTURE(row);
            bool found = false;
            for (const auto& [name, table] : tables)
                found =
                    found || (row.find('[' + name + ']') != row.npos && enumerators(table.rows) == enumerators(field));
            CHECK_MESSAGE(found, "run docs/check_operations --write");
        }
    });
}

TEST_SUITE_END();

} // namespace test_ops_reference
