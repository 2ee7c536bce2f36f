#include "plan/content_hash.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace coaccel::detail {
namespace {

constexpr std::uint64_t c1 = 0x87c37b91114253d5ull;
constexpr std::uint64_t c2 = 0x4cf5ad432745937full;

std::uint64_t mix1(std::uint64_t k) noexcept
{
    return std::rotl(k * c1, 31) * c2;
}

std::uint64_t mix2(std::uint64_t k) noexcept
{
    return std::rotl(k * c2, 33) * c1;
}

std::uint64_t finalize(std::uint64_t k) noexcept
{
    k = (k ^ (k >> 33)) * 0xff51afd7ed558ccdull;
    k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53ull;
    return k ^ (k >> 33);
}

} // namespace

void content_hash::step(const unsigned char* at) noexcept
{
    std::uint64_t k[2];
    std::memcpy(k, at, block);
    h1_ = (std::rotl(h1_ ^ mix1(k[0]), 27) + h2_) * 5 + 0x52dce729;
    h2_ = (std::rotl(h2_ ^ mix2(k[1]), 31) + h1_) * 5 + 0x38495ab5;
}

void content_hash::add_bytes(const void* data, std::size_t bytes) noexcept
{
    if (bytes == 0)
        return;
    const auto* at = static_cast<const unsigned char*>(data);
    if (const std::size_t held = total_ % block; held != 0) {
        const std::size_t taken = std::min(block - held, bytes);
        std::memcpy(rest_ + held, at, taken);
        total_ += taken;
        at += taken;
        bytes -= taken;
        if (held + taken < block)
            return;
        step(rest_);
    }
    total_ += bytes;
    for (; bytes >= block; at += block, bytes -= block)
        step(at);
    if (bytes != 0)
        std::memcpy(rest_, at, bytes);
}

content_id content_hash::finish() const noexcept
{
    std::uint64_t a = h1_;
    std::uint64_t b = h2_;
    std::uint64_t k[2]{};
    std::memcpy(k, rest_, total_ % block);
    a ^= mix1(k[0]) ^ total_;
    b ^= mix2(k[1]) ^ total_;
    a += b;
    b += a;
    a = finalize(a);
    b = finalize(b);
    a += b;
    b += a;
    return {a, b};
}

} // namespace coaccel::detail
