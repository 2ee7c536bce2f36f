#include "cuda/blas/tuned_algorithms.hpp"

#include <cstring>
#include <string_view>
#include <type_traits>

namespace coaccel::cuda {
namespace {

constexpr std::string_view entry_name = "cublasLt algorithm";

static_assert(std::is_trivially_copyable_v<cublasLtMatmulAlgo_t>);

} // namespace

std::optional<cublasLtMatmulAlgo_t> tuned_algorithms::find(const std::string& key)
{
    {
        const std::scoped_lock lock(mutex_);
        if (const auto found = known_.find(key); found != known_.end())
            return found->second;
    }
    std::optional<cublasLtMatmulAlgo_t> read;
    if (const auto stored = files_.find(key);
        stored && stored->symbol == entry_name && stored->code.size() == sizeof(cublasLtMatmulAlgo_t)) {
        read.emplace();
        std::memcpy(&*read, stored->code.data(), sizeof(*read));
    }
    const std::scoped_lock lock(mutex_);
    if (known_.size() >= most_known)
        known_.clear();
    return known_.try_emplace(key, read).first->second;
}

void tuned_algorithms::add(const std::string& key, const cublasLtMatmulAlgo_t& algorithm)
{
    {
        const std::scoped_lock lock(mutex_);
        if (known_.size() >= most_known)
            known_.clear();
        known_[key] = algorithm;
    }
    additions_.fetch_add(1, std::memory_order_acq_rel);
    // Without the file it is found again only in this process.
    (void)files_.store(
        key, {std::string(entry_name), std::string(reinterpret_cast<const char*>(&algorithm), sizeof(algorithm)), {}});
}

std::string key_of(const lt_problem& p, const std::string& gpu, int version, std::size_t workspace_bytes)
{
    std::string key = "cublasLt " + std::to_string(version) + " on " + gpu;
    const auto add = [&key](auto value) {
        if constexpr (std::is_enum_v<decltype(value)>)
            key += " " + std::to_string(static_cast<long long>(value));
        else
            key += " " + std::to_string(value);
    };
    for (const lt_matrix* m : {&p.a, &p.b, &p.c, &p.d}) {
        add(m->type);
        add(m->rows);
        add(m->cols);
        add(m->ld);
        add(m->stride);
        add(m->alignment);
    }
    add(p.trans_a);
    add(p.trans_b);
    add(p.batch);
    add(p.compute);
    add(p.scale_type);
    add(p.pointers);
    add(p.epilogue);
    add(p.has_bias() ? p.bias_type : cudaDataType_t());
    add(p.bias_alignment);
    add(p.scales);
    add(int(p.scaled_d));
    add(int(p.wants_amax));
    add(workspace_bytes);
    return key;
}

} // namespace coaccel::cuda
