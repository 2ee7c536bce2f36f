#include "nvrtc.hpp"
#include "support/devices.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

using namespace coaccel;

/// Allocations of at least this many bytes fail.
std::atomic<std::size_t> refused{SIZE_MAX};

void* allocate(std::size_t bytes) noexcept
{
    return bytes >= refused ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}

struct short_memory {
    explicit short_memory(std::size_t bytes) { refused = bytes; }
    ~short_memory() { refused = SIZE_MAX; }
};

} // namespace

void* operator new(std::size_t bytes)
{
    if (void* memory = allocate(bytes))
        return memory;
    throw std::bad_alloc();
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    return allocate(bytes);
}

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}

TEST_SUITE_BEGIN("jit through a device");

TEST_CASE("a compilation that runs out of memory ends with an error")
{
    if (!test::nvrtc())
        return;
    constexpr std::size_t large = std::size_t(8) << 20;
    const test::temporary_folder folder;
    for (const auto& o : {test::pool_options(), test::inline_options()}) {
        asio::io_context io;
        auto gpu = test::make_device(io, o);
        auto compiling = gpu.async_compile(test::saxpy_source + std::string(large, ' '),
                                           jit::compile_options("saxpy").cache_folder(folder.path()));
        {
            const short_memory while_compiling(large);
            const auto made = test::await(io, std::move(compiling));
            REQUIRE_FALSE(made.has_value());
            CHECK(made.error() == errc::out_of_memory);
        }
        CHECK(test::await(io, gpu.async_compile(test::saxpy_source, jit::compile_options("saxpy"))).has_value());
    }
}

TEST_SUITE_END();
