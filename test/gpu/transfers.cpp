#include "gpu.hpp"

#include <coaccel/core/dtype.hpp>

#include <algorithm>
#include <cstring>
#include <random>

namespace {

using namespace coaccel;
using test::await;
using test::gpu_fixture;

TEST_SUITE_BEGIN("gpu transfers");

// Around the size limits for copies in one step, in one chunk and in several chunks.
constexpr std::size_t byte_counts[] = {
    1, 255, 65536, 65537, 131071, (1u << 20) - 1, 1u << 20, (1u << 20) + 1, (9u << 20) + 13, 100u << 20};

std::vector<std::uint8_t> random_bytes(std::size_t n)
{
    static std::mt19937_64 random(std::random_device{}());
    std::vector<std::uint8_t> bytes(n + 8);
    for (std::size_t i = 0; i < n; i += 8) {
        const std::uint64_t word = random();
        std::memcpy(bytes.data() + i, &word, 8);
    }
    bytes.resize(n);
    return bytes;
}

TEST_CASE("pageable memory of every size is copied to the device and back unchanged")
{
    gpu_fixture f;
    for (const std::size_t n : byte_counts) {
        CAPTURE(n);
        const auto data = random_bytes(n);
        auto up = f.upload(data);
        CHECK(f.download(up.ref()) == data);

        std::vector<std::uint8_t> read(n, 0xee);
        CHECK(await(f.io, f.gpu.async_read(up, read)));
        CHECK(read == data);

        const auto other = random_bytes(n);
        CHECK(await(f.io, f.gpu.async_write(up, other)));
        CHECK(f.download(up.ref()) == other);
    }
}

TEST_CASE("pinned memory is copied to the device and back unchanged")
{
    gpu_fixture f;
    for (const std::size_t n : byte_counts) {
        CAPTURE(n);
        auto pinned = await(f.io, f.gpu.async_alloc_pinned<std::uint8_t>(n));
        REQUIRE(pinned);
        const auto data = random_bytes(n);
        std::ranges::copy(data, pinned.value().begin());
        auto up = await(f.io, f.gpu.async_upload(pinned.value()));
        REQUIRE(up);
        std::ranges::fill(pinned.value(), std::uint8_t{0xee});
        CHECK(await(f.io, f.gpu.async_read(up.value(), pinned.value().span())));
        CHECK(std::ranges::equal(pinned.value(), data));
    }
}

TEST_CASE("concurrent copies do not disturb each other")
{
    gpu_fixture f;
    constexpr std::size_t n = 5u << 20;
    constexpr int count = 12;
    std::vector<std::vector<std::uint8_t>> sent, got(count);
    std::vector<buffer<std::uint8_t>> buffers;
    for (int i = 0; i < count; ++i) {
        sent.push_back(random_bytes(n + static_cast<std::size_t>(i)));
        got[static_cast<std::size_t>(i)].resize(sent.back().size());
        buffers.push_back(f.alloc<std::uint8_t>(sent.back().size()));
    }
    int ended = 0;
    const auto done = [&](error_code ec) {
        CHECK_FALSE(ec);
        ++ended;
    };
    for (std::size_t i = 0; i < count; ++i)
        f.gpu.async_write(buffers[i], std::span<const std::uint8_t>(sent[i]), done);
    for (std::size_t i = 0; i < count; ++i)
        f.gpu.async_read(buffers[i], std::span(got[i]), done);
    test::run_until(f.io, [&] { return ended == 2 * count; });
    CHECK(got == sent);
}

TEST_CASE("an op waits for an upload on another lane that was not awaited")
{
    gpu_fixture f;
    const std::vector<float> ones(3u << 20, 1.0f);
    auto x = f.alloc<float>(ones.size());
    auto y = f.alloc<float>(ones.size());
    int ended = 0;
    const auto done = [&](error_code ec) {
        CHECK_FALSE(ec);
        ++ended;
    };
    f.gpu.async_exec(memory::fill<float>{.dst = y, .value = 2}, done);
    f.gpu.async_write(x, std::span<const float>(ones), done);
    f.gpu.async_exec(blas::axpy<float>{.x = x, .y = y, .n = ones.size(), .alpha = 3}, done);
    f.gpu.async_exec(memory::fill<float>{.dst = x, .value = 9}, done);
    test::run_until(f.io, [&] { return ended == 4; });
    CHECK(f.download(y.ref()) == std::vector<float>(ones.size(), 5.0f));
    CHECK(f.download(x.ref()) == std::vector<float>(ones.size(), 9.0f));
}

TEST_CASE("a large copy of pageable memory does not block the executor")
{
    gpu_fixture f;
    std::vector<std::uint8_t> data(512u << 20, 1);
    auto target = f.alloc<std::uint8_t>(data.size());
    bool ended = false;
    f.gpu.async_write(target, std::span<const std::uint8_t>(data), [&](error_code ec) {
        CHECK_FALSE(ec);
        ended = true;
    });
    // The longest time between two turns of the executor.
    auto longest = std::chrono::steady_clock::duration::zero();
    auto last = std::chrono::steady_clock::now();
    f.io.restart();
    while (!ended) {
        f.io.poll_one();
        const auto now = std::chrono::steady_clock::now();
        longest = std::max(longest, now - last);
        last = now;
    }
    CHECK(longest < std::chrono::milliseconds(10));
}

template <class T>
void check_fill(gpu_fixture& f, T value)
{
    for (const std::size_t n : {1u, 2u, 1023u, 1024u, 1025u, 70001u}) {
        CAPTURE(n);
        const std::vector<T> before(n + 2, T{});
        auto b = f.upload(before);
        CHECK(f.exec(memory::fill<T>{.dst = b.subspan(1, n), .value = value}));
        const auto after = f.download(b.ref());
        std::vector<T> wanted(n + 2, value);
        wanted.front() = wanted.back() = T{};
        CHECK(std::memcmp(after.data(), wanted.data(), wanted.size() * sizeof(T)) == 0);

        auto copy = f.alloc<T>(n + 2);
        CHECK(f.exec(memory::copy<T>{.src = b, .dst = copy}));
        CHECK(std::memcmp(f.download(copy.ref()).data(), wanted.data(), wanted.size() * sizeof(T)) == 0);
    }
}

template <class T>
T odd_value()
{
    T value{};
    for (std::size_t i = 0; i < sizeof(T); ++i)
        reinterpret_cast<unsigned char*>(&value)[i] = static_cast<unsigned char>(0x11 + 0x17 * i);
    return value;
}

template <class... Ts>
void check_fills(gpu_fixture& f, type_list<Ts...>)
{
    (check_fill<Ts>(f, odd_value<Ts>()), ...);
    (check_fill<Ts>(f, Ts{}), ...);
}

TEST_CASE("fill and copy work for every element type")
{
    gpu_fixture f;
    check_fills(f, element_types{});
}

TEST_SUITE_END();

} // namespace
