#include "row.hpp"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

namespace {

using coaccel::bench::row;
using coaccel::bench::rows;

void print(const rows& table)
{
    std::printf("%-28s %10s %12s %12s  %-15s %-8s\n", "row", "ratio", "ours", "theirs", "unit", "goal");
    for (const row& r : table)
        std::printf("%-28s %10.3f %12.2f %12.2f  %-15s %-8s %s\n", r.name.c_str(), r.ratio, r.ours, r.theirs,
                    r.unit.c_str(), r.goal.c_str(), r.met ? "" : "missed");
}

bool write(const rows& table, const char* path)
{
    std::ofstream out(path);
    out << "[\n";
    for (std::size_t i = 0; i < table.size(); ++i) {
        const row& r = table[i];
        out << R"(  {"name": ")" << r.name << R"(", "ratio": )" << r.ratio << R"(, "ours": )" << r.ours
            << R"(, "theirs": )" << r.theirs << R"(, "unit": ")" << r.unit << "\"}" << (i + 1 < table.size() ? "," : "")
            << '\n';
    }
    out << "]\n";
    return static_cast<bool>(out.flush());
}

} // namespace

int main(int argc, char** argv)
{
    const char* json = nullptr;
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--json" && i + 1 < argc) {
            json = argv[++i];
        } else {
            std::fprintf(stderr, "usage: %s [--json FILE]\n", argv[0]);
            return 2;
        }
    }

    rows table;
    const std::pair<const char*, void (*)(rows&)> groups[] = {{"gemm", coaccel::bench::gemm_rows},
                                                              {"mailbox", coaccel::bench::mailbox_rows},
                                                              {"exec", coaccel::bench::exec_rows}};
    for (const auto& [name, measure] : groups) {
        std::fprintf(stderr, "measuring %s ...\n", name);
        measure(table);
    }
    print(table);
    if (json && !write(table, json)) {
        std::fprintf(stderr, "cannot write %s\n", json);
        return 1;
    }
    return 0;
}
