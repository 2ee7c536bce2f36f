#include "host/op_table.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace test_ops_reference {

// docs/operations.md has a table for every op of the host backend, with a row for every described field.
namespace {

using namespace coaccel;

using sections = std::map<std::string, std::vector<std::string>>;

/// Returns the last name in backquotes of a line such as "### `blas::axpy` (`blas.axpy`)".
std::string last_quoted(const std::string& line)
{
    const auto end = line.rfind('`');
    const auto begin = line.rfind('`', end - 1);
    return line.substr(begin + 1, end - begin - 1);
}

sections read_page()
{
    std::ifstream page(COACCEL_TEST_OPERATIONS_PAGE);
    REQUIRE(page.good());
    sections all;
    std::string line, op;
    while (std::getline(page, line)) {
        if (line.starts_with("### "))
            all[op = last_quoted(line)];
        else if (!op.empty() && line.starts_with("| `"))
            all[op].push_back(line);
    }
    return all;
}

std::string short_name(const op_info& info)
{
    return info.name.substr(0, info.name.find('<'));
}

std::string text_of(const op_field& f)
{
    const char* mode = f.mode == access::read ? "in<" : f.mode == access::write ? "out<" : "inout<";
    return "| `" + std::string(f.name) + "` | `" + (f.what == op_field::kind::operand ? mode : "");
}

} // namespace

TEST_SUITE_BEGIN("reference of the ops");

TEST_CASE("the reference has a table for every host op and a row for every field, in order")
{
    // The device calls that use these ops have no fields for the caller to set.
    const std::set<std::string> internal{"memory.write", "memory.read", "memory.download"};
    const auto page = read_page();
    std::set<std::string> seen;
    host::all_ops().for_each([&](const op_info& info) {
        const auto op = short_name(info);
        if (internal.contains(op) || info.name.ends_with(" stored"))
            return;
        CAPTURE(info.name);
        REQUIRE_MESSAGE(page.contains(op), "run docs/check_operations --write");
        seen.insert(op);
        const auto& rows = page.at(op);
        REQUIRE(rows.size() == info.fields.size());
        for (std::size_t i = 0; i < rows.size(); ++i)
            CHECK_MESSAGE(rows[i].starts_with(text_of(info.fields[i])), rows[i]);
    });
    // Only on a GPU.
    for (const char* op : {"interop.wait_event", "interop.record_event"}) {
        REQUIRE(page.contains(op));
        CHECK(page.at(op).size() == 2);
        seen.insert(op);
    }
    for (const auto& entry : page)
        CHECK_MESSAGE(seen.contains(entry.first), entry.first);
    CHECK(page.size() == seen.size());
}

TEST_SUITE_END();

} // namespace test_ops_reference
