#ifndef COACCEL_TEST_UNIT_WORKER_MUTATOR_HPP
#define COACCEL_TEST_UNIT_WORKER_MUTATOR_HPP

#include "worker/protocol/wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace test {

using bytes = std::vector<std::byte>;
using generator = std::mt19937_64;

/// The time for one test case, out of two seconds for all of them or as many as the environment says. One case calls
/// this with 1 and five with 4, for a whole part and for a quarter of one.
inline std::chrono::steady_clock::duration fuzz_time(int share)
{
    constexpr double parts = 1 + 5 / 4.0;
    const char* const seconds = std::getenv("COACCEL_FUZZ_SECONDS");
    const double wanted = seconds != nullptr ? std::atof(seconds) : 0;
    return std::chrono::milliseconds(static_cast<std::int64_t>((wanted > 0 ? wanted : 2) * 1000 / parts)) / share;
}

inline void mutate_once(bytes& r, generator& random, const std::vector<bytes>& others)
{
    static constexpr std::uint64_t interesting[] = {0,
                                                    1,
                                                    7,
                                                    8,
                                                    63,
                                                    64,
                                                    65,
                                                    127,
                                                    255,
                                                    4095,
                                                    4096,
                                                    65535,
                                                    0x7fffffff,
                                                    0x80000000,
                                                    coaccel::worker::made_here,
                                                    0x7fffffffffffffff,
                                                    0x8000000000000000,
                                                    0xfffffffffffffff8,
                                                    0xffffffffffffffff};
    const auto any_place = [&] { return r.empty() ? 0 : random() % r.size(); };
    const auto number = interesting[random() % std::size(interesting)];
    switch (random() % 8) {
    case 0:
        if (!r.empty())
            r[any_place()] ^= std::byte(1 << random() % 8);
        break;
    case 1:
        if (!r.empty())
            r[any_place()] = static_cast<std::byte>(random());
        break;
    case 2:
    case 3: {
        const std::size_t width = std::size_t(1) << random() % 4;
        if (r.size() >= width)
            std::memcpy(r.data() + random() % (r.size() - width + 1), &number, width);
        break;
    }
    case 4: r.resize(any_place()); break;
    case 5: r.resize(r.size() + 1 + random() % 16, static_cast<std::byte>(random())); break;
    case 6: {
        const bytes& other = others[random() % others.size()];
        const auto at = any_place();
        r.resize(at);
        r.insert(r.end(), other.begin() + static_cast<std::ptrdiff_t>(std::min(at, other.size())), other.end());
        break;
    }
    default: {
        const auto from = any_place(), to = any_place();
        const auto n = std::min<std::size_t>(8, r.size() - std::max(from, to));
        std::memmove(r.data() + to, r.data() + from, n);
    }
    }
}

inline bytes mutated(bytes r, generator& random, const std::vector<bytes>& others)
{
    for (auto n = random() % 4; n > 0; --n)
        mutate_once(r, random, others);
    if (r.empty())
        r.push_back(std::byte{0});
    return r;
}

} // namespace test

#endif
