#include "ours.hpp"

namespace coaccel::bench {

our_gpu::our_gpu(const std::string& cache_folder, const device_options& options)
{
    device_options o = options;
    o.kind = device_kind::cuda;
    gpu_ = get<device>(device::async_create(io_.get_executor(), o));
    jit::compile_options how("empty");
    how.cache_folder(cache_folder);
    kernel_ = get<jit::kernel>(gpu_.async_compile("extern \"C\" __global__ void empty() {}", std::move(how)));
}

our_gpu::~our_gpu()
{
    try {
        get<void>(gpu_.async_shutdown(shutdown::abandon));
    } catch (const std::exception&) {
    }
}

} // namespace coaccel::bench
