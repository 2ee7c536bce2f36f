#include "core/option_check.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/ops/prim/histogram.hpp>

#include <cmath>
#include <exception>

namespace coaccel::prim::detail {

error_code check_bins(std::string_view op, double low, double high, std::uint64_t bins) noexcept
try {
    using coaccel::detail::op_error;
    using coaccel::detail::option_value;
    if (bins == 0)
        return coaccel::detail::is_zero(op, "bins");
    if (!(low < high))
        return op_error(
            errc::invalid_argument, op,
            {"low is ", option_value(low).text(), ", must be less than high, which is ", option_value(high).text()});
    if (!std::isfinite((high - low) * static_cast<double>(bins)))
        return op_error(errc::invalid_argument, op,
                        {"(high - low) * bins is not finite: low is ", option_value(low).text(), ", high is ",
                         option_value(high).text(), ", bins is ", bins});
    return {};
} catch (const std::exception&) {
    // No memory for the message.
    return errc::invalid_argument;
}

} // namespace coaccel::prim::detail
