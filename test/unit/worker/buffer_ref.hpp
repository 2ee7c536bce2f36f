#ifndef COACCEL_TEST_UNIT_WORKER_BUFFER_REF_HPP
#define COACCEL_TEST_UNIT_WORKER_BUFFER_REF_HPP

#include "support/context_driver.hpp"

namespace test {

/// A ref to a whole buffer in the generation of a context_driver.
inline coaccel::any_ref buffer_ref(std::uint32_t device, std::uint32_t slot, std::uint64_t size,
                                   coaccel::dtype type = coaccel::dtype::f32)
{
    return {.device = device,
            .generation = context_driver::generation,
            .slot = slot,
            .version = 1,
            .offset = 0,
            .size = size,
            .type = type};
}

} // namespace test

#endif
