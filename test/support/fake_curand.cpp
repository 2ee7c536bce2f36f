#include "support/fake_curand.hpp"

#include "rand/philox.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace test {

struct fake_curand::state {
    struct generator {
        curandRngType_t type{};
        CUstream stream = nullptr;
        std::uint64_t seed = 0;
        std::uint64_t position = 0;
    };

    fake_cuda& driver;
    coaccel::cuda::curand_api table{};
    mutable std::mutex mutex{};
    std::uintptr_t next_handle = 0x7a4d0000;
    std::map<curandGenerator_t, generator> generators{};
    std::map<std::string, curandStatus_t, std::less<>> failures{};
    std::vector<call> calls{};

    curandStatus_t begin(std::string_view function, curandGenerator_t g, unsigned long long value)
    {
        call made{std::string(function), std::this_thread::get_id(), {}, nullptr, value};
        const auto found = generators.find(g);
        if (found != generators.end()) {
            made.type = found->second.type;
            made.stream = found->second.stream;
        }
        calls.push_back(made);
        if (const auto planned = failures.find(function); planned != failures.end()) {
            const auto status = planned->second;
            failures.erase(planned);
            return status;
        }
        if (g && found == generators.end()) {
            driver.complain(std::string(function).append(": unknown generator"));
            return CURAND_STATUS_NOT_INITIALIZED;
        }
        return driver.library_call(function) == CUDA_SUCCESS ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
    }

    template <class Body>
    curandStatus_t with(std::string_view function, curandGenerator_t g, unsigned long long value, Body body)
    {
        const std::scoped_lock lock(mutex);
        if (const auto status = begin(function, g, value); status != CURAND_STATUS_SUCCESS)
            return status;
        return body(generators.at(g));
    }
};

namespace {

using coaccel::rand::philox_words;

fake_curand::state* current_curand = nullptr;

bool pairs_only(curandRngType_t t)
{
    return t == CURAND_RNG_PSEUDO_XORWOW || t == CURAND_RNG_PSEUDO_MRG32K3A;
}

std::uint64_t number(const fake_curand::state::generator& g, std::uint64_t i)
{
    const std::uint64_t at = g.position + i;
    return g.type == CURAND_RNG_PSEUDO_PHILOX4_32_10 ? philox_words(g.seed, at / 4)[at % 4] : at;
}

template <class T>
T real(const fake_curand::state::generator& g, std::uint64_t i)
{
    const bool philox = g.type == CURAND_RNG_PSEUDO_PHILOX4_32_10;
    return static_cast<T>(static_cast<double>(number(g, i)) * (philox ? 0x1p-32 : 0x1p-20));
}

template <class T, class Make>
curandStatus_t generate(const char* function, curandGenerator_t g, T* to, std::size_t n, Make make, bool normal = false)
{
    return current_curand->with(function, g, n, [&](auto& on) {
        if (normal && n % 2 == 1 && pairs_only(on.type))
            return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
        const CUresult r = current_curand->driver.enqueue(on.stream, [=, copy = on, &d = current_curand->driver] {
            // The real one faults.
            if (normal && pairs_only(copy.type) && reinterpret_cast<std::uintptr_t>(to) % (2 * sizeof(T)) != 0)
                d.complain("a misaligned pair of numbers");
            if (!d.touch(to, n * sizeof(T)))
                return;
            for (std::size_t i = 0; i < n; ++i)
                to[i] = make(copy, i);
        });
        if (r != CUDA_SUCCESS)
            return CURAND_STATUS_LAUNCH_FAILURE;
        on.position += n;
        return CURAND_STATUS_SUCCESS;
    });
}

curandStatus_t create(curandGenerator_t* made, curandRngType_t type)
{
    const std::scoped_lock lock(current_curand->mutex);
    if (const auto status = current_curand->begin("curandCreateGenerator", nullptr, type);
        status != CURAND_STATUS_SUCCESS)
        return status;
    *made = reinterpret_cast<curandGenerator_t>(current_curand->next_handle += 16);
    current_curand->generators.emplace(*made, fake_curand::state::generator{.type = type});
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t destroy(curandGenerator_t g)
{
    const auto status =
        current_curand->with("curandDestroyGenerator", g, 0, [](auto&) { return CURAND_STATUS_SUCCESS; });
    const std::scoped_lock lock(current_curand->mutex);
    current_curand->generators.erase(g);
    return status;
}

curandStatus_t set_stream(curandGenerator_t g, cudaStream_t s)
{
    return current_curand->with("curandSetStream", g, 0, [&](auto& on) {
        on.stream = reinterpret_cast<CUstream>(s);
        return CURAND_STATUS_SUCCESS;
    });
}

curandStatus_t set_seed(curandGenerator_t g, unsigned long long seed)
{
    return current_curand->with("curandSetPseudoRandomGeneratorSeed", g, seed, [&](auto& on) {
        on.seed = seed;
        return on.type >= CURAND_RNG_QUASI_DEFAULT ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_SUCCESS;
    });
}

curandStatus_t set_offset(curandGenerator_t g, unsigned long long offset)
{
    return current_curand->with("curandSetGeneratorOffset", g, offset, [&](auto& on) {
        on.position = offset;
        return on.type == CURAND_RNG_PSEUDO_MT19937 ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_SUCCESS;
    });
}

curandStatus_t set_ordering(curandGenerator_t g, curandOrdering_t order)
{
    return current_curand->with("curandSetGeneratorOrdering", g, order, [](auto&) { return CURAND_STATUS_SUCCESS; });
}

curandStatus_t set_dimensions(curandGenerator_t g, unsigned n)
{
    return current_curand->with("curandSetQuasiRandomGeneratorDimensions", g, n, [](auto& on) {
        return on.type < CURAND_RNG_QUASI_DEFAULT ? CURAND_STATUS_TYPE_ERROR : CURAND_STATUS_SUCCESS;
    });
}

curandStatus_t make_seeds(curandGenerator_t g)
{
    return current_curand->with("curandGenerateSeeds", g, 0, [](auto&) { return CURAND_STATUS_SUCCESS; });
}

} // namespace

fake_curand::fake_curand(fake_cuda& driver) : state_(new state{driver})
{
    current_curand = state_.get();
    auto& t = state_->table;
    t.path = "fake";
    t.version = 100400;
    t.curandCreateGenerator = create;
    t.curandDestroyGenerator = destroy;
    t.curandSetStream = set_stream;
    t.curandSetPseudoRandomGeneratorSeed = set_seed;
    t.curandSetGeneratorOffset = set_offset;
    t.curandSetGeneratorOrdering = set_ordering;
    t.curandSetQuasiRandomGeneratorDimensions = set_dimensions;
    t.curandGenerateSeeds = make_seeds;
    t.curandGenerate = [](curandGenerator_t g, unsigned* to, std::size_t n) {
        return generate("curandGenerate", g, to, n,
                        [](const auto& on, std::size_t i) { return static_cast<unsigned>(number(on, i)); });
    };
    t.curandGenerateLongLong = [](curandGenerator_t g, unsigned long long* to, std::size_t n) {
        return generate("curandGenerateLongLong", g, to, n,
                        [](const auto& on, std::size_t i) -> unsigned long long { return number(on, i); });
    };
    t.curandGenerateUniform = [](curandGenerator_t g, float* to, std::size_t n) {
        return generate("curandGenerateUniform", g, to, n, real<float>);
    };
    t.curandGenerateUniformDouble = [](curandGenerator_t g, double* to, std::size_t n) {
        return generate("curandGenerateUniformDouble", g, to, n, real<double>);
    };
    t.curandGenerateNormal = [](curandGenerator_t g, float* to, std::size_t n, float mean, float stddev) {
        return generate(
            "curandGenerateNormal", g, to, n,
            [=](const auto& on, std::size_t i) { return mean + stddev * real<float>(on, i); }, true);
    };
    t.curandGenerateNormalDouble = [](curandGenerator_t g, double* to, std::size_t n, double mean, double stddev) {
        return generate(
            "curandGenerateNormalDouble", g, to, n,
            [=](const auto& on, std::size_t i) { return mean + stddev * real<double>(on, i); }, true);
    };
    t.curandGenerateLogNormal = [](curandGenerator_t g, float* to, std::size_t n, float, float) {
        return generate("curandGenerateLogNormal", g, to, n, real<float>, true);
    };
    t.curandGenerateLogNormalDouble = [](curandGenerator_t g, double* to, std::size_t n, double, double) {
        return generate("curandGenerateLogNormalDouble", g, to, n, real<double>, true);
    };
    t.curandGeneratePoisson = [](curandGenerator_t g, unsigned* to, std::size_t n, double lambda) {
        return generate("curandGeneratePoisson", g, to, n,
                        [=](const auto&, std::size_t) { return static_cast<unsigned>(lambda); });
    };
}

fake_curand::~fake_curand()
{
    if (!state_->generators.empty() && !state_->driver.dead())
        state_->driver.complain(std::to_string(state_->generators.size()) + " generators of cuRAND were not destroyed");
    current_curand = nullptr;
}

const coaccel::cuda::curand_api& fake_curand::api() const noexcept
{
    return state_->table;
}

void fake_curand::fail(std::string_view function, curandStatus_t status)
{
    const std::scoped_lock lock(state_->mutex);
    state_->failures[std::string(function)] = status;
}

std::vector<fake_curand::call> fake_curand::calls(std::string_view function) const
{
    const std::scoped_lock lock(state_->mutex);
    std::vector<call> found;
    std::ranges::copy_if(state_->calls, std::back_inserter(found),
                         [&](const call& c) { return c.function == function; });
    return found;
}

std::size_t fake_curand::generators() const
{
    const std::scoped_lock lock(state_->mutex);
    return state_->generators.size();
}

} // namespace test
