#ifndef COACCEL_TEST_UNIT_CUDA_CACHE_FOLDER_HPP
#define COACCEL_TEST_UNIT_CUDA_CACHE_FOLDER_HPP

#include "posix/environment.hpp"
#include "support/temporary_folder.hpp"

#include <filesystem>
#include <stdlib.h>
#include <string>
#include <system_error>
#include <vector>

namespace test {

/// While this object exists, contexts keep tuned algorithms and compiled kernels in a folder of its own. One at a time.
class cache_folder {
public:
    cache_folder() { set(folder_.path().c_str()); }
    cache_folder(const cache_folder&) = delete;
    cache_folder& operator=(const cache_folder&) = delete;
    ~cache_folder()
    {
        ::unsetenv(variable);
        (void)coaccel::detail::copy_environment();
    }

    std::string path() const { return folder_.path(); }

    /// From now on, new contexts have a folder in which no file can be made.
    void lose() { set("/dev/null/algorithms"); }

    /// Those of tuned algorithms.
    std::vector<std::string> files() const
    {
        std::vector<std::string> found;
        std::error_code none;
        for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/algorithms", none))
            found.push_back(entry.path().string());
        return found;
    }

private:
    static constexpr const char* variable = "COACCEL_CACHE_DIR";

    static void set(const char* value)
    {
        ::setenv(variable, value, 1);
        (void)coaccel::detail::copy_environment();
    }

    temporary_folder folder_;
};

} // namespace test

#endif
