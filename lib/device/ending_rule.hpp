#ifndef COACCEL_DEVICE_ENDING_RULE_HPP
#define COACCEL_DEVICE_ENDING_RULE_HPP

#include <coaccel/core/config.hpp>

#include <boost/asio/cancellation_type.hpp>

#include <cstdint>

namespace coaccel::detail {

/// The stage of an op when its caller gives up waiting.
enum class op_stage : std::uint8_t {
    /// In the queue of its device.
    waiting,
    /// Handed to the context.
    started,
    /// Started, and its caller has been answered, or will be once the device no longer uses the caller's memory.
    given_up,
};

/// Why a caller gives up waiting.
enum class ending : std::uint8_t { total, partial, terminal, deadline };

/// When the caller's operation completes.
enum class answer : std::uint8_t {
    /// At once.
    now,
    /// When the device no longer uses the caller's memory.
    when_left,
    /// With the outcome of the op, as if it had not been given up.
    as_it_ends,
};

/// The single definition of cancellation and deadlines. Total cancellation promises that the op had no effect, which
/// cannot be promised for a started op.
constexpr answer when_to_answer(op_stage stage, ending why, bool uses_callers_memory) noexcept
{
    if (stage == op_stage::waiting)
        return answer::now;
    if (stage == op_stage::given_up || why == ending::total)
        return answer::as_it_ends;
    return uses_callers_memory ? answer::when_left : answer::now;
}

/// If several types are set, the one with the weakest guarantee, because the caller accepts each of them.
constexpr ending ending_of(asio::cancellation_type type) noexcept
{
    using asio::cancellation_type;
    if ((type & cancellation_type::terminal) != cancellation_type::none)
        return ending::terminal;
    return (type & cancellation_type::partial) != cancellation_type::none ? ending::partial : ending::total;
}

} // namespace coaccel::detail

#endif
