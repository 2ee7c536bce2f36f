#include "jit/image.hpp"
#include "support/example_plans.hpp"
#include "support/plan_files.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/ops/jit.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace test_plan_file_saving {

namespace {

using namespace coaccel;
namespace fs = std::filesystem;

/// Limits the size of files, so that writing fails in the middle, as on a full disk.
class file_size_limit {
public:
    explicit file_size_limit(::rlim_t bytes)
    {
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &old_) == 0);
        ::rlimit changed = old_;
        changed.rlim_cur = bytes;
        handler_ = ::signal(SIGXFSZ, SIG_IGN);
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &changed) == 0);
    }
    file_size_limit(const file_size_limit&) = delete;
    file_size_limit& operator=(const file_size_limit&) = delete;
    ~file_size_limit()
    {
        (void)::setrlimit(RLIMIT_FSIZE, &old_);
        ::signal(SIGXFSZ, handler_);
    }

private:
    ::rlimit old_{};
    void (*handler_)(int) = nullptr;
};

std::vector<std::string> files_in(const std::string& folder)
{
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
        names.push_back(entry.path().filename().string());
    return names;
}

std::string text_of(const result<void>& r)
{
    REQUIRE_FALSE(r);
    CHECK(r.error() == errc::file_failed);
    CHECK(is_caller_error(r.error()));
    return r.error().message();
}

/// An op of the program, which no file can name.
struct own_op {
    using reply = void;
    static constexpr std::string_view name = "test.own";
    static constexpr library lib = library::user;

    inout<float> x;
    std::uint64_t address = 0;

    error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(own_op, (), (x, address), (), ())
};

/// An argument whose type a file cannot describe.
enum class flag : bool { off, on };

void does_nothing(const jit::launch_shape&, float*) {}

TEST_SUITE_BEGIN("plan file");

TEST_CASE("saving replaces an existing file and keeps its permissions")
{
    const test::temporary_folder folder;
    const auto path = folder / "a.plan";
    std::ofstream(path) << "old";
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    REQUIRE(test::axpy_plan().save(path));
    CHECK(plan_description::load(path).value() == test::axpy_plan());
    CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
    REQUIRE(test::counting_plan().save(path));
    CHECK(plan_description::load(path).value() == test::counting_plan());
    CHECK(files_in(folder.path()) == std::vector<std::string>{"a.plan"});
}

TEST_CASE("saving follows a symbolic link")
{
    const test::temporary_folder folder;
    fs::create_directory(folder / "b");
    REQUIRE(test::axpy_plan().save(folder / "b/a.plan"));
    fs::create_symlink("b/a.plan", folder / "link");
    REQUIRE(test::counting_plan().save(folder / "link"));
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(plan_description::load(folder / "b/a.plan").value() == test::counting_plan());
    fs::create_symlink("nothing", folder / "broken");
    const auto broken = folder / "broken";
    CHECK(text_of(test::axpy_plan().save(broken)) == "cannot follow " + broken + ": No such file or directory");
}

TEST_CASE("a relative path is one in the current folder")
{
    const test::temporary_folder folder;
    const auto before = fs::current_path();
    fs::current_path(folder.path());
    const auto saved = test::axpy_plan().save("a.plan");
    const auto loaded = plan_description::load("a.plan");
    fs::current_path(before);
    CHECK(saved);
    REQUIRE(loaded);
    CHECK(loaded.value() == test::axpy_plan());
}

TEST_CASE("a write that fails leaves the old file and nothing else")
{
    const test::temporary_folder folder;
    const auto path = folder / "a.plan";
    REQUIRE(test::counting_plan().save(path));
    const auto large = test::axpy_plan(1 << 16);
    for (const ::rlim_t limit : {0, 100, 5000, 100000}) {
        std::string text;
        {
            const file_size_limit limited(limit);
            text = text_of(large.save(path));
        }
        CHECK(text.starts_with("cannot write " + path + "."));
        CHECK(text.ends_with(": File too large"));
        CHECK(files_in(folder.path()) == std::vector<std::string>{"a.plan"});
        CHECK(plan_description::load(path).value() == test::counting_plan());
    }
    REQUIRE(large.save(path));
}

TEST_CASE("a folder that is missing or cannot be written is named with the reason")
{
    const test::temporary_folder folder;
    const auto missing = folder / "none/a.plan";
    const auto text = text_of(test::axpy_plan().save(missing));
    CHECK(text.starts_with("cannot create " + missing + "."));
    CHECK(text.ends_with(": No such file or directory"));
    if (::geteuid() != 0) {
        fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
        CHECK(text_of(test::axpy_plan().save(folder / "a.plan")).ends_with(": Permission denied"));
    }
    // Not even root can create a file here.
    const auto refused = text_of(test::axpy_plan().save("/proc/self/a.plan"));
    CHECK(refused.starts_with("cannot create /proc/self/a.plan."));
}

TEST_CASE("something that is not a regular file is not replaced")
{
    const test::temporary_folder folder;
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    for (const auto& path : {std::string("/dev/full"), std::string("/dev/null"), folder.path(), folder / "pipe"}) {
        CAPTURE(path);
        CHECK(text_of(test::axpy_plan().save(path)) == "cannot replace " + path + ": it is not a regular file");
        const auto loaded = plan_description::load(path);
        REQUIRE_FALSE(loaded);
        CHECK(loaded.error() == errc::file_failed);
        CHECK(loaded.error().message() == "cannot open " + path + ": it is not a regular file");
    }
    CHECK(fs::is_character_file("/dev/full"));
    CHECK(files_in(folder.path()) == std::vector<std::string>{"pipe"});
}

TEST_CASE("a file that does not exist is named with the reason")
{
    const test::temporary_folder folder;
    const auto path = folder / "none.plan";
    const auto loaded = plan_description::load(path);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error() == errc::file_failed);
    CHECK(loaded.error().message() == "cannot open " + path + ": No such file or directory");
}

TEST_CASE("what exists only in this process is not saved, and the file stays as it was")
{
    const test::temporary_folder folder;
    const auto path = folder / "a.plan";
    REQUIRE(test::axpy_plan().save(path));
    const struct {
        const char* name;
        std::string message;
        void (*add)(plan_builder& b, const ref<float>& y);
    } rows[] = {
        {"an op of the program", "plan p: op 2 (test.own): it is not an operation of the library",
         [](plan_builder& b, const ref<float>& y) { b.add(own_op{.x = y}); }},
        {"a host function",
         "plan p: op 2 (jit.launch): the kernel f has a host function, which exists only in this program",
         [](plan_builder& b, const ref<float>& y) {
             const auto k = jit::make_kernel(jit::compile_options("f").host(does_nothing),
                                             {.symbol = "f", .code = "code", .log = {}, .source = "source"});
             b.add(jit::launch(k.value(), {}, out(y)));
         }},
        {"a kernel without source", "plan p: op 2 (jit.launch): the source of the kernel f is not known",
         [](plan_builder& b, const ref<float>& y) {
             const auto k = jit::make_kernel(jit::compile_options("f"), {"f", "code", {}});
             b.add(jit::launch(k.value(), {}, out(y)));
         }},
        {"a type of argument", "plan p: op 2 (plugin.call): argument 2 has a type that a file cannot describe",
         [](plan_builder& b, const ref<float>& y) { b.add(plugin::call("f", out(y), flag::on)); }},
    };
    for (const auto& row : rows) {
        INFO(std::string(row.name));
        plan_builder b("p");
        const auto y = b.output<float>(1);
        b.add(memory::fill<float>{.dst = y});
        row.add(b, y);
        const auto saved = b.finish().value().save(path);
        REQUIRE_FALSE(saved);
        CHECK(saved.error() == errc::not_savable);
        CHECK(saved.error().message() == row.message);
        CHECK(plan_description::load(path).value() == test::axpy_plan());
    }
    const auto empty = plan_description().save(path);
    REQUIRE_FALSE(empty);
    CHECK(empty.error() == errc::invalid_argument);
    CHECK(files_in(folder.path()) == std::vector<std::string>{"a.plan"});
}

TEST_SUITE_END();

} // namespace

} // namespace test_plan_file_saving
