#ifndef COACCEL_OPS_RAND_GENERATOR_HPP
#define COACCEL_OPS_RAND_GENERATOR_HPP

#include <coaccel/core/op.hpp>

#include <boost/describe/enum.hpp>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace coaccel::rand {

/// How numbers are generated. The CPU has `philox` and `mt19937`; a GPU has all of them.
enum class algorithm : std::uint8_t {
    philox,            ///< Philox 4x32-10. The same bits on the CPU and on a GPU.
    mt19937,           ///< Mersenne Twister. It has no offset. The CPU and a GPU produce different sequences.
    xorwow,            ///< XORWOW.
    mrg32k3a,          ///< MRG32k3a.
    sobol32,           ///< Quasi-random Sobol numbers with 32 bits.
    scrambled_sobol32, ///< Scrambled Sobol numbers with 32 bits.
    sobol64,           ///< Quasi-random Sobol numbers with 64 bits.
    scrambled_sobol64, ///< Scrambled Sobol numbers with 64 bits.
};

/// The order in which a GPU stores the numbers of a pseudo-random generator; see the documentation of cuRAND.
enum class ordering : std::uint8_t {
    standard, ///< The default of cuRAND; `legacy` for philox, so that it is the same on the CPU.
    legacy,   ///< The same with every version of cuRAND.
    seeded,   ///< Faster to start and statistically weaker; only `xorwow`.
    dynamic,  ///< The fastest order, which depends on the GPU; only `xorwow` and `mrg32k3a`.
};

BOOST_DESCRIBE_ENUM(algorithm, philox, mt19937, xorwow, mrg32k3a, sobol32, scrambled_sobol32, sobol64,
                    scrambled_sobol64)
BOOST_DESCRIBE_ENUM(ordering, standard, legacy, seeded, dynamic)

/// Whether the numbers are quasi-random.
constexpr bool is_quasi_random(algorithm a) noexcept
{
    return a >= algorithm::sobol32;
}

/// The options of a generator.
struct generator_options {
    rand::algorithm algorithm = algorithm::philox; ///< How numbers are generated.
    std::uint64_t seed = 0;                        ///< Selects the sequence; must be 0 for quasi-random numbers.
    std::uint64_t offset = 0;                      ///< Numbers to skip, at most 2^62; must be 0 for `mt19937`.
    rand::ordering ordering = ordering::standard;  ///< The order of the numbers in memory.
    /// For quasi-random numbers: 1 to 20000. An op then fills its buffer with all numbers of the first dimension, then
    /// all of the second, and so on.
    std::uint32_t dimensions = 1;
};

/// A generator of random numbers: a small value that ops refer to; made by make_generator.
///
/// Its state lives with the context of the device that uses it. Each op continues where the previous op has ended, in
/// the order in which the ops are started. A new generation of the device starts the generator again from its seed and
/// offset, and so does a device that has used more than 256 other generators meanwhile; the reply of the op then says
/// so. Every device has its own state of a generator.
///
/// Exceptions: no function throws.
class generator {
public:
    /// A default-constructed generator is refused by every op.
    constexpr generator() noexcept = default;

    /// Identifies it in this process; 0: default-constructed.
    constexpr std::uint64_t id() const noexcept { return id_; }
    constexpr const generator_options& options() const noexcept { return options_; } ///< As given.

    /// Whether an op may use it; `op` is the name of the op. Errors: errc::invalid_argument.
    COACCEL_DECL error_code check(std::string_view op) const noexcept;

private:
    friend COACCEL_DECL generator make_generator(const generator_options& options) noexcept;

    std::uint64_t id_ = 0;
    generator_options options_;
};

/// A new generator. Ops refuse options that do not fit together.
COACCEL_DECL generator make_generator(const generator_options& options = {}) noexcept;

/// The reply of every op that draws numbers.
struct drawn {
    /// The position in the sequence at which the op has begun. With philox it counts words of 32 bits: a generator with
    /// the same seed and this offset produces the same numbers. With other algorithms it counts numbers.
    std::uint64_t position = 0;
    /// The context had no state of the generator: this is its first use, or it has begun again from its seed. A failed
    /// op counts as a use.
    bool started = false;
};

namespace detail {

/// Whether the bytes of a reply from another process are a value. Not every byte is a bool.
inline bool is_value(const drawn& d) noexcept
{
    unsigned char flag = 0;
    std::memcpy(&flag, &d.started, sizeof(flag));
    return flag <= 1;
}

} // namespace detail

} // namespace coaccel::rand

namespace coaccel::detail {

template <>
inline constexpr op_field::content content_of<rand::generator> = op_field::content::generator;

} // namespace coaccel::detail

#endif
