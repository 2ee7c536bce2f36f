#include "cuda/jit/disk_cache.hpp"
#include "support.hpp"

#include <csignal>
#include <sys/resource.h>

namespace test_jit_full_disk {

namespace {

using namespace coaccel;
using cuda::disk_cache;

/// While this object exists, no file of this process can grow beyond the limit.
class small_disk {
public:
    explicit small_disk(rlim_t bytes) : told_(std::signal(SIGXFSZ, SIG_IGN))
    {
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
        const rlimit less{bytes, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &less) == 0);
    }
    small_disk(const small_disk&) = delete;
    small_disk& operator=(const small_disk&) = delete;
    ~small_disk()
    {
        (void)::setrlimit(RLIMIT_FSIZE, &before_);
        (void)std::signal(SIGXFSZ, told_);
    }

private:
    void (*told_)(int);
    rlimit before_{};
};

TEST_SUITE_BEGIN("cuda::disk_cache full");

TEST_CASE("a full disk stores nothing, and no partial file is left behind")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), 1 << 20);
    const jit::compiled_code code{"symbol", std::string(1000, 'x'), "log"};
    {
        const small_disk full(100);
        CHECK_FALSE(cache.store("key", code));
    }
    CHECK_FALSE(cache.find("key").has_value());
    CHECK(test::count_files(folder.path()) == 0);
    CHECK(cache.store("key", code));
    REQUIRE(cache.find("key").has_value());
    CHECK(cache.find("key")->code == code.code);
}

TEST_SUITE_END();

} // namespace

} // namespace test_jit_full_disk
