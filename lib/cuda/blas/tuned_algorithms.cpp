#include "cuda/blas/tuned_algorithms.hpp"

#include <cstring>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace coaccel::cuda {
namespace {

constexpr std::string_view entry_name = "cublasLt algorithm";

static_assert(std::is_trivially_copyable_v<cublasLtMatmulAlgo_t>);

bool is_same(const std::optional<cublasLtMatmulAlgo_t>& one, const cublasLtMatmulAlgo_t& other) noexcept
{
    return one && std::memcmp(&*one, &other, sizeof(other)) == 0;
}

} // namespace

std::optional<cublasLtMatmulAlgo_t> tuned_algorithms::find(const std::string& key)
{
    {
        const std::scoped_lock lock(mutex_);
        if (const auto found = known_.find(key); found != known_.end())
            return found->second.algorithm;
    }
    const auto stored = read(key);
    const std::scoped_lock lock(mutex_);
    make_room();
    return known_.try_emplace(key, entry{.algorithm = stored}).first->second.algorithm;
}

std::optional<cublasLtMatmulAlgo_t> tuned_algorithms::read(const std::string& key) const
{
    const auto stored = files_.find(key);
    if (!stored || stored->symbol != entry_name || stored->code.size() != sizeof(cublasLtMatmulAlgo_t))
        return std::nullopt;
    cublasLtMatmulAlgo_t algorithm;
    std::memcpy(&algorithm, stored->code.data(), sizeof(algorithm));
    return algorithm;
}

void tuned_algorithms::make_room()
{
    if (known_.size() < most_known)
        return;
    known_.clear();
    added_before_removal_ = additions_.load(std::memory_order_relaxed);
}

void tuned_algorithms::add(const std::string& key, const cublasLtMatmulAlgo_t& algorithm)
{
    {
        const std::scoped_lock lock(mutex_);
        make_room();
        const unsigned before = additions_.load(std::memory_order_relaxed);
        known_[key] = {.algorithm = algorithm, .added = before + 1};
        additions_.store(before + 1, std::memory_order_release);
    }
    // Without the file it is found again only in this process.
    (void)files_.store(
        key, {std::string(entry_name), std::string(reinterpret_cast<const char*>(&algorithm), sizeof(algorithm)), {}});
}

void tuned_algorithms::forget(const std::string& key, const cublasLtMatmulAlgo_t& refused) noexcept
try {
    {
        const std::scoped_lock lock(mutex_);
        if (const auto found = known_.find(key); found != known_.end() && is_same(found->second.algorithm, refused))
            found->second.algorithm.reset();
    }
    if (!is_same(read(key), refused))
        return;
    std::error_code ignored;
    std::filesystem::remove(files_.file_of(key), ignored);
} catch (const std::exception&) {
    // It is refused once more, in this process or in a later one.
}

bool tuned_algorithms::added_after(const std::string& key, unsigned additions) const
{
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(key);
    return added_before_removal_ > additions || (found != known_.end() && found->second.added > additions);
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
