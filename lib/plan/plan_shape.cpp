#include <coaccel/plan/plan_shape.hpp>

#include <limits>

namespace coaccel {

std::uint64_t plan_shape::count() const noexcept
{
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    bool too_many = false;
    std::uint64_t n = dims.empty() ? 0 : 1;
    for (const std::uint64_t d : dims) {
        if (d == 0)
            return 0;
        too_many = too_many || n > most / d;
        n *= d;
    }
    return too_many ? most : n;
}

std::string to_string(const plan_shape& s)
{
    std::string text;
    for (std::size_t i = 0; i < s.dims.size(); ++i) {
        const auto number = std::to_string(s.dims[i]);
        text += i > 0 ? " x " : "";
        text += i == 0 && s.batched ? "[" + number + "]" : number;
    }
    return text;
}

} // namespace coaccel
