// Discarding a result is an error.
// expect: -Wunused-result|nodiscard
#include <coaccel/core/result.hpp>

#pragma GCC diagnostic error "-Wunused-result"

coaccel::result<int> answer();

void ask()
{
    answer();
}
