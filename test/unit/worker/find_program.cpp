#include "worker/process/find_program.hpp"

#include "posix/trusted_file.hpp"
#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unistd.h>

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using namespace coaccel::worker;
namespace fs = std::filesystem;

struct scratch_folder : test::temporary_folder {
    std::string file(const char* name, fs::perms permissions) const
    {
        const auto made = *this / name;
        std::ofstream(made) << "nothing";
        fs::permissions(made, permissions);
        return made;
    }
};

/// Sets or unsets COACCEL_WORKER during its lifetime.
class variable {
public:
    explicit variable(const char* value)
    {
        if (const auto* old = std::getenv(name))
            old_ = old;
        set(value);
    }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;
    ~variable() { set(old_ ? old_->c_str() : nullptr); }

private:
    static constexpr const char* name = "COACCEL_WORKER";

    static void set(const char* value)
    {
        if (value)
            ::setenv(name, value, 1);
        else
            ::unsetenv(name);
    }

    std::optional<std::string> old_;
};

bool contains(const std::string& text, const std::string& part)
{
    return text.find(part) != std::string::npos;
}

void check_missing(const result<std::string>& found, const std::string& file, const std::string& why)
{
    REQUIRE_FALSE(found);
    const auto message = found.error().message();
    CAPTURE(message);
    CHECK(found.error() == errc::worker_missing);
    CHECK(contains(message, file));
    CHECK(contains(message, why));
}

} // namespace

TEST_SUITE_BEGIN("find_program");

TEST_CASE("the option precedes the environment variable, and the variable precedes the installed program")
{
    const scratch_folder folder;
    const auto one = folder.file("one", fs::perms::owner_all), two = folder.file("two", fs::perms::owner_all);
    const variable v(one.c_str());
    CHECK(find_program(two.c_str()).value() == two);
    CHECK(find_program(nullptr).value() == one);
}

TEST_CASE("a relative program name is made absolute when it is set")
{
    const scratch_folder folder;
    const auto file = folder.file("worker", fs::perms::owner_all);
    const auto before = fs::current_path();
    fs::current_path(fs::path(file).parent_path());
    const auto whole = fs::current_path() / "worker";
    const variable v("worker");
    const auto by_option = name_program("worker"), by_variable = name_program(nullptr);
    fs::current_path(before);
    for (const auto& named : {by_option, by_variable}) {
        REQUIRE(named);
        CHECK(named->file == whole);
        CHECK(find_program(named).value() == whole);
    }
    const variable unset(nullptr);
    CHECK_FALSE(name_program(nullptr));
}

TEST_CASE("a named program that cannot be run is an error with its name and the reason, without a fallback")
{
    const scratch_folder folder;
    const auto good = folder.file("good", fs::perms::owner_all), plain = folder.file("plain", fs::perms::owner_read);
    const auto absent = folder / "absent", itself = folder / ".";
    {
        const variable v(good.c_str());
        check_missing(find_program(absent.c_str()), absent, "No such file");
        check_missing(find_program(plain.c_str()), plain, "Permission denied");
        check_missing(find_program(itself.c_str()), itself, "not a regular file");
        check_missing(find_program(""), "options", "No such file");
    }
    {
        const variable v(absent.c_str());
        check_missing(find_program(nullptr), absent, "COACCEL_WORKER");
    }
}

TEST_CASE("a program that other users can change is refused, and the message has the writable path")
{
    if (trust::of_process(detail::rights::same).everybody) {
        MESSAGE("not checked: everybody can replace this test");
        return;
    }
    const scratch_folder folder;
    const auto file = folder.file("worker", fs::perms::owner_all);
    const variable v(file.c_str());
    fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
    for (const char* option : {file.c_str(), static_cast<const char*>(nullptr)})
        check_missing(find_program(option), file, file + " can be written by everybody");
    fs::permissions(file, fs::perms::owner_all);
    fs::permissions(folder.path(), fs::perms::all);
    check_missing(find_program(nullptr), file, folder.path() + " can be written by everybody");
}

TEST_CASE("without a name the default places are searched, and the error lists all of them")
{
    for (const auto* value : {static_cast<const char*>(nullptr), ""}) {
        const variable v(value);
        const auto found = find_program(nullptr);
        if (found) {
            CHECK(fs::path(found.value()).filename() == "coaccel-worker");
            CHECK(fs::path(found.value()).is_absolute());
            CHECK(::access(found.value().c_str(), X_OK) == 0);
            continue;
        }
        CHECK(found.error() == errc::worker_missing);
        const auto message = found.error().message();
        std::size_t told = 1;
        for (auto at = message.find("; /"); at != std::string::npos; at = message.find("; /", at + 1))
            ++told;
        // Logs show a message on one line.
        CHECK_FALSE(contains(message, "\n"));
        CHECK(told == program_places("/", configured_folders()).size());
    }
}

TEST_CASE("the default places cover installations and build trees, nearest first")
{
    const auto places = program_places("/opt/x/lib", {"/where/it/was/built"});
    CHECK(places.front() == "/opt/x/lib/coaccel-worker");
    const auto at = [&](const char* place) { return std::ranges::find(places, place) - places.begin(); };
    // A program that was installed elsewhere does not use the build tree, and one in a build tree inside another does
    // not use the worker of the outer one.
    CHECK(at("/opt/bin/coaccel-worker") < at("/where/it/was/built/coaccel-worker"));
    CHECK(at("/where/it/was/built/coaccel-worker") < at("/opt/lib/coaccel-worker"));
    const auto none = static_cast<std::ptrdiff_t>(places.size());
    for (const auto* place : {"/opt/x/libexec/coaccel/coaccel-worker", "/opt/x/bin/coaccel-worker",
                              "/opt/x/lib/coaccel/coaccel-worker", "/opt/lib/coaccel-worker", "/lib/coaccel-worker"}) {
        CAPTURE(place);
        CHECK(at(place) < none);
    }
    CHECK(at("/opt/x/libexec/coaccel/coaccel-worker") < at("/opt/x/bin/coaccel-worker"));
    const auto multiarch = program_places("/usr/lib/some-linux-gnu", {});
    CHECK(std::ranges::count(multiarch, "/usr/libexec/coaccel/coaccel-worker") == 1);
    CHECK(std::ranges::count(multiarch, "/usr/bin/coaccel-worker") == 1);
    const auto built = program_places("/b/test/unit/worker", {});
    CHECK(std::ranges::count(built, "/b/lib/coaccel-worker") == 1);
#ifdef COACCEL_TEST_INSTALL_FOLDER
    // A statically linked program may be anywhere.
    CHECK(configured_folders().front() == COACCEL_TEST_INSTALL_FOLDER);
#endif
    // The build folder, which no relative path from the program reaches in a multi-configuration build tree.
    CHECK(fs::exists(fs::path(configured_folders().back()) / "coaccel-worker"));
}

TEST_SUITE_END();
