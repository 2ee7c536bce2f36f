#include "context/recently_used.hpp"
#include "host/backend.hpp"
#include "host/ops/libraries.hpp"
#include "rand/sequence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

namespace coaccel::host {
namespace {

/// The state of a generator in this context.
struct generator_state {
    std::uint64_t id;
    std::uint64_t position;
    std::mt19937 twister;
    /// The stream of its last op, and the position after that op.
    stream_state* last = nullptr;
    std::uint64_t last_position = 0;

    bool in_use() const noexcept { return last && last->passed() < last_position; }
};

/// The generators of a context.
class generators final : public detail::library_resources {
public:
    static constexpr library lib = library::rand;

    struct found {
        generator_state& state;
        bool started;
    };

    found find(const rand::generator& g)
    {
        if (auto* known = all_.find(g.id()))
            return {*known, false};
        all_.make_room(rand::most_generators, [](const generator_state& old) { return !old.in_use(); });
        const auto& o = g.options();
        std::seed_seq seed{static_cast<std::uint32_t>(o.seed), static_cast<std::uint32_t>(o.seed >> 32)};
        return {all_.add({g.id(), o.offset, std::mt19937(seed)}), true};
    }

    std::size_t count() const noexcept override { return all_.size(); }

private:
    detail::recently_used<generator_state> all_;
};

// The conversions of cuRAND, which exclude 0 and include 1.
float to_unit(std::uint32_t x) noexcept
{
    return static_cast<float>(x) * 0x1p-32f + 0x1p-33f;
}

double to_unit(std::uint32_t low, std::uint32_t high) noexcept
{
    return static_cast<double>(std::uint64_t(low) ^ (std::uint64_t(high) << 21)) * 0x1p-53 + 0x1p-54;
}

/// Two normally distributed numbers from two uniformly distributed ones (Box and Muller).
template <class T>
std::array<T, 2> to_normal(T radius, T angle) noexcept
{
    const T s = std::sqrt(T(-2) * std::log(radius));
    const T turn = T(2) * std::numbers::pi_v<T> * angle;
    return {s * std::sin(turn), s * std::cos(turn)};
}

/// Passes the words from `position` on to `use(index, word)`.
template <class Use>
void for_each_word(std::uint64_t seed, std::uint64_t position, std::uint64_t count, Use use)
{
    for (std::uint64_t at = position; at < position + count;) {
        const auto block = rand::philox_words(seed, at / 4);
        for (; at < position + count; ++at) {
            use(at - position, block[at % 4]);
            if (at % 4 == 3) {
                ++at;
                break;
            }
        }
    }
}

/// Numbers of philox, as cuRAND makes them.
class philox_source {
public:
    philox_source(std::uint64_t seed, std::uint64_t position) noexcept : seed_(seed), position_(position) {}

    void bits(std::uint32_t* to, std::uint64_t count) const
    {
        for_each_word(seed_, position_, count, [&](std::uint64_t i, std::uint32_t x) { to[i] = x; });
    }

    void bits(std::uint64_t* to, std::uint64_t count) const
    {
        // As in memory on a little-endian machine.
        for_each_word(seed_, position_, 2 * count, [&](std::uint64_t i, std::uint32_t x) {
            to[i / 2] = i % 2 == 0 ? x : to[i / 2] | std::uint64_t(x) << 32;
        });
    }

    void uniform(float* to, std::uint64_t count) const
    {
        for_each_word(seed_, position_, count, [&](std::uint64_t i, std::uint32_t x) { to[i] = to_unit(x); });
    }

    void uniform(double* to, std::uint64_t count) const
    {
        for_each_pair(count, [&](std::uint64_t i, const rand::philox_block& w, bool second) {
            to[i] = second ? to_unit(w[2], w[3]) : to_unit(w[0], w[1]);
        });
    }

    void normal(float* to, std::uint64_t count) const
    {
        const std::uint64_t first = position_ / 2 * 2;
        std::uint32_t radius = 0;
        for_each_word(seed_, first, position_ + count - first + (position_ + count) % 2,
                      [&](std::uint64_t i, std::uint32_t x) {
                          if (i % 2 == 0) {
                              radius = x;
                              return;
                          }
                          const auto two = to_normal(to_unit(radius), to_unit(x));
                          const std::uint64_t at = first + i - 1;
                          if (at >= position_ && at < position_ + count)
                              to[at - position_] = two[0];
                          if (at + 1 < position_ + count)
                              to[at + 1 - position_] = two[1];
                      });
    }

    void normal(double* to, std::uint64_t count) const
    {
        for_each_pair(count, [&](std::uint64_t i, const rand::philox_block& w, bool second) {
            to[i] = to_normal(to_unit(w[0], w[1]), to_unit(w[2], w[3]))[second ? 1 : 0];
        });
    }

    /// Each number has its own subsequence, which the other distributions do not use.
    void poisson(std::uint32_t* to, std::uint64_t count, double lambda) const
    {
        std::poisson_distribution<std::uint32_t> distribution(lambda);
        for (std::uint64_t i = 0; i < count; ++i) {
            word_engine words(seed_, position_ + i);
            distribution.reset();
            to[i] = distribution(words);
        }
    }

private:
    class word_engine {
    public:
        using result_type = std::uint32_t;

        word_engine(std::uint64_t seed, std::uint64_t number) noexcept
            : seed_(seed), subsequence_(number | std::uint64_t(1) << 63)
        {}

        static constexpr result_type min() noexcept { return 0; }
        static constexpr result_type max() noexcept { return ~result_type(0); }

        result_type operator()() noexcept
        {
            if (at_ % 4 == 0)
                block_ = rand::philox_at(seed_, subsequence_, at_ / 4);
            return block_[at_++ % 4];
        }

    private:
        std::uint64_t seed_;
        std::uint64_t subsequence_;
        std::uint64_t at_ = 0;
        rand::philox_block block_{};
    };

    template <class Use>
    void for_each_pair(std::uint64_t count, Use use) const
    {
        const std::uint64_t skipped = position_ % 4;
        for (std::uint64_t at = skipped; at < skipped + count;) {
            const auto block = rand::philox_wide_words(seed_, position_, at / 2);
            do {
                use(at - skipped, block, at % 2 == 1);
                ++at;
            } while (at % 2 == 1 && at < skipped + count);
        }
    }

    std::uint64_t seed_;
    std::uint64_t position_;
};

/// Numbers of the Mersenne Twister.
class twister_source {
public:
    explicit twister_source(std::mt19937& engine) noexcept : engine_(engine) {}

    void bits(std::uint32_t* to, std::uint64_t count) const
    {
        std::generate_n(to, count, [this] { return word(); });
    }

    void bits(std::uint64_t* to, std::uint64_t count) const
    {
        std::generate_n(to, count, [this] {
            const std::uint64_t low = word();
            return low | std::uint64_t(word()) << 32;
        });
    }

    void uniform(float* to, std::uint64_t count) const
    {
        std::generate_n(to, count, [this] { return to_unit(word()); });
    }

    void uniform(double* to, std::uint64_t count) const
    {
        std::generate_n(to, count, [this] { return wide(); });
    }

    void normal(float* to, std::uint64_t count) const
    {
        normals(to, count, [this] { return to_unit(word()); });
    }

    void normal(double* to, std::uint64_t count) const
    {
        normals(to, count, [this] { return wide(); });
    }

    void poisson(std::uint32_t* to, std::uint64_t count, double lambda) const
    {
        std::poisson_distribution<std::uint32_t> distribution(lambda);
        std::generate_n(to, count, [&] { return distribution(engine_); });
    }

private:
    std::uint32_t word() const { return static_cast<std::uint32_t>(engine_()); }

    double wide() const
    {
        const std::uint32_t low = word();
        return to_unit(low, word());
    }

    template <class T, class Unit>
    static void normals(T* to, std::uint64_t count, Unit unit)
    {
        for (std::uint64_t i = 0; i < count; i += 2) {
            const T radius = unit();
            const auto two = to_normal(radius, unit());
            to[i] = two[0];
            if (i + 1 < count)
                to[i + 1] = two[1];
        }
    }

    std::mt19937& engine_;
};

/// Prepared ops have the position in their reply and the state of the Mersenne Twister in bound_op::state.
struct rand_ops {
    template <class T>
    static rand::drawn run(const rand::bits<T>& op, const bound_op& o)
    {
        return draw(op, o, [&](const auto& source, T* to) { source.bits(to, op.dst.size()); });
    }

    template <class T>
    static rand::drawn run(const rand::uniform<T>& op, const bound_op& o)
    {
        return draw(op, o, [&](const auto& source, T* to) { source.uniform(to, op.dst.size()); });
    }

    template <class T>
    static rand::drawn run(const rand::normal<T>& op, const bound_op& o)
    {
        return draw(op, o, [&](const auto& source, T* to) {
            source.normal(to, op.dst.size());
            std::transform(to, to + op.dst.size(), to, [&](T x) { return op.mean + op.stddev * x; });
        });
    }

    template <class T>
    static rand::drawn run(const rand::log_normal<T>& op, const bound_op& o)
    {
        return draw(op, o, [&](const auto& source, T* to) {
            source.normal(to, op.dst.size());
            std::transform(to, to + op.dst.size(), to, [&](T x) { return std::exp(op.mean + op.stddev * x); });
        });
    }

    static rand::drawn run(const rand::poisson& op, const bound_op& o)
    {
        return draw(op, o,
                    [&](const auto& source, std::uint32_t* to) { source.poisson(to, op.dst.size(), op.lambda); });
    }

private:
    template <class Op, class Fill>
    static rand::drawn draw(const Op& op, const bound_op& o, Fill fill)
    {
        const auto drawn = *static_cast<const rand::drawn*>(o.reply);
        if (o.state)
            fill(twister_source(static_cast<generator_state*>(o.state)->twister), o.data(op.dst));
        else
            fill(philox_source(op.from.options().seed, drawn.position), o.data(op.dst));
        return drawn;
    }
};

template <class Op>
error_code refuse(const bound_op& o) noexcept
{
    if (o.as<Op>().from.options().algorithm <= rand::algorithm::mt19937)
        return {};
    return detail::op_error(errc::unsupported_op, Op::name,
                            {"the CPU has the generators philox and mt19937, the others need a GPU"});
}

/// Reserves the op's part of the sequence. The engine calls this in the order in which ops of a generator are started.
template <class Op>
result<readiness> prepare(backend& b, stream_state& s, bound_op& o)
{
    const Op& op = o.as<Op>();
    const auto [state, started] = b.resources().get<generators>().find(op.from);
    *static_cast<rand::drawn*>(o.reply) = {state.position, started};
    state.position = rand::position_after(op, state.position);
    if (op.from.options().algorithm == rand::algorithm::mt19937)
        o.state = &state;
    state.last = &s;
    state.last_position = s.pushed() + 1;
    return readiness::ready;
}

template <op... Ops>
void add_all(op_table& table, type_list<Ops...>)
{
    (table.add<Ops>({.run = run_op<rand_ops, Ops>, .refuse = refuse<Ops>, .prepare = prepare<Ops>}), ...);
}

} // namespace

void add_rand(op_table& table)
{
    add_all(table, rand::ops{});
}

} // namespace coaccel::host
