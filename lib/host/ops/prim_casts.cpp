#include "host/ops/prim_groups.hpp"
#include "host/ops/prim_loops.hpp"
#include "prim/functions.hpp"

#include <coaccel/ops/prim/elementwise.hpp>

#include <limits>

namespace coaccel::host {
namespace {

template <class To, class From>
To convert(const From& x)
{
    if constexpr (prim::detail::is_complex_element<From>) {
        using part = typename To::value_type;
        return To(static_cast<part>(x.real()), static_cast<part>(x.imag()));
    } else if constexpr (prim::detail::is_complex_element<To>) {
        return To(convert<typename To::value_type>(x));
    } else if constexpr (prim::integer<To> && !prim::integer<From>) {
        using wide = std::conditional_t<std::is_same_v<From, double>, double, float>;
        using limits = std::numeric_limits<To>;
        // Twice the half of the range, because the range itself does not fit into the type.
        constexpr wide end = wide(2) * static_cast<wide>(limits::max() / 2 + 1);
        return coaccel_prim::limited<To, wide>(static_cast<wide>(x), limits::min(), limits::max(), end);
    } else if constexpr (std::is_arithmetic_v<To>) {
        return static_cast<To>(x);
    } else if constexpr (std::is_arithmetic_v<From>) {
        return To(x);
    } else {
        return To(float(x));
    }
}

struct casts {
    template <class From, class To>
    static void run(const prim::cast<From, To>& op, const bound_op& o)
    {
        const From* x = o.data(op.x);
        To* y = o.data(op.y);
        for_each_element(loops_of(op.shape, op.y.size()),
                         [=](std::uint64_t i, std::uint64_t j) { y[j] = convert<To>(x[i]); });
    }
};

template <class... Froms>
void add_casts(op_table& table, type_list<Froms...>)
{
    (add_ops<casts>(table, prim::casts_from<Froms>{}), ...);
}

} // namespace

void add_prim_casts(op_table& table)
{
    add_casts(table, element_types{});
}

} // namespace coaccel::host
