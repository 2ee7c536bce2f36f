#include "cuda/blas/tuned_algorithms.hpp"

#include "support/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace test_cuda_tuned_algorithms {

namespace {

using coaccel::cuda::disk_cache;
using coaccel::cuda::key_of;
using coaccel::cuda::lt_problem;
using coaccel::cuda::lt_scales;
using coaccel::cuda::tuned_algorithms;

constexpr std::uint64_t limit = std::uint64_t(1) << 20;

cublasLtMatmulAlgo_t algorithm(std::uint64_t number)
{
    cublasLtMatmulAlgo_t made{};
    for (auto& part : made.data)
        part = number++;
    return made;
}

/// The number of a stored algorithm; zero: there is none.
std::uint64_t found(tuned_algorithms& known, const std::string& key)
{
    const auto stored = known.find(key);
    if (!stored)
        return 0;
    CHECK(std::memcmp(&*stored, std::data({algorithm(stored->data[0])}), sizeof(*stored)) == 0);
    return stored->data[0];
}

lt_problem some_problem()
{
    const coaccel::cuda::lt_matrix matrix{CUDA_R_32F, 2, 2, 2, 0, 256};
    return {.a = matrix,
            .b = matrix,
            .c = matrix,
            .d = matrix,
            .trans_a = CUBLAS_OP_N,
            .trans_b = CUBLAS_OP_N,
            .batch = 1,
            .compute = CUBLAS_COMPUTE_32F,
            .scale_type = CUDA_R_32F,
            .pointers = CUBLASLT_POINTER_MODE_HOST,
            .epilogue = CUBLASLT_EPILOGUE_BIAS,
            .bias_type = CUDA_R_32F,
            .bias_alignment = 256,
            .scales = lt_scales::none,
            .scaled_d = false,
            .wants_amax = false};
}

} // namespace

TEST_SUITE_BEGIN("tuned_algorithms");

TEST_CASE("what was added is found, under its key only")
{
    const test::temporary_folder folder;
    tuned_algorithms known(disk_cache(folder.path(), limit));
    CHECK(found(known, "one") == 0);
    known.add("one", algorithm(10));
    known.add("other", algorithm(20));
    CHECK(found(known, "one") == 10);
    CHECK(found(known, "other") == 20);
    CHECK(found(known, "third") == 0);
    known.add("one", algorithm(30));
    CHECK(found(known, "one") == 30);
}

TEST_CASE("additions are counted, searches are not")
{
    const test::temporary_folder folder;
    tuned_algorithms known(disk_cache(folder.path(), limit));
    CHECK(known.additions() == 0);
    CHECK(found(known, "one") == 0);
    known.add("one", algorithm(10));
    CHECK(known.additions() == 1);
    known.add("one", algorithm(10));
    CHECK(known.additions() == 2);
    CHECK(found(known, "one") == 10);
    CHECK(known.additions() == 2);
}

TEST_CASE("the keys that were added after some additions are known")
{
    const test::temporary_folder folder;
    tuned_algorithms known(disk_cache(folder.path(), limit));
    known.add("one", algorithm(10));
    known.add("other", algorithm(20));
    CHECK(known.added_after("one", 0));
    CHECK_FALSE(known.added_after("one", 1));
    CHECK(known.added_after("other", 1));
    CHECK_FALSE(known.added_after("other", 2));
    CHECK_FALSE(known.added_after("third", 0));
    known.add("one", algorithm(10));
    CHECK(known.added_after("one", 2));
    CHECK_FALSE(known.added_after("other", 2));
    // What was read was not added.
    tuned_algorithms later(disk_cache(folder.path(), limit));
    CHECK(found(later, "one") == 10);
    CHECK_FALSE(later.added_after("one", 0));
}

TEST_CASE("a key may have been added after additions that are no longer in memory")
{
    tuned_algorithms known(disk_cache("", limit));
    known.add("one", algorithm(10));
    for (std::size_t i = 0; i < tuned_algorithms::most_known; ++i)
        CHECK(found(known, "unknown " + std::to_string(i)) == 0);
    CHECK(known.added_after("one", 0));
    CHECK_FALSE(known.added_after("one", 1));
}

TEST_CASE("a refused algorithm is forgotten, also in its file")
{
    for (const bool files : {true, false}) {
        const test::temporary_folder folder;
        const disk_cache cache(files ? folder.path() : "", limit);
        tuned_algorithms known(cache);
        known.add("one", algorithm(10));
        known.add("other", algorithm(20));
        known.forget("one", algorithm(10));
        CHECK(found(known, "one") == 0);
        CHECK(found(known, "other") == 20);
        tuned_algorithms later(cache);
        CHECK(found(later, "one") == 0);
        CHECK(found(later, "other") == (files ? 20 : 0));
        // One that was only read, and one that is not known.
        later.forget("other", algorithm(20));
        later.forget("third", algorithm(20));
        CHECK(found(later, "other") == 0);
        CHECK(found(later, "third") == 0);
        known.add("one", algorithm(30));
        CHECK(found(known, "one") == 30);
    }
}

TEST_CASE("an algorithm that was added in place of a refused one stays")
{
    const test::temporary_folder folder;
    const disk_cache cache(folder.path(), limit);
    tuned_algorithms known(cache), other(cache);
    known.add("one", algorithm(10));
    other.add("one", algorithm(30));
    // Only this object has the refused one.
    known.forget("one", algorithm(10));
    CHECK(found(known, "one") == 0);
    CHECK(found(other, "one") == 30);
    tuned_algorithms later(cache);
    CHECK(found(later, "one") == 30);
    later.forget("one", algorithm(10));
    CHECK(found(later, "one") == 30);
}

TEST_CASE("a later object finds it in a file")
{
    const test::temporary_folder folder;
    tuned_algorithms(disk_cache(folder.path(), limit)).add("one", algorithm(10));
    tuned_algorithms later(disk_cache(folder.path(), limit));
    CHECK(found(later, "one") == 10);
    CHECK(found(later, "other") == 0);
    CHECK(later.additions() == 0);
    // From now on without the file.
    std::filesystem::remove(disk_cache(folder.path(), limit).file_of("one"));
    CHECK(found(later, "one") == 10);
}

TEST_CASE("a file is looked for once")
{
    const test::temporary_folder folder;
    tuned_algorithms early(disk_cache(folder.path(), limit));
    CHECK(found(early, "one") == 0);
    tuned_algorithms(disk_cache(folder.path(), limit)).add("one", algorithm(10));
    CHECK(found(early, "one") == 0);
}

TEST_CASE("without files, an algorithm is known to its object only")
{
    for (const std::string folder : {"", "/dev/null/algorithms"}) {
        tuned_algorithms known(disk_cache(folder, limit));
        known.add("one", algorithm(10));
        CHECK(found(known, "one") == 10);
        CHECK(known.additions() == 1);
        tuned_algorithms later(disk_cache(folder, limit));
        CHECK(found(later, "one") == 0);
    }
}

TEST_CASE("a file with something else is ignored, and can be replaced")
{
    const auto bytes = std::string(sizeof(cublasLtMatmulAlgo_t), 'x');
    const std::function<void(const disk_cache&)> writers[] = {
        [](const disk_cache& files) { std::ofstream(files.file_of("one")) << "no algorithm"; },
        [](const disk_cache& files) { std::ofstream(files.file_of("one")).flush(); },
        // A compiled kernel.
        [&](const disk_cache& files) { CHECK(files.store("one", {"kernel", bytes, {}})); },
        [&](const disk_cache& files) { CHECK(files.store("one", {"cublasLt algorithm", bytes + "x", {}})); },
        [&](const disk_cache& files) { CHECK(files.store("one", {"cublasLt algorithm", "x", {}})); },
        // The file of another key.
        [&](const disk_cache& files) {
            CHECK(files.store("other", {"cublasLt algorithm", bytes, {}}));
            std::filesystem::rename(files.file_of("other"), files.file_of("one"));
        }};
    for (const auto& write : writers) {
        const test::temporary_folder folder;
        const disk_cache files(folder.path(), limit);
        write(files);
        CHECK(std::filesystem::exists(files.file_of("one")));
        tuned_algorithms known(files);
        CHECK(found(known, "one") == 0);
        known.add("one", algorithm(10));
        CHECK(found(known, "one") == 10);
        tuned_algorithms later(files);
        CHECK(found(later, "one") == 10);
    }
}

TEST_CASE("what is no longer kept in memory is found in its file")
{
    const test::temporary_folder folder;
    tuned_algorithms with_files(disk_cache(folder.path(), limit)), without(disk_cache("", limit));
    for (tuned_algorithms* const known : {&with_files, &without}) {
        known->add("one", algorithm(10));
        // Searches without a result take room, too.
        for (std::size_t i = 0; i < tuned_algorithms::most_known; ++i)
            CHECK(found(*known, "unknown " + std::to_string(i)) == 0);
    }
    CHECK(found(with_files, "one") == 10);
    CHECK(found(without, "one") == 0);
    without.add("one", algorithm(10));
    for (std::size_t i = 0; i < tuned_algorithms::most_known; ++i)
        without.add("other " + std::to_string(i), algorithm(20));
    CHECK(found(without, "one") == 0);
    CHECK(found(without, "other " + std::to_string(tuned_algorithms::most_known - 1)) == 20);
}

TEST_CASE("the key has everything on which the fastest algorithm depends")
{
    std::set<std::string> keys;
    const auto is_new = [&keys](const std::string& key) { CHECK(keys.insert(key).second); };
    const auto key = [](const lt_problem& p) { return key_of(p, "GPU", 130000, 1 << 20); };
    is_new(key(some_problem()));
    is_new(key_of(some_problem(), "other GPU", 130000, 1 << 20));
    is_new(key_of(some_problem(), "GPU", 130001, 1 << 20));
    is_new(key_of(some_problem(), "GPU", 130000, 1 << 21));
    const auto change = [&](auto edit) {
        auto p = some_problem();
        edit(p);
        is_new(key(p));
    };
    for (coaccel::cuda::lt_matrix lt_problem::* const m :
         {&lt_problem::a, &lt_problem::b, &lt_problem::c, &lt_problem::d}) {
        change([m](lt_problem& p) { (p.*m).type = CUDA_R_16F; });
        change([m](lt_problem& p) { (p.*m).rows = 3; });
        change([m](lt_problem& p) { (p.*m).cols = 3; });
        change([m](lt_problem& p) { (p.*m).ld = 3; });
        change([m](lt_problem& p) { (p.*m).stride = 3; });
        change([m](lt_problem& p) { (p.*m).alignment = 16; });
    }
    change([](lt_problem& p) { p.trans_a = CUBLAS_OP_T; });
    change([](lt_problem& p) { p.trans_b = CUBLAS_OP_T; });
    change([](lt_problem& p) { p.batch = 2; });
    change([](lt_problem& p) { p.compute = CUBLAS_COMPUTE_32F_FAST_TF32; });
    change([](lt_problem& p) { p.scale_type = CUDA_R_32I; });
    change([](lt_problem& p) { p.pointers = CUBLASLT_POINTER_MODE_DEVICE; });
    change([](lt_problem& p) { p.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS; });
    change([](lt_problem& p) { p.bias_type = CUDA_R_16BF; });
    change([](lt_problem& p) { p.bias_alignment = 16; });
    change([](lt_problem& p) { p.scales = lt_scales::single; });
    change([](lt_problem& p) { p.scales = lt_scales::several; });
    change([](lt_problem& p) { p.scaled_d = true; });
    change([](lt_problem& p) { p.wants_amax = true; });
    // The type of a bias that there is not does not matter.
    auto unbiased = some_problem();
    unbiased.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const auto one = key(unbiased);
    is_new(one);
    unbiased.bias_type = CUDA_R_16BF;
    CHECK(key(unbiased) == one);
}

TEST_CASE("several threads add and find")
{
    const test::temporary_folder folder;
    const disk_cache files(folder.path(), limit);
    tuned_algorithms known(files);
    constexpr std::uint64_t threads = 4, keys = 8, rounds = 25;
    const auto key = [](std::uint64_t i) { return "key " + std::to_string(i); };
    {
        std::vector<std::jthread> all;
        for (std::uint64_t t = 0; t < threads; ++t)
            all.emplace_back([&, t] {
                for (std::uint64_t i = 0; i < rounds; ++i) {
                    const auto k = (t + i) % keys;
                    known.add(key(k), algorithm(100 + k));
                    // Of the threads, each stores the same for a key.
                    for (std::uint64_t other = 0; other < keys; ++other)
                        if (const auto stored = known.find(key(other)); stored && stored->data[0] != 100 + other)
                            FAIL_CHECK("another algorithm");
                    (void)known.additions();
                }
            });
    }
    CHECK(known.additions() == threads * rounds);
    tuned_algorithms later(files);
    for (std::uint64_t k = 0; k < keys; ++k) {
        CHECK(found(known, key(k)) == 100 + k);
        CHECK(found(later, key(k)) == 100 + k);
    }
}

TEST_SUITE_END();

} // namespace test_cuda_tuned_algorithms
