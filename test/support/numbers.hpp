#ifndef COACCEL_TEST_SUPPORT_NUMBERS_HPP
#define COACCEL_TEST_SUPPORT_NUMBERS_HPP

#include <cstddef>
#include <numeric>
#include <vector>

namespace test {

/// 1, 2, 3, ...
inline std::vector<float> numbers(std::size_t count)
{
    std::vector<float> made(count);
    std::iota(made.begin(), made.end(), 1.0f);
    return made;
}

} // namespace test

#endif
