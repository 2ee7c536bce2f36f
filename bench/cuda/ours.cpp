#include "ours.hpp"

namespace coaccel::bench {
namespace {

device_options on_cuda(device_options o)
{
    o.kind = device_kind::cuda;
    return o;
}

} // namespace

our_gpu::our_gpu(const std::string& cache_folder, const device_options& options) : one_device(on_cuda(options))
{
    jit::compile_options how("empty");
    how.cache_folder(cache_folder);
    kernel_ = get<jit::kernel>(gpu().async_compile("extern \"C\" __global__ void empty() {}", std::move(how)));
}

} // namespace coaccel::bench
