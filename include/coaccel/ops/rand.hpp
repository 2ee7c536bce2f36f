#ifndef COACCEL_OPS_RAND_HPP
#define COACCEL_OPS_RAND_HPP

#include <coaccel/ops/rand/distributions.hpp>
#include <coaccel/ops/rand/generator.hpp>

#endif
