#include "cuda/loader/dynamic_library.hpp"
#include "cuda/rand/curand_setup.hpp"
#include "cuda/vendor_libraries.hpp"
#include "rand/philox.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace test_cuda_rand_sequence {

// Compares our numbers of philox with those of this machine's cuRAND, which can generate them on the CPU.
namespace {

using namespace coaccel;
using namespace coaccel::cuda;

constexpr std::uint64_t seed = 0xfedcba9876543210;

struct host_generator {
    host_generator(const curand_api& table, decltype(&::curandCreateGeneratorHost) create, std::uint64_t offset)
        : api(table)
    {
        REQUIRE(create(&handle, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS);
        REQUIRE(api.curandSetGeneratorOrdering(handle, CURAND_ORDERING_PSEUDO_LEGACY) == CURAND_STATUS_SUCCESS);
        REQUIRE(api.curandSetPseudoRandomGeneratorSeed(handle, seed) == CURAND_STATUS_SUCCESS);
        REQUIRE(api.curandSetGeneratorOffset(handle, offset) == CURAND_STATUS_SUCCESS);
    }
    host_generator(const host_generator&) = delete;
    host_generator& operator=(const host_generator&) = delete;
    ~host_generator() { (void)api.curandDestroyGenerator(handle); }

    const curand_api& api;
    curandGenerator_t handle = nullptr;
};

} // namespace

TEST_SUITE_BEGIN("cuda rand");

TEST_CASE("cuRAND's own numbers of philox are the ones that the CPU backend makes")
{
    const auto loaded = curand_api::load();
    if (!loaded) {
        MESSAGE("there is no cuRAND here: ", loaded.error().message());
        return;
    }
    decltype(&::curandCreateGeneratorHost) create = nullptr;
    REQUIRE_FALSE(dynamic_library::open(curand_library).value().find(create, "curandCreateGeneratorHost"));
    for (const std::uint64_t offset : {0ull, 1ull, 6ull, 262143ull, 262144ull, 1000003ull}) {
        CAPTURE(offset);
        std::vector<unsigned> words(600001);
        const host_generator a(*loaded.value(), create, offset);
        REQUIRE(a.api.curandGenerate(a.handle, words.data(), words.size()) == CURAND_STATUS_SUCCESS);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < words.size(); ++i)
            wrong += words[i] != rand::philox_words(seed, (offset + i) / 4)[(offset + i) % 4];
        CHECK(wrong == 0);

        std::vector<double> doubles(600001);
        const host_generator b(*loaded.value(), create, offset);
        REQUIRE(b.api.curandGenerateUniformDouble(b.handle, doubles.data(), doubles.size()) == CURAND_STATUS_SUCCESS);
        wrong = 0;
        for (std::size_t i = 0; i < doubles.size(); ++i) {
            const std::uint64_t at = offset % 4 + i;
            const auto w = rand::philox_wide_words(seed, offset, at / 2);
            const std::uint64_t bits = w[at % 2 * 2] ^ std::uint64_t(w[at % 2 * 2 + 1]) << 21;
            wrong += doubles[i] != static_cast<double>(bits) * 0x1p-53 + 0x1p-54;
        }
        CHECK(wrong == 0);
    }
}

TEST_SUITE_END();

} // namespace test_cuda_rand_sequence
