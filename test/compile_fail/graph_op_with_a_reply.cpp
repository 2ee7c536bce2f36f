// A graph returns no replies.
// expect: a graph returns no replies; use store_reply
#include <coaccel/device/device.hpp>
#include <coaccel/ops/blas.hpp>

void record(const coaccel::device& gpu)
{
    (void)gpu.async_record(coaccel::seq(coaccel::blas::dot<float>{}));
}
