#include "cuda/rand/curand_api.hpp"
#include "op_times.hpp"
#include "rows.hpp"

#include <coaccel/ops/rand.hpp>

#include <string>

namespace coaccel::bench {
namespace {

constexpr std::size_t count_of_numbers = std::size_t(64) << 20;
constexpr std::uint64_t seed = 1;

/// Philox of plain cuRAND.
class raw_rand {
public:
    explicit raw_rand(const raw_gpu& raw) : raw_(raw), api_(value_of(cuda::curand_api::load(), "cuRAND"))
    {
        const auto inside = raw_.enter();
        check(api_->curandCreateGenerator(&handle_, CURAND_RNG_PSEUDO_PHILOX4_32_10), "curandCreateGenerator");
        check(api_->curandSetGeneratorOrdering(handle_, CURAND_ORDERING_PSEUDO_LEGACY), "curandSetGeneratorOrdering");
        check(api_->curandSetPseudoRandomGeneratorSeed(handle_, seed), "curandSetPseudoRandomGeneratorSeed");
        check(api_->curandSetStream(handle_, raw_.stream()), "curandSetStream");
    }
    raw_rand(const raw_rand&) = delete;
    raw_rand& operator=(const raw_rand&) = delete;

    ~raw_rand()
    {
        CUcontext popped = nullptr;
        if (raw_.api().cuCtxPushCurrent(raw_.context()) != CUDA_SUCCESS)
            return;
        (void)api_->curandDestroyGenerator(handle_);
        (void)raw_.api().cuCtxPopCurrent(&popped);
    }

    void draw(const raw_memory& to) const
    {
        check(api_->curandGenerateUniform(handle_, static_cast<float*>(to.pointer()), count_of_numbers),
              "curandGenerateUniform");
    }

private:
    static void check(curandStatus_t s, const char* what)
    {
        if (s != CURAND_STATUS_SUCCESS)
            throw failure(std::string(what) + ": status " + std::to_string(s));
    }

    const raw_gpu& raw_;
    const cuda::curand_api* api_;
    curandGenerator_t handle_ = nullptr;
};

} // namespace

/// Awaited Philox numbers against plain cuRAND.
void rand_row(const stage& s, rows& table)
{
    const raw_memory memory(s.raw, count_of_numbers * sizeof(float));
    const raw_rand theirs(s.raw);
    our_gpu ours(s.folder);
    const auto x = ours.get<buffer<float>>(ours.gpu().async_alloc<float>(count_of_numbers));
    const rand::uniform<float> op{.dst = x, .from = rand::make_generator({.seed = seed})};
    add_large_op(table, "rand_vs_curand", ours, op, s.raw, 1.03, "<= 1.03", [&] { theirs.draw(memory); });
}

} // namespace coaccel::bench
