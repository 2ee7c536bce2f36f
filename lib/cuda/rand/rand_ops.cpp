#include "cuda/backend.hpp"
#include "cuda/op_libraries.hpp"
#include "cuda/rand/generators.hpp"
#include "rand/sequence.hpp"

#include <coaccel/ops/rand.hpp>

namespace coaccel::cuda {
namespace {

// The CPU and cuRAND agree about the words of philox; see rand/philox.hpp.

/// The calls of cuRAND, by element type.
struct numbers {
    const curand_api& api;
    curandGenerator_t from;

    curandStatus_t bits(std::uint32_t* to, std::size_t n, rand::algorithm) const
    {
        return api.curandGenerate(from, to, n);
    }

    curandStatus_t bits(std::uint64_t* to, std::size_t n, rand::algorithm a) const
    {
        // Only 64-bit Sobol generators have numbers of 64 bits.
        return rand::is_quasi_random(a) ? api.curandGenerateLongLong(from, reinterpret_cast<unsigned long long*>(to), n)
                                        : api.curandGenerate(from, reinterpret_cast<std::uint32_t*>(to), 2 * n);
    }

    curandStatus_t uniform(float* to, std::size_t n) const { return api.curandGenerateUniform(from, to, n); }
    curandStatus_t uniform(double* to, std::size_t n) const { return api.curandGenerateUniformDouble(from, to, n); }

    curandStatus_t normal(float* to, std::size_t n, float mean, float stddev) const
    {
        return api.curandGenerateNormal(from, to, n, mean, stddev);
    }
    curandStatus_t normal(double* to, std::size_t n, double mean, double stddev) const
    {
        return api.curandGenerateNormalDouble(from, to, n, mean, stddev);
    }

    curandStatus_t log_normal(float* to, std::size_t n, float mean, float stddev) const
    {
        return api.curandGenerateLogNormal(from, to, n, mean, stddev);
    }
    curandStatus_t log_normal(double* to, std::size_t n, double mean, double stddev) const
    {
        return api.curandGenerateLogNormalDouble(from, to, n, mean, stddev);
    }
};

template <class Op>
constexpr bool is_normal = false;
template <class T>
constexpr bool is_normal<rand::normal<T>> = true;
template <class T>
constexpr bool is_normal<rand::log_normal<T>> = true;

/// The bytes that an op needs beside its destination. Some generators write normally distributed numbers in aligned
/// pairs only.
template <class Op>
std::size_t scratch_bytes(const Op& op, const void* to) noexcept
{
    const auto a = op.from.options().algorithm;
    if (!is_normal<Op> || (a != rand::algorithm::xorwow && a != rand::algorithm::mrg32k3a))
        return 0;
    constexpr std::size_t size = sizeof(typename decltype(op.dst)::value_type);
    const bool in_pairs = op.dst.size() % 2 == 0 && reinterpret_cast<std::uintptr_t>(to) % (2 * size) == 0;
    return in_pairs ? 0 : (op.dst.size() + op.dst.size() % 2) * size;
}

/// One call, with its own copy of the op: after the context has died, the request may be destroyed before the thread
/// pool makes the call.
template <class Op>
class draw {
public:
    using value = std::remove_pointer_t<decltype(std::declval<bound_op>().data(std::declval<Op>().dst))>;

    draw(const backend& b, generator_state& g, const bound_op& o)
        : driver_(b.api()), state_(g), op_(o.as<Op>()), to_(o.data(o.as<Op>().dst)),
          // The generator must be moved if it has not reached this position by itself.
          offset_(static_cast<const rand::drawn*>(o.reply)->position),
          move_(state_.own_position != offset_ && op_.from.options().algorithm == rand::algorithm::philox)
    {}

    curandStatus_t operator()() const
    {
        const numbers n{*state_.api, state_.handle};
        if (move_)
            if (const auto s = state_.api->curandSetGeneratorOffset(state_.handle, offset_); s != CURAND_STATUS_SUCCESS)
                return s;
        if (const std::size_t bytes = scratch_bytes(op_, to_))
            return fill_by_copy(n, bytes);
        return fill(n, op_, to_, op_.dst.size());
    }

private:
    rand::algorithm algorithm() const noexcept { return op_.from.options().algorithm; }

    template <class T>
    curandStatus_t fill(const numbers& n, const rand::bits<T>&, T* to, std::size_t count) const
    {
        return n.bits(to, count, algorithm());
    }
    template <class T>
    curandStatus_t fill(const numbers& n, const rand::uniform<T>&, T* to, std::size_t count) const
    {
        return n.uniform(to, count);
    }
    template <class T>
    curandStatus_t fill(const numbers& n, const rand::normal<T>& op, T* to, std::size_t count) const
    {
        return n.normal(to, count, op.mean, op.stddev);
    }
    template <class T>
    curandStatus_t fill(const numbers& n, const rand::log_normal<T>& op, T* to, std::size_t count) const
    {
        return n.log_normal(to, count, op.mean, op.stddev);
    }
    curandStatus_t fill(const numbers& n, const rand::poisson& op, std::uint32_t* to, std::size_t count) const
    {
        return n.api.curandGeneratePoisson(n.from, to, count, op.lambda);
    }

    curandStatus_t fill_by_copy(const numbers& n, std::size_t bytes) const
    {
        auto* scratch = static_cast<value*>(state_.scratch);
        const auto status = fill(n, op_, scratch, bytes / sizeof(value));
        if (status != CURAND_STATUS_SUCCESS)
            return status;
        const auto copied =
            driver_.cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to_), reinterpret_cast<CUdeviceptr>(scratch),
                                      op_.dst.size() * sizeof(value), state_.stream);
        return copied == CUDA_SUCCESS ? status : CURAND_STATUS_LAUNCH_FAILURE;
    }

    const driver_api& driver_;
    generator_state& state_;
    Op op_;
    value* to_;
    std::uint64_t offset_;
    bool move_;
};

/// The numbers that cuRAND's own position advances by.
template <class Op>
std::uint64_t own_numbers(const Op& op) noexcept
{
    const bool words =
        std::same_as<Op, rand::bits<std::uint64_t>> && !rand::is_quasi_random(op.from.options().algorithm);
    return (words ? 2 : 1) * op.dst.size();
}

/// Assigns the op its part of the sequence.
template <class Op>
void reserve(generator_state& g, bound_op& o)
{
    const Op& op = o.as<Op>();
    auto& drawn = *static_cast<rand::drawn*>(o.reply);
    drawn = {g.position, std::exchange(g.fresh, false)};
    g.position = rand::position_after(op, g.position);
}

template <class Op>
void advance(generator_state& g, const bound_op& o) noexcept
{
    g.own_position = static_cast<const rand::drawn*>(o.reply)->position + own_numbers(o.as<Op>());
    // The number of words that Poisson numbers use varies.
    if constexpr (std::same_as<Op, rand::poisson>)
        g.own_position = generator_state::unknown_position;
}

/// Making a table for Poisson numbers allocates memory and waits.
template <class Op>
bool has_table(generator_state& g, const Op& op) noexcept
{
    if constexpr (std::same_as<Op, rand::poisson>)
        return std::exchange(g.lambda, op.lambda) == op.lambda;
    return true;
}

template <class Op>
result<readiness> prepare(backend& b, stream_state& s, bound_op& o)
{
    const Op& op = o.as<Op>();
    auto& all = b.resources().get<generators>(b);
    generator_state& g = all.find(op.from);
    if (o.state) {
        const auto ended = b.blocking().run(o, {});
        if (ended && ended.value() == progress::pending)
            return readiness::pending;
        b.blocking().finish(o);
        g.busy = false;
        // Another lane may wait for the generator.
        b.notify_progress();
        const bool launched = std::exchange(g.launching, false);
        if (launched)
            all.release_scratch(g);
        if (!ended)
            return ended.error();
        if (launched) {
            all.note_loaded(op.from, o.info->id);
            return readiness::launched;
        }
    }
    if (g.busy)
        return readiness::pending;
    const auto behind = [&](auto job) -> result<readiness> {
        const auto started = b.blocking().run(o, std::move(job));
        if (!started)
            return started.error();
        g.busy = true;
        return readiness::pending;
    };
    if (!g.handle) {
        g.stream = s.native;
        g.position = g.own_position = op.from.options().offset;
        return behind([&b, &g, how = op.from.options()] { return generators::create(b, g, how); });
    }
    if (auto ec = all.use_on(g, s.native))
        return ec;
    if (const std::size_t bytes = scratch_bytes(op, o.data(op.dst))) {
        BOOST_OUTCOME_TRY(const bool there, all.reserve_scratch(g, bytes));
        if (!there)
            return readiness::pending;
    }
    if (all.loaded(op.from, o.info->id) && has_table(g, op))
        return readiness::ready;
    reserve<Op>(g, o);
    auto job = [&all, &b, &g, call = draw<Op>(b, g, o)] {
        return b.dead() ? make_error_code(errc::context_lost) : all.check(g, call());
    };
    advance<Op>(g, o);
    auto started = behind(std::move(job));
    g.launching = started.has_value();
    if (!started)
        g.own_position = generator_state::unknown_position;
    return started;
}

template <class Op>
error_code enqueue(backend& b, stream_state&, bound_op& o)
{
    auto& all = b.resources().get<generators>(b);
    generator_state& g = all.find(o.as<Op>().from);
    reserve<Op>(g, o);
    const draw<Op> call(b, g, o);
    advance<Op>(g, o);
    const auto ec = all.check(g, call());
    all.release_scratch(g);
    return ec;
}

/// Moving the generator, the numbers, and a copy.
std::size_t commands(const bound_op&) noexcept
{
    return 3;
}

error_code finish(backend& b, bound_op& o) noexcept
{
    b.blocking().finish(o);
    return o.status;
}

template <op... Ops>
void add_all(op_table& table, type_list<Ops...>)
{
    (table.add<Ops>({.prepare = prepare<Ops>, .enqueue = enqueue<Ops>, .finish = finish, .commands = commands}), ...);
}

} // namespace

const op_library rand_ops{.add_ops = [](op_table& table) { add_all(table, rand::ops{}); }};

} // namespace coaccel::cuda
