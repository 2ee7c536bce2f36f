#ifndef COACCEL_TEST_FUZZ_SEEDS_HPP
#define COACCEL_TEST_FUZZ_SEEDS_HPP

#include "input.hpp"

#include <coaccel/core/ref.hpp>

namespace fuzz {

/// The first buffer in its slot.
inline coaccel::any_ref buffer(std::uint32_t slot, std::uint64_t size, coaccel::dtype type = coaccel::dtype::f32)
{
    return {.device = device,
            .generation = generation,
            .slot = slot,
            .version = 1,
            .offset = 0,
            .size = size,
            .type = type};
}

/// Records by which a worker is adopted and allocates three buffers.
std::vector<bytes> opening();

/// Valid sessions with every message type and kind of op that is sent to a worker.
std::vector<script> request_seeds();

/// Valid files with plans and sets of plans.
std::vector<script> plan_file_seeds();

/// Valid requests to the inference server.
std::vector<script> http_seeds();

} // namespace fuzz

#endif
