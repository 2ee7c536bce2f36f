#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/ops/rand/generator.hpp>

#include <atomic>

namespace coaccel::rand {
namespace {

constexpr std::uint32_t most_dimensions = 20000;
/// So that positions do not overflow.
constexpr std::uint64_t most_offset = std::uint64_t(1) << 62;

using coaccel::detail::op_error;

} // namespace

generator make_generator(const generator_options& options) noexcept
{
    static std::atomic<std::uint64_t> last{0};
    generator made;
    made.id_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
    made.options_ = options;
    return made;
}

error_code generator::check(std::string_view op) const noexcept
{
    using coaccel::detail::not_enumerated;
    const auto& o = options_;
    if (id_ == 0)
        return op_error(errc::invalid_argument, op, {"from is an empty generator; make one with rand::make_generator"});
    if (o.algorithm > algorithm::scrambled_sobol64)
        return not_enumerated(op, "from.algorithm", static_cast<unsigned>(o.algorithm), "rand::algorithm");
    if (o.ordering > ordering::dynamic)
        return not_enumerated(op, "from.ordering", static_cast<unsigned>(o.ordering), "rand::ordering");
    if (o.offset > most_offset)
        return op_error(errc::invalid_argument, op, {"from.offset is ", o.offset, ", must be at most ", most_offset});
    if (o.algorithm == algorithm::mt19937 && o.offset != 0)
        return op_error(errc::invalid_argument, op, {"from.offset is ", o.offset, ", but mt19937 has no offset"});
    if (!is_quasi_random(o.algorithm)) {
        if (o.dimensions != 1)
            return op_error(errc::invalid_argument, op,
                            {"from.dimensions is ", o.dimensions, ", but only quasi-random numbers have dimensions"});
        if (o.ordering == ordering::seeded && o.algorithm != algorithm::xorwow)
            return op_error(errc::invalid_argument, op, {"from.ordering is seeded, which only xorwow has"});
        const bool moves = o.algorithm == algorithm::xorwow || o.algorithm == algorithm::mrg32k3a;
        if (o.ordering == ordering::dynamic && !moves)
            return op_error(errc::invalid_argument, op,
                            {"from.ordering is dynamic, which only xorwow and mrg32k3a have"});
        return {};
    }
    if (o.seed != 0)
        return op_error(errc::invalid_argument, op,
                        {"from.seed is ", o.seed, ", but quasi-random numbers have no seed"});
    if (o.ordering != ordering::standard)
        return op_error(errc::invalid_argument, op,
                        {"from.ordering is not standard, but the numbers are quasi-random"});
    if (o.dimensions == 0 || o.dimensions > most_dimensions)
        return op_error(errc::invalid_argument, op,
                        {"from.dimensions is ", o.dimensions, ", must be from 1 to ", most_dimensions});
    return {};
}

} // namespace coaccel::rand
