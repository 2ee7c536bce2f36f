// async_exec takes ops and seqs of ops.
// expect: no matching (member )?function
// expect: op<Op>|does not satisfy 'op'
#include <coaccel/device/device.hpp>

struct not_an_op {
    int number = 0;
};

void start(coaccel::device gpu)
{
    gpu.async_exec(not_an_op{});
}
