#include "support/fake_cuda_state.hpp"

#include <algorithm>
#include <cstring>

namespace test {

using state = fake_cuda::state;

CUresult state::module_load(CUmodule* made, const void* image)
{
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    *made = make_handle<CUmodule>();
    modules.emplace(*made, current());
    return CUDA_SUCCESS;
}

CUresult state::module_unload(CUmodule m)
{
    if (!modules.erase(m)) {
        violate("cuModuleUnload of an unknown module");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    for (const auto& [handle, graph] : executables)
        for (const auto& i : graph->items)
            if (const auto f = functions.find(i.function); f != functions.end() && f->second.module == m)
                violate("cuModuleUnload while an executable graph contains " + f->second.name);
    std::erase_if(functions, [&](auto& f) { return f.second.module == m; });
    return CUDA_SUCCESS;
}

CUresult state::module_function(CUfunction* found, CUmodule m, const char* name)
{
    if (!modules.contains(m)) {
        violate("cuModuleGetFunction of an unknown module");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!kernels.contains(name))
        return CUDA_ERROR_NOT_FOUND;
    for (const auto& [handle, f] : functions)
        if (f.module == m && f.name == name) {
            *found = handle;
            return CUDA_SUCCESS;
        }
    *found = make_handle<CUfunction>();
    functions.emplace(*found, function{m,
                                       name,
                                       {{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
                                        {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152},
                                        {CU_FUNC_ATTRIBUTE_NUM_REGS, 32},
                                        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, 90}}});
    return CUDA_SUCCESS;
}

CUresult state::function_get(int* value, CUfunction_attribute a, CUfunction f)
{
    const auto found = functions.find(f);
    if (found == functions.end()) {
        violate("cuFuncGetAttribute of an unknown function");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto set = found->second.attributes.find(a);
    *value = set == found->second.attributes.end() ? 0 : set->second;
    return CUDA_SUCCESS;
}

CUresult state::function_set(CUfunction f, CUfunction_attribute a, int value)
{
    const auto found = functions.find(f);
    if (found == functions.end()) {
        violate("cuFuncSetAttribute of an unknown function");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
        (value < 0 || value > attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)))
        return CUDA_ERROR_INVALID_VALUE;
    found->second.attributes[a] = value;
    return CUDA_SUCCESS;
}

CUresult state::parameter_info(CUfunction f, std::size_t index, std::size_t* offset, std::size_t* size)
{
    const auto found = functions.find(f);
    if (found == functions.end()) {
        violate("cuFuncGetParamInfo of an unknown function");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto& sizes = kernels.at(found->second.name).sizes;
    if (index >= sizes.size())
        return CUDA_ERROR_INVALID_VALUE;
    std::size_t at = 0;
    for (std::size_t i = 0;; ++i) {
        // Each parameter is aligned to the largest power of two that divides its size, at most 16.
        const std::size_t to = std::min<std::size_t>(sizes[i] & (~sizes[i] + 1), 16);
        at = (at + to - 1) / to * to;
        if (i == index)
            break;
        at += sizes[i];
    }
    *offset = at;
    if (size)
        *size = sizes[index];
    return CUDA_SUCCESS;
}

CUresult state::make_launch(CUfunction f, const launch& how, void** parameters, void** extra,
                            std::function<void()>& run)
{
    const auto found = functions.find(f);
    if (found == functions.end()) {
        violate("launch of an unknown function");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto [gx, gy, gz] = how.grid;
    const auto [bx, by, bz] = how.block;
    auto out_of = [&](unsigned n, CUdevice_attribute limit) {
        return n == 0 || n > static_cast<unsigned>(attribute(limit));
    };
    auto& own = found->second.attributes;
    if (extra || out_of(gx, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) || out_of(gy, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) ||
        out_of(gz, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) || out_of(bx, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
        out_of(by, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) || out_of(bz, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) ||
        std::uint64_t(bx) * by * bz > static_cast<unsigned>(own[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK]) ||
        how.shared_bytes > static_cast<unsigned>(own[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]))
        return CUDA_ERROR_INVALID_VALUE;

    const auto& k = kernels.at(found->second.name);
    if (!k.sizes.empty() && !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    // As with the real driver, the caller's arguments need not outlive the call.
    std::vector<std::vector<std::max_align_t>> values;
    for (std::size_t i = 0; i < k.sizes.size(); ++i) {
        values.emplace_back(k.sizes[i] / sizeof(std::max_align_t) + 1);
        std::memcpy(values.back().data(), parameters[i], k.sizes[i]);
    }
    run = [how, body = k.run, values = std::move(values)]() mutable {
        std::vector<void*> arguments;
        for (auto& v : values)
            arguments.push_back(v.data());
        body(how, arguments.data());
    };
    return CUDA_SUCCESS;
}

CUresult state::launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, CUstream s, void** parameters, void** extra)
{
    auto* where = find_stream(s, "cuLaunchKernel");
    if (!where)
        return CUDA_ERROR_INVALID_HANDLE;
    std::function<void()> run;
    if (const CUresult r = make_launch(f, {{gx, gy, gz}, {bx, by, bz}, shared}, parameters, extra, run);
        r != CUDA_SUCCESS)
        return r;
    const CUresult r = push(*where, std::move(run), true);
    if (r == CUDA_SUCCESS && where->capture)
        where->capture->items.back().function = f;
    return r;
}

CUresult state::best_block(int* grid, int* block, CUfunction f, CUoccupancyB2DSize, std::size_t, int limit)
{
    const auto found = functions.find(f);
    if (found == functions.end()) {
        violate("cuOccupancyMaxPotentialBlockSize of an unknown function");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const int most = found->second.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
    *block = limit > 0 ? std::min(limit, most) : most;
    *grid = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
            (attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / *block);
    return CUDA_SUCCESS;
}

CUresult state::active_blocks(int* count, CUfunction f, int block, std::size_t)
{
    if (!functions.contains(f)) {
        violate("cuOccupancyMaxActiveBlocksPerMultiprocessor of an unknown function");
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (block <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *count = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / block;
    return CUDA_SUCCESS;
}

} // namespace test
