#include "cuda/rand/generators.hpp"

#include "cuda/backend.hpp"
#include "cuda/driver/error.hpp"
#include "cuda/rand/curand_error.hpp"
#include "rand/sequence.hpp"

#include <algorithm>
#include <utility>

namespace coaccel::cuda {
namespace {

constexpr curandRngType_t type_of(rand::algorithm a) noexcept
{
    switch (a) {
    case rand::algorithm::philox: return CURAND_RNG_PSEUDO_PHILOX4_32_10;
    case rand::algorithm::mt19937: return CURAND_RNG_PSEUDO_MT19937;
    case rand::algorithm::xorwow: return CURAND_RNG_PSEUDO_XORWOW;
    case rand::algorithm::mrg32k3a: return CURAND_RNG_PSEUDO_MRG32K3A;
    case rand::algorithm::sobol32: return CURAND_RNG_QUASI_SOBOL32;
    case rand::algorithm::scrambled_sobol32: return CURAND_RNG_QUASI_SCRAMBLED_SOBOL32;
    case rand::algorithm::sobol64: return CURAND_RNG_QUASI_SOBOL64;
    case rand::algorithm::scrambled_sobol64: return CURAND_RNG_QUASI_SCRAMBLED_SOBOL64;
    }
    return CURAND_RNG_TEST;
}

constexpr curandOrdering_t order_of(const rand::generator_options& o) noexcept
{
    if (rand::is_quasi_random(o.algorithm))
        return CURAND_ORDERING_QUASI_DEFAULT;
    switch (o.ordering) {
    case rand::ordering::standard: break;
    case rand::ordering::legacy: return CURAND_ORDERING_PSEUDO_LEGACY;
    case rand::ordering::seeded: return CURAND_ORDERING_PSEUDO_SEEDED;
    case rand::ordering::dynamic: return CURAND_ORDERING_PSEUDO_DYNAMIC;
    }
    // The CPU produces this order, which does not change with the version.
    return o.algorithm == rand::algorithm::philox ? CURAND_ORDERING_PSEUDO_LEGACY : CURAND_ORDERING_PSEUDO_DEFAULT;
}

unsigned long long seed_of(const rand::generator_options& o) noexcept
{
    if (o.algorithm != rand::algorithm::mt19937)
        return o.seed;
    // cuRAND uses only the lower half for this generator. Seeds of 32 bits stay as they are.
    return static_cast<std::uint32_t>(o.seed ^ (o.seed >> 32) * 0x9e3779b1u);
}

curandStatus_t set_up(const curand_api& api, curandGenerator_t g, const rand::generator_options& o, CUstream s)
{
    auto status = api.curandSetStream(g, s);
    if (status == CURAND_STATUS_SUCCESS)
        status = api.curandSetGeneratorOrdering(g, order_of(o));
    if (status == CURAND_STATUS_SUCCESS)
        status = rand::is_quasi_random(o.algorithm) ? api.curandSetQuasiRandomGeneratorDimensions(g, o.dimensions)
                                                    : api.curandSetPseudoRandomGeneratorSeed(g, seed_of(o));
    if (status == CURAND_STATUS_SUCCESS && o.offset != 0)
        status = api.curandSetGeneratorOffset(g, o.offset);
    if (status == CURAND_STATUS_SUCCESS)
        status = api.curandGenerateSeeds(g);
    return status;
}

} // namespace

generator_state& generators::find(const rand::generator& g)
{
    if (auto* known = all_.find(g.id()))
        return *known;
    all_.make_room(rand::most_generators, [this](generator_state& old) { return drop(old); });
    return all_.add({.id = g.id(), .position = g.options().offset, .own_position = g.options().offset});
}

void generators::retired::destroy() noexcept
{
    for (const auto handle : handles)
        if (handle)
            (void)api->curandDestroyGenerator(handle);
    gone.store(true, std::memory_order_release);
}

bool generators::drop(generator_state& g)
{
    if (g.busy)
        return false;
    std::erase_if(retired_, [](const auto& r) { return r->gone.load(std::memory_order_acquire); });
    auto old = std::make_shared<retired>(g);
    retired_.push_back(old);
    // Destroying a generator waits for the whole device, so it is done on the thread pool.
    const bool started = backend_.helpers().run([b = &backend_, old] {
        if (!b->dead())
            old->destroy();
    });
    if (!started) {
        retired_.pop_back();
        return false;
    }
    release_scratch(g);
    return true;
}

std::size_t generators::count() const noexcept
{
    return static_cast<std::size_t>(
        std::ranges::count_if(all_, [](const generator_state& g) { return g.handle != nullptr && !g.busy; }));
}

error_code generators::create(backend& b, generator_state& g, const rand::generator_options& options)
{
    auto table = b.libraries().get<curand_api>();
    if (!table)
        return table.error();
    if (b.dead())
        return errc::context_lost;
    g.api = table.value();
    if (g.replaced)
        (void)g.api->curandDestroyGenerator(std::exchange(g.replaced, nullptr));
    curandGenerator_t made = nullptr;
    auto status = g.api->curandCreateGenerator(&made, type_of(options.algorithm));
    if (status == CURAND_STATUS_SUCCESS) {
        status = set_up(*g.api, made, options, g.stream);
        if (status == CURAND_STATUS_SUCCESS)
            g.handle = made;
        else if (!b.dead())
            (void)g.api->curandDestroyGenerator(made);
    }
    return make_error(status);
}

error_code generators::use_on(generator_state& g, CUstream s)
{
    if (g.stream == s)
        return {};
    if (auto ec = check(g, g.api->curandSetStream(g.handle, s)))
        return ec;
    g.stream = s;
    return {};
}

result<bool> generators::reserve_scratch(generator_state& g, std::size_t bytes)
{
    if (g.scratch_bytes >= bytes)
        return true;
    release_scratch(g);
    BOOST_OUTCOME_TRY(g.scratch, backend_.buffers().allocate(g.stream, bytes, memory_kind::device));
    if (g.scratch)
        g.scratch_bytes = bytes;
    return g.scratch != nullptr;
}

void generators::release_scratch(generator_state& g) noexcept
{
    if (const auto bytes = std::exchange(g.scratch_bytes, 0))
        (void)backend_.check(
            backend_.buffers().release(g.stream, std::exchange(g.scratch, nullptr), bytes, memory_kind::device));
}

error_code generators::check(generator_state& g, curandStatus_t status) noexcept
{
    if (status == CURAND_STATUS_SUCCESS)
        return {};
    g.own_position = generator_state::unknown_position;
    // On a dead context cuRAND may return any status, so ask the driver.
    if (!backend_.dead()) {
        const CUresult r = backend_.api().cuStreamQuery(g.stream);
        if (is_sticky(r))
            return backend_.check(r);
    }
    if (status == CURAND_STATUS_NOT_INITIALIZED || status == CURAND_STATUS_INTERNAL_ERROR ||
        status == CURAND_STATUS_INITIALIZATION_FAILED) {
        g.replaced = std::exchange(g.handle, nullptr);
        g.fresh = true;
    }
    return make_error(status);
}

void generators::destroy() noexcept
{
    for (const auto& r : retired_)
        if (!r->gone.load(std::memory_order_acquire))
            r->destroy();
    retired_.clear();
    for (generator_state& g : all_) {
        retired(g).destroy();
        release_scratch(g);
    }
    all_.clear();
}

} // namespace coaccel::cuda
