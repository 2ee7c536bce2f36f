#include "cuda/jit/disk_cache.hpp"
#include "nvrtc.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace test_jit_compiler_cache {

namespace {

using namespace coaccel;
using options = jit::compile_options;

/// Compiles and returns whether the code came from the cache.
bool hits(const std::string& source, const options& how, int driver = 13000, int architecture = 90)
{
    const auto made = cuda::compile(source, how, {.architecture = architecture, .driver_version = driver});
    REQUIRE_MESSAGE(made.has_value(), made.error().message());
    CHECK_FALSE(made.value().native()->code.empty());
    CHECK_FALSE(made.value().native()->symbol.empty());
    return made.value().from_cache();
}

std::string only_file(const std::string& folder)
{
    REQUIRE(test::count_files(folder) == 1);
    return std::filesystem::directory_iterator(folder)->path().string();
}

} // namespace

TEST_SUITE_BEGIN("cuda::compile with a cache");

TEST_CASE("the second compilation is a cache hit with the same code, log and parameters")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const std::string source = "template <class T> __global__ void f(const T* x, T* y) { int unused_thing; }";
    const auto how = options("f<float>").cache_folder(folder.path());
    const cuda::compile_target target{.architecture = 90, .driver_version = 13000};
    const auto first = cuda::compile(source, how, target);
    const auto second = cuda::compile(source, how, target);
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    CHECK_FALSE(first.value().from_cache());
    CHECK(second.value().from_cache());
    CHECK(first.value().id() != second.value().id());
    CHECK(first.value().native()->code == second.value().native()->code);
    CHECK(first.value().native()->symbol == second.value().native()->symbol);
    CHECK(first.value().log() == second.value().log());
    CHECK(first.value().parameters() == second.value().parameters());
}

TEST_CASE("another source, name, option, header, architecture or driver is a cache miss")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const std::string source = "#include \"h.h\"\nextern \"C\" __global__ void f() {}\n"
                               "extern \"C\" __global__ void g() {}";
    const auto base = options("f").cache_folder(folder.path()).add_header("h.h", "");
    CHECK_FALSE(hits(source, base));
    CHECK(hits(source, base));
    CHECK_FALSE(hits(source + "\n", base));
    CHECK_FALSE(hits(source, options(base).name("g")));
    CHECK_FALSE(hits(source, options(base).option("-lineinfo")));
    CHECK_FALSE(hits(source, options("f").cache_folder(folder.path()).add_header("h.h", "//")));
    CHECK_FALSE(hits(source, base, 13010));
    CHECK_FALSE(hits(source, base, 13000, 80));
    CHECK(hits(source, base));
    CHECK_FALSE(hits(source, options(base).cache(jit::disk_caching::off)));
}

TEST_CASE("a changed file in an include folder is a cache miss")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const test::temporary_folder headers;
    test::write_file(headers / "value.h", "#define VALUE 1\n");
    const std::string source = "#include <value.h>\nextern \"C\" __global__ void f(int* x) { *x = VALUE; }";
    const auto how = options("f").cache_folder(folder.path()).include_folder(headers.path());
    CHECK_FALSE(hits(source, how));
    CHECK(hits(source, how));
    test::write_file(headers / "value.h", "#define VALUE 2\n");
    CHECK_FALSE(hits(source, how));
    CHECK(hits(source, how));
    // A program that no longer compiles must not be found in the cache either.
    test::write_file(headers / "value.h", "#error gone\n");
    CHECK_FALSE(cuda::compile(source, how, {.architecture = 90, .driver_version = 13000}).has_value());
}

TEST_CASE("a damaged file is a cache miss and is replaced")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const auto how = options("saxpy").cache_folder(folder.path());
    CHECK_FALSE(hits(test::saxpy_source, how));
    const auto path = only_file(folder.path());
    const auto good = test::read_file(path);
    for (const std::size_t at : {std::size_t(0), std::size_t(20), good.size() / 2, good.size() - 1}) {
        auto bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x10);
        test::write_file(path, bad);
        CAPTURE(at);
        CHECK_FALSE(hits(test::saxpy_source, how));
        CHECK(hits(test::saxpy_source, how));
    }
    test::write_file(path, good.substr(0, good.size() / 2));
    CHECK_FALSE(hits(test::saxpy_source, how));
    CHECK(hits(test::saxpy_source, how));
}

TEST_CASE("without a usable folder kernels are compiled every time")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    test::write_file(folder / "file", "");
    const auto where = [](const std::string& path) { return options("saxpy").cache_folder(path); };
    std::vector<options> rows = {where(folder / "file"), where("/proc/none"), where(folder / "full").cache_limit(0)};
    if (::geteuid() != 0) {
        std::filesystem::create_directory(folder / "readonly");
        REQUIRE(::chmod((folder / "readonly").c_str(), 0500) == 0);
        rows.push_back(where(folder / "readonly"));
    }
    for (const auto& how : rows) {
        CAPTURE(how.cache_folder());
        CHECK_FALSE(hits(test::saxpy_source, how));
        CHECK_FALSE(hits(test::saxpy_source, how));
    }
}

TEST_CASE("a source without a key is compiled every time")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const auto how = options("f").cache_folder(folder.path()).add_header("h.h", "").option("-DHEADER=\"h.h\"");
    const std::string source = "#include HEADER\nextern \"C\" __global__ void f() {}";
    CHECK_FALSE(hits(source, how));
    CHECK_FALSE(hits(source, how));
}

TEST_CASE("an unreadable header is left to the compiler, and nothing is cached")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const auto made =
        cuda::compile("#include \"/proc/self/mem\"\nextern \"C\" __global__ void f() {}",
                      options("f").cache_folder(folder.path()), {.architecture = 90, .driver_version = 13000});
    CHECK(test::count_files(folder.path()) == 0);
    if (!made)
        CHECK(made.error() == errc::compile_failed);
}

TEST_CASE("an include folder after a blank is searched, and comments about includes are ignored")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const test::temporary_folder headers;
    test::write_file(headers / "value.h", "#define VALUE 1\n");
    const std::string source = "// #include order matters\n#inc\\\nlude <value.h>\n"
                               "extern \"C\" __global__ void f(int* x) { *x = VALUE; }";
    const auto how = options("f").cache_folder(folder.path()).option("-I " + headers.path());
    CHECK_FALSE(hits(source, how));
    CHECK(hits(source, how));
    test::write_file(headers / "value.h", "#define VALUE 2\n");
    CHECK_FALSE(hits(source, how));
}

TEST_CASE("another build of the same NVRTC is a cache miss")
{
    const auto* nvrtc = test::nvrtc();
    if (!nvrtc)
        return;
    CHECK_FALSE(nvrtc->build.empty());
    const test::temporary_folder folder;
    const auto how = options("saxpy").cache_folder(folder.path());
    CHECK_FALSE(hits(test::saxpy_source, how));
    auto updated = *nvrtc;
    updated.build += "1";
    const cuda::compile_target target{.architecture = 90, .driver_version = 13000, .nvrtc = &updated};
    CHECK_FALSE(cuda::compile(test::saxpy_source, how, target).value().from_cache());
    CHECK(cuda::compile(test::saxpy_source, how, target).value().from_cache());
    CHECK(hits(test::saxpy_source, how));
}

TEST_CASE("threads that compile the same source concurrently all succeed")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const auto how = options("saxpy").cache_folder(folder.path());
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 3; ++i)
                good += cuda::compile(test::saxpy_source, how, {.architecture = 90}).has_value();
        });
    for (auto& t : threads)
        t.join();
    CHECK(good == 12);
    CHECK(test::count_files(folder.path()) == 1);
    CHECK(cuda::compile(test::saxpy_source, how, {.architecture = 90}).value().from_cache());
}

TEST_CASE("processes that compile the same source concurrently all succeed")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    const auto how = options("saxpy").cache_folder(folder.path());
    std::vector<pid_t> children;
    for (int c = 0; c < 4; ++c) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0)
            ::_exit(cuda::compile(test::saxpy_source, how, {.architecture = 90}).has_value() ? 0 : 1);
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = -1;
        CHECK(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    CHECK(test::count_files(folder.path()) == 1);
    CHECK(cuda::compile(test::saxpy_source, how, {.architecture = 90}).value().from_cache());
}

TEST_CASE("a cache hit takes less than half the time of a compilation")
{
    if (!test::nvrtc())
        return;
    using clock = std::chrono::steady_clock;
    const test::temporary_folder folder;
    const auto how = options("saxpy").cache_folder(folder.path());
    const auto time = [&] {
        const auto begin = clock::now();
        (void)hits(test::saxpy_source, how);
        return clock::now() - begin;
    };
    const auto cold = time();
    auto warm = time();
    for (int i = 0; i < 10; ++i)
        warm = std::min(warm, time());
    const double ratio = std::chrono::duration<double>(warm) / std::chrono::duration<double>(cold);
    MESSAGE("compiling " << std::chrono::duration<double, std::milli>(cold).count() << " ms, finding "
                         << std::chrono::duration<double, std::milli>(warm).count() << " ms");
    CHECK(ratio < 0.5);
}

TEST_SUITE_END();

} // namespace test_jit_compiler_cache
