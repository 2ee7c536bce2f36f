#include "cuda/jit/disk_cache.hpp"

#include "posix/environment.hpp"
#include "support.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace test_jit_disk_cache {

namespace {

using namespace coaccel;
using cuda::disk_cache;
namespace fs = std::filesystem;

constexpr std::uint64_t plenty = 1 << 20;

jit::compiled_code some_code(std::string text = "machine code")
{
    return {"symbol", std::move(text), "log"};
}

bool holds(const disk_cache& cache, const std::string& key, const std::string& code = "machine code")
{
    const auto found = cache.find(key);
    return found && found->code == code && found->symbol == "symbol" && found->log == "log" && found->from_cache;
}

class variable {
public:
    variable(const char* name, const char* value) : name_(name)
    {
        if (const char* old = ::getenv(name))
            old_ = old;
        set(value);
    }
    ~variable() { set(old_ ? old_->c_str() : nullptr); }

private:
    void set(const char* value) const
    {
        value ? ::setenv(name_, value, 1) : ::unsetenv(name_);
        (void)detail::copy_environment();
    }

    const char* name_;
    std::optional<std::string> old_;
};

} // namespace

TEST_SUITE_BEGIN("cuda::disk_cache");

TEST_CASE("a stored entry is found only by its own key")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder / "a/b", plenty);
    CHECK_FALSE(cache.find("key").has_value());
    REQUIRE(cache.store("key", some_code()));
    CHECK(holds(cache, "key"));
    CHECK_FALSE(cache.find("other").has_value());
    CHECK(holds(disk_cache(folder / "a/b", plenty), "key"));
    REQUIRE(cache.store("key", some_code("replaced")));
    CHECK(holds(cache, "key", "replaced"));
    CHECK(test::count_files(folder / "a/b") == 1);
}

TEST_CASE("all byte values survive a round trip")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), plenty);
    std::string every;
    for (int i = 0; i < 1024; ++i)
        every.push_back(static_cast<char>(i));
    REQUIRE(cache.store(every, some_code(every)));
    CHECK(holds(cache, every, every));
}

TEST_CASE("files and folders are private")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder / "a/b", plenty);
    REQUIRE(cache.store("key", some_code()));
    struct stat s = {};
    REQUIRE(::stat(cache.file_of("key").c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0600);
    REQUIRE(::stat((folder / "a").c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0700);
}

TEST_CASE("a file of another key under the same name is a miss")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), plenty);
    REQUIRE(cache.store("one", some_code()));
    fs::rename(cache.file_of("one"), cache.file_of("two"));
    CHECK_FALSE(cache.find("two").has_value());
    REQUIRE(cache.store("two", some_code("right")));
    CHECK(holds(cache, "two", "right"));
}

TEST_CASE("a file with a changed byte or a wrong length is a miss")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), plenty);
    REQUIRE(cache.store("key", some_code()));
    const auto path = cache.file_of("key");
    const auto good = test::read_file(path);
    for (std::size_t i = 0; i < good.size(); ++i) {
        for (const unsigned char flip : {0x01, 0x80, 0xff}) {
            auto bad = good;
            bad[i] = static_cast<char>(bad[i] ^ flip);
            test::write_file(path, bad);
            CAPTURE(i);
            CHECK_FALSE(cache.find("key").has_value());
        }
        test::write_file(path, good.substr(0, i));
        CHECK_FALSE(cache.find("key").has_value());
    }
    test::write_file(path, good + '\0');
    CHECK_FALSE(cache.find("key").has_value());
    test::write_file(path, good);
    CHECK(holds(cache, "key"));
}

TEST_CASE("garbage in a file is replaced")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), plenty);
    test::write_file(cache.file_of("key"), std::string(5000, '\xff'));
    CHECK_FALSE(cache.find("key").has_value());
    REQUIRE(cache.store("key", some_code()));
    CHECK(holds(cache, "key"));
}

TEST_CASE("a file that others can write to is a miss, and so is a link")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), plenty);
    REQUIRE(cache.store("key", some_code()));
    const auto path = cache.file_of("key");
    REQUIRE(::chmod(path.c_str(), 0666) == 0);
    CHECK_FALSE(cache.find("key").has_value());
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    CHECK(holds(cache, "key"));

    fs::rename(path, folder / "elsewhere");
    fs::create_symlink(folder / "elsewhere", path);
    CHECK_FALSE(cache.find("key").has_value());
    // Storing replaces the link and does not change its target.
    REQUIRE(cache.store("key", some_code("new")));
    CHECK(holds(cache, "key", "new"));
    CHECK(fs::is_regular_file(fs::symlink_status(path)));

    if (::geteuid() == 0) {
        REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
        CHECK_FALSE(cache.find("key").has_value());
    }
}

TEST_CASE("a folder or a pipe in place of a file is a miss")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), plenty);
    fs::create_directory(cache.file_of("key"));
    CHECK_FALSE(cache.find("key").has_value());
    CHECK_FALSE(cache.store("key", some_code()));
    CHECK(test::count_files(folder.path()) == 1);
    REQUIRE(::mkfifo(cache.file_of("pipe").c_str(), 0600) == 0);
    CHECK_FALSE(cache.find("pipe").has_value());
}

TEST_CASE("a cache in an unusable folder stores nothing")
{
    const test::temporary_folder folder;
    test::write_file(folder / "file", "");
    CHECK_FALSE(disk_cache(folder / "file", plenty).store("key", some_code()));
    CHECK_FALSE(disk_cache(folder / "file/below", plenty).store("key", some_code()));
    CHECK_FALSE(disk_cache(folder / "file", plenty).find("key").has_value());
    CHECK_FALSE(disk_cache("", plenty).store("key", some_code()));
    CHECK_FALSE(disk_cache("", plenty).find("key").has_value());
    CHECK_FALSE(disk_cache("/proc/none/jit", plenty).store("key", some_code()));
    // root may write anywhere
    if (::geteuid() != 0) {
        REQUIRE(::chmod(folder.path().c_str(), 0500) == 0);
        CHECK_FALSE(disk_cache(folder.path(), plenty).store("key", some_code()));
    }
}

TEST_CASE("an entry above the size limit is not stored, and evicts no other")
{
    const test::temporary_folder folder;
    REQUIRE(disk_cache(folder.path(), plenty).store("key", some_code()));
    CHECK_FALSE(disk_cache(folder.path(), 0).store("other", some_code()));
    CHECK_FALSE(disk_cache(folder.path(), 100).store("other", some_code(std::string(200, 'x'))));
    CHECK(holds(disk_cache(folder.path(), 0), "key"));
}

TEST_CASE("the least recently used file is evicted first")
{
    using namespace std::chrono_literals;
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), 3500);
    const std::string kilobyte(1000, 'x');
    const auto now = fs::file_time_type::clock::now();
    for (const char* key : {"a", "b", "c"}) {
        REQUIRE(cache.store(key, some_code(kilobyte)));
        fs::last_write_time(cache.file_of(key), now - std::chrono::hours(1 + *key - 'a'));
    }
    test::write_file(folder / "not ours", std::string(100000, 'x'));
    // c is the oldest, but this use makes it the newest, so b is removed.
    CHECK(holds(cache, "c", kilobyte));
    REQUIRE(cache.store("d", some_code(kilobyte)));
    CHECK(holds(cache, "a", kilobyte));
    CHECK_FALSE(cache.find("b").has_value());
    CHECK(holds(cache, "c", kilobyte));
    CHECK(holds(cache, "d", kilobyte));
    CHECK(fs::exists(folder / "not ours"));
}

TEST_CASE("old partial files are removed")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), plenty);
    const auto old = cache.file_of("x") + ".1.2.3.part";
    const auto fresh = cache.file_of("x") + ".4.5.6.part";
    test::write_file(old, "half");
    test::write_file(fresh, "half");
    fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
    REQUIRE(cache.store("key", some_code()));
    CHECK_FALSE(fs::exists(old));
    CHECK(fs::exists(fresh));
}

TEST_CASE("foreign files with similar names are neither removed nor counted")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), 3500);
    const std::string digits(32, 'a');
    const std::string names[] = {
        "download.part",
        "my.kernel",
        ".kernel",
        ".part",
        digits,
        digits + "a.kernel",
        digits.substr(1) + ".kernel",
        std::string(32, 'A') + ".kernel",
        std::string(32, 'g') + ".kernel",
        "x" + digits + ".kernel",
        digits + ".kernel.part",
        digits + ".kernel.1.2.part",
        digits + ".kernel.1.2.3.4.part",
        digits + ".kernel.1..3.part",
        digits + ".kernel.1.2.x.part",
        digits + ".1.2.3.part",
        "my.kernel.1.2.3.part",
    };
    const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(24);
    for (const auto& name : names) {
        test::write_file(folder / name.c_str(), std::string(1000, 'x'));
        fs::last_write_time(folder / name.c_str(), long_ago);
    }
    for (const char* key : {"a", "b", "c"})
        REQUIRE(cache.store(key, some_code(std::string(1000, 'x'))));
    for (const char* key : {"a", "b", "c"})
        CHECK(holds(cache, key, std::string(1000, 'x')));
    REQUIRE(cache.store("d", some_code(std::string(1000, 'x'))));
    for (const auto& name : names) {
        CAPTURE(name);
        CHECK(fs::exists(folder / name.c_str()));
    }
    CHECK(test::count_files(folder.path()) == std::size(names) + 3);
}

TEST_CASE("threads that store and find the same key never see a partial file")
{
    const test::temporary_folder folder;
    const std::string code(50000, 'x');
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            const disk_cache cache(folder.path(), plenty);
            for (int i = 0; i < 50; ++i) {
                wrong += !cache.store("key", some_code(code));
                wrong += !holds(cache, "key", code);
            }
        });
    for (auto& t : threads)
        t.join();
    CHECK(wrong == 0);
    CHECK(test::count_files(folder.path()) == 1);
}

TEST_CASE("the default folder comes from the environment")
{
    const variable own("COACCEL_CACHE_DIR", "/own");
    const variable xdg("XDG_CACHE_HOME", "/xdg");
    const variable home("HOME", "/home/me");
    CHECK(disk_cache::default_folder() == "/own");
    const variable no_own("COACCEL_CACHE_DIR", nullptr);
    CHECK(disk_cache::default_folder() == "/xdg/coaccel/jit");
    const variable relative("XDG_CACHE_HOME", "relative");
    CHECK(disk_cache::default_folder() == "/home/me/.cache/coaccel/jit");
    const variable no_home("HOME", nullptr);
    CHECK(disk_cache::default_folder().empty());
}

TEST_SUITE_END();

} // namespace test_jit_disk_cache
