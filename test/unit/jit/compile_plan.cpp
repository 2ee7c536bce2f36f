#include "cuda/jit/compile_plan.hpp"

#include "support.hpp"

#include <algorithm>
#include <functional>

namespace test_jit_compile_plan {

namespace {

using namespace coaccel;
using options = jit::compile_options;

const cuda::compiler_facts nvrtc = {"/none/lib/libnvrtc.so", 12080, {80, 90, 75, 100}};

bool has(const cuda::compile_plan& plan, const std::string& option)
{
    return std::ranges::find(plan.options, option) != plan.options.end();
}

cuda::compile_plan plan_for(const options& o, int architecture = 90)
{
    auto made = cuda::plan_compilation(o, architecture, nvrtc);
    REQUIRE(made.has_value());
    return std::move(made).value();
}

struct ingredients {
    std::string source = "#include \"used.h\"\ncode";
    options how = options("f");
    int architecture = 90;
    int nvrtc = 13000;
    int driver = 13000;

    std::string key() const
    {
        auto made = cuda::make_key(source, how, plan_for(how, architecture), nvrtc, driver);
        REQUIRE(made.has_value());
        return *made;
    }
};

} // namespace

TEST_SUITE_BEGIN("cuda::compile_plan");

TEST_CASE("the cache of NVRTC is switched off where there is one")
{
    auto newer = nvrtc;
    CHECK_FALSE(has(cuda::plan_compilation(options("f"), 90, newer).value(), "--no-cache"));
    newer.version = 12090;
    CHECK(has(cuda::plan_compilation(options("f"), 90, newer).value(), "--no-cache"));
}

TEST_CASE("a known architecture is compiled to a CUBIN, and an unknown one to PTX")
{
    const struct {
        int wanted;
        const char* option;
        cuda::code_kind kind;
    } rows[] = {
        {90, "--gpu-architecture=sm_90", cuda::code_kind::cubin},
        {75, "--gpu-architecture=sm_75", cuda::code_kind::cubin},
        {86, "--gpu-architecture=compute_80", cuda::code_kind::ptx},
        {120, "--gpu-architecture=compute_100", cuda::code_kind::ptx},
        {0, "--gpu-architecture=compute_75", cuda::code_kind::ptx},
    };
    for (const auto& r : rows) {
        CAPTURE(r.wanted);
        const auto plan = plan_for(options("f"), r.wanted);
        CHECK(has(plan, r.option));
        CHECK(plan.kind == r.kind);
    }
    CHECK(cuda::plan_compilation(options("f"), 70, nvrtc).error() == errc::invalid_argument);
}

TEST_CASE("the caller's options replace the defaults")
{
    CHECK(has(plan_for(options("f")), "--std=c++17"));
    CHECK_FALSE(has(plan_for(options("f").option("-std=c++20")), "--std=c++17"));
    CHECK_FALSE(has(plan_for(options("f").option("--std").option("c++20")), "--std=c++17"));
    const auto own = plan_for(options("f").option("-arch=compute_80"));
    CHECK_FALSE(has(own, "--gpu-architecture=sm_90"));
    CHECK(own.kind == cuda::code_kind::ptx);
    CHECK(plan_for(options("f").option("--gpu-architecture").option("sm_80")).kind == cuda::code_kind::cubin);

    const auto folders =
        plan_for(options("f").include_folder("a").option("-Ib").option("-I").option("c").option("--include-path=d"))
            .folders;
    CHECK(folders == std::vector<std::string>{"a", "b", "c", "d", "."});
}

TEST_CASE("blanks around options are ignored")
{
    const auto plan =
        plan_for(options("f").option("-I a").option(" -Ib ").option("-I").option(" c").option(" -arch=compute_80"));
    CHECK(plan.folders == std::vector<std::string>{"a", "b", "c", "."});
    CHECK_FALSE(has(plan, "--gpu-architecture=sm_90"));
    CHECK(plan.kind == cuda::code_kind::ptx);
}

TEST_CASE("every dependency of the code changes the key")
{
    const test::temporary_folder folder;
    test::write_file(folder / "used.h", "#include \"nested.h\"\n");
    test::write_file(folder / "nested.h", "1");
    test::write_file(folder / "unused.h", "1");
    std::filesystem::create_directory(folder / "more");
    ingredients base;
    base.how.include_folder(folder.path()).add_header("m.h", "#include \"by_memory.h\"");
    const auto key = base.key();
    CHECK(base.key() == key);

    const struct {
        const char* name;
        std::function<void(ingredients&)> change;
    } rows[] = {
        {"source", [](auto& i) { i.source += " "; }},
        {"name", [](auto& i) { i.how.name("g"); }},
        {"option", [](auto& i) { i.how.option("-lineinfo"); }},
        {"architecture", [](auto& i) { i.architecture = 80; }},
        {"PTX instead of CUBIN", [](auto& i) { i.architecture = 0; }},
        {"NVRTC", [](auto& i) { i.nvrtc = 13010; }},
        {"driver", [](auto& i) { i.driver = 13010; }},
        {"a header more in memory", [](auto& i) { i.how.add_header("n.h", ""); }},
        {"a folder more", [&](auto& i) { i.how.include_folder(folder / "more"); }},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        auto changed = base;
        r.change(changed);
        CHECK(changed.key() != key);
    }

    for (const char* file : {"used.h", "nested.h", "by_memory.h"}) {
        CAPTURE(file);
        const auto path = folder / file;
        const auto before = base.key();
        test::write_file(path, test::read_file(path) + "// changed");
        CHECK(base.key() != before);
    }
    const auto before = base.key();
    test::write_file(folder / "unused.h", "2");
    CHECK(base.key() == before);
}

TEST_CASE("a file that appears earlier in the search path changes the key")
{
    const test::temporary_folder first;
    const test::temporary_folder second;
    test::write_file(second / "used.h", "1");
    ingredients i;
    i.how.include_folder(first.path()).include_folder(second.path());
    const auto before = i.key();
    test::write_file(first / "used.h", "1");
    CHECK(i.key() != before);
}

TEST_CASE("a header included by an option changes the key")
{
    const test::temporary_folder folder;
    const auto path = folder / "pre.h";
    test::write_file(path, "1");
    ingredients i;
    i.how.option("--pre-include=" + path);
    const auto before = i.key();
    test::write_file(path, "2");
    CHECK(i.key() != before);

    i.source = "/* open";
    const auto with_open_comment = i.key();
    test::write_file(path, "3");
    CHECK(i.key() != with_open_comment);
}

TEST_CASE("a header changes the key for every spelling of its include folder")
{
    const test::temporary_folder folder;
    const auto path = folder.path();
    const std::vector<std::string> rows[] = {
        {"-I" + path},
        {"-I=" + path},
        {"-I " + path},
        {" -I  " + path + " "},
        {"-I", " " + path},
        {"--include-path=" + path},
        {"--include-path", path},
    };
    for (const auto& row : rows) {
        CAPTURE(row.front());
        ingredients i;
        for (const auto& o : row)
            i.how.option(o);
        test::write_file(folder / "used.h", "1");
        const auto before = i.key();
        test::write_file(folder / "used.h", "2");
        CHECK(i.key() != before);
    }
}

TEST_CASE("another build of the same NVRTC changes the key")
{
    const options o("f");
    auto first = nvrtc;
    first.build = "1";
    auto second = nvrtc;
    second.build = "2";
    const auto key = [&](const cuda::compiler_facts& facts) {
        return cuda::make_key("code", o, cuda::plan_compilation(o, 90, facts).value(), 1, 1);
    };
    CHECK(key(first) == key(first));
    CHECK(key(first) != key(second));
}

TEST_CASE("adjacent parts of the key are not confused")
{
    ingredients a, b;
    a.how.option("-a").option("-b");
    b.how.option("-a-b");
    CHECK(a.key() != b.key());
    a = {}, b = {};
    a.how.add_header("x", "yz");
    b.how.add_header("xy", "z");
    CHECK(a.key() != b.key());
}

TEST_CASE("a source that includes by macro has no key")
{
    const options o("f");
    CHECK_FALSE(cuda::make_key("#include HEADER\n", o, plan_for(o), 1, 1).has_value());
}

TEST_CASE("code with an include folder that does not exist has no key")
{
    const test::temporary_folder folder;
    test::write_file(folder / "file", "");
    const options rows[] = {
        options("f").option("-I/none"),
        options("f").option("-I= " + folder.path()),
        options("f").option("--include-path").option(folder / "file"),
        options("f").include_folder(folder.path() + " "),
    };
    for (const auto& o : rows)
        CHECK_FALSE(cuda::make_key("code", o, plan_for(o), 1, 1).has_value());
}

TEST_CASE("code with a precompiled header has no key")
{
    for (const char* text : {"-pch", "--pch", " --pch", "--use-pch=f", "-use-pch=f", "--create-pch=f", "--pch-dir=d"}) {
        CAPTURE(text);
        const auto o = options("f").option(text);
        CHECK_FALSE(cuda::make_key("code", o, plan_for(o), 1, 1).has_value());
    }
    for (const char* text : {"-DX=-pch", "pch"}) {
        CAPTURE(text);
        const auto o = options("f").option(text);
        CHECK(cuda::make_key("code", o, plan_for(o), 1, 1).has_value());
    }
}

TEST_SUITE_END();

} // namespace test_jit_compile_plan
