#ifndef COACCEL_TEST_SUPPORT_TEMPORARY_FOLDER_HPP
#define COACCEL_TEST_SUPPORT_TEMPORARY_FOLDER_HPP

#include <doctest/doctest.h>

#include <filesystem>
#include <stdlib.h>
#include <string>
#include <system_error>

namespace test {

/// A folder that the destructor removes.
class temporary_folder {
public:
    temporary_folder()
    {
        auto name = (std::filesystem::temp_directory_path() / "coaccel-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    ~temporary_folder()
    {
        std::error_code ignored;
        std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
        std::filesystem::remove_all(path_, ignored);
    }

    std::string path() const { return path_.string(); }
    std::string operator/(const char* name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

} // namespace test

#endif
