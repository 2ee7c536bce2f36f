#include "report.hpp"

#include <cstdio>
#include <exception>
#include <fstream>
#include <string_view>

namespace coaccel::bench {
namespace {

void print_head()
{
    std::printf("%-28s %10s %12s %12s  %-15s %-8s\n", "row", "ratio", "ours", "theirs", "unit", "goal");
    std::fflush(stdout);
}

void print(const row& r)
{
    std::printf("%-28s %10.3f %12.2f %12.2f  %-15s %-8s %s\n", r.name.c_str(), r.ratio, r.ours, r.theirs,
                r.unit.c_str(), r.goal.c_str(),
                r.goal.empty() ? ""
                : r.met        ? "met"
                               : "missed");
    std::fflush(stdout);
}

bool write(const rows& table, const char* path)
{
    std::ofstream out(path);
    out << "[\n";
    for (std::size_t i = 0; i < table.size(); ++i) {
        const row& r = table[i];
        out << R"(  {"name": ")" << r.name << R"(", "ratio": )" << r.ratio << R"(, "ours": )" << r.ours
            << R"(, "theirs": )" << r.theirs << R"(, "unit": ")" << r.unit << R"(", "goal": ")" << r.goal
            << R"(", "met": )" << (r.met ? "true" : "false") << '}' << (i + 1 < table.size() ? "," : "") << '\n';
    }
    out << "]\n";
    return static_cast<bool>(out.flush());
}

std::string_view first_of(std::string_view names)
{
    return names.substr(0, names.find(' '));
}

} // namespace

std::optional<arguments> parse(int argc, char** argv, extras more)
{
    arguments how;
    for (int i = 1; i < argc; ++i) {
        const std::string_view given(argv[i]);
        if (given == "--json" && i + 1 < argc) {
            how.json = argv[++i];
        } else if (given == "--breakdown" && more == extras::breakdown) {
            how.breakdown = true;
        } else if (how.filter.empty() && !given.empty() && given.front() != '-') {
            how.filter = given;
        } else {
            std::fprintf(stderr, "usage: %s [--json FILE]%s [PART OF A ROW'S NAME]\n", argv[0],
                         more == extras::breakdown ? " [--breakdown]" : "");
            return std::nullopt;
        }
    }
    return how;
}

bool report(const std::vector<measurement>& measurements, const arguments& how)
{
    rows table;
    bool fine = true;
    print_head();
    for (const auto& [names, measure] : measurements) {
        if (names.find(how.filter) == std::string::npos)
            continue;
        const std::string label(first_of(names));
        std::fprintf(stderr, "measuring %s ...\n", label.c_str());
        rows made;
        try {
            measure(made);
        } catch (const std::exception& e) {
            std::printf("%-28s failed: %s\n", label.c_str(), e.what());
            std::fflush(stdout);
            fine = false;
        }
        for (row& r : made)
            if (r.name.find(how.filter) != std::string::npos) {
                print(r);
                table.push_back(std::move(r));
            }
        // Written after each measurement, so that the results so far survive a crash.
        if (how.json && !write(table, how.json)) {
            std::fprintf(stderr, "cannot write %s\n", how.json);
            return false;
        }
    }
    return fine;
}

} // namespace coaccel::bench
