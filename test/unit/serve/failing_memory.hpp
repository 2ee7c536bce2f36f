#ifndef COACCEL_TEST_UNIT_SERVE_FAILING_MEMORY_HPP
#define COACCEL_TEST_UNIT_SERVE_FAILING_MEMORY_HPP

#include <cstdint>

namespace test {

/// How many allocations of this thread succeed before one fails; negative: no limit.
extern thread_local std::int64_t allocations_left;

} // namespace test

#endif
