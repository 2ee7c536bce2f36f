#include "cuda/jit/include_scan.hpp"

#include "support.hpp"

#include <algorithm>
#include <sys/stat.h>

namespace test_jit_include_scan {

namespace {

using namespace coaccel;
using names = std::vector<std::string>;

} // namespace

TEST_SUITE_BEGIN("cuda::include_scan");

TEST_CASE("includes are followed through folders and files, including cycles")
{
    const test::temporary_folder folder;
    std::filesystem::create_directory(folder / "sub");
    test::write_file(folder / "a.h", "#include \"sub/b.h\"");
    test::write_file(folder / "sub/b.h", "#include \"c.h\"\n#include \"../a.h\"\n#include <toolkit.h>");
    test::write_file(folder / "sub/c.h", "leaf");
    test::write_file(folder / "d.h", "not reached");
    const auto found = cuda::reachable_files("#include <a.h>", {}, {folder.path()});
    REQUIRE(found.has_value());
    names texts;
    for (const auto& h : *found)
        texts.push_back(h.name);
    std::ranges::sort(texts);
    CHECK(texts == names{folder / "a.h", folder / "sub/b.h", folder / "sub/c.h"});

    test::write_file(folder / "sub/c.h", "#include MACRO");
    CHECK_FALSE(cuda::reachable_files("#include <a.h>", {}, {folder.path()}).has_value());
}

TEST_CASE("headers in memory are followed too")
{
    const test::temporary_folder folder;
    test::write_file(folder / "a.h", "1");
    const auto found = cuda::reachable_files("code", {{"m.h", "#include \"a.h\""}}, {folder.path()});
    REQUIRE(found.has_value());
    REQUIRE(found->size() == 1);
    CHECK(found->front().text == "1");
}

TEST_CASE("a folder with the name of a header is skipped")
{
    const test::temporary_folder folder;
    std::filesystem::create_directory(folder / "a.h");
    const auto found = cuda::reachable_files("#include \"a.h\"\n#include \".\"", {}, {folder.path()});
    REQUIRE(found.has_value());
    CHECK(found->empty());
}

TEST_CASE("an unreadable file makes the result unknown")
{
    const test::temporary_folder folder;
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    std::filesystem::create_symlink(folder / "loop", folder / "loop");
    // Exceeds the size limit.
    test::write_file(folder / "huge", "");
    std::filesystem::resize_file(folder / "huge", std::uintmax_t(1) << 36);
    test::write_file(folder / "good", "#include \"/proc/self/mem\"");
    for (const char* name : {"/proc/self/mem", "/dev/zero", "pipe", "loop", "huge", "good"}) {
        CAPTURE(name);
        const auto source = std::string("#include \"") + name + "\"";
        CHECK_FALSE(cuda::reachable_files(source, {}, {folder.path()}).has_value());
    }
}

TEST_SUITE_END();

} // namespace test_jit_include_scan
