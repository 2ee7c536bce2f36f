#include "jit/registry.hpp"

#include <coaccel/core/detail/op_error.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>

namespace coaccel::jit {
namespace {

bool is_empty(const dim3& d) noexcept
{
    return d.x == 0 || d.y == 0 || d.z == 0;
}

std::string given(const launch_argument& a)
{
    if (a.type.code != type_code::structure)
        return std::string("'").append(to_string(a.type)).append("'");
    return "a structure of " + std::to_string(a.type.size) + " bytes";
}

std::string hint(parameter_type parameter, parameter_type argument)
{
    const bool only_const = parameter.form != type_form::value && argument.form != type_form::value &&
                            parameter.form != argument.form && parameter.code == argument.code;
    if (!only_const)
        return {};
    return parameter.form == type_form::pointer ? "; use out or inout" : "; use in, or drop the const";
}

error_code mismatch(const image& i, std::string text)
{
    return make_error_with_message(errc::argument_mismatch, "jit.launch: " + i.name + ": " + std::move(text));
}

error_code check_arguments(const image& i, const launch_head& head)
{
    const auto& wanted = i.parameters.parameters;
    if (wanted.size() != head.count)
        return mismatch(i, "the kernel takes " + std::to_string(wanted.size()) + " arguments, given " +
                               std::to_string(head.count));
    for (std::size_t n = 0; n < wanted.size(); ++n) {
        const launch_argument& a = head.arguments()[n];
        if (!accepts(wanted[n].type, a.type))
            return mismatch(i, "argument " + std::to_string(n + 1) + ": the kernel takes '" + wanted[n].text +
                                   "', given " + given(a) + hint(wanted[n].type, a.type));
    }
    return {};
}

error_code empty(const image& i, std::string_view field, const dim3& d)
{
    return detail::op_error(errc::invalid_launch, "jit.launch",
                            {std::string_view(i.name), ": the ", field, " is ", d.x, " x ", d.y, " x ", d.z});
}

} // namespace

error_code no_kernel(std::string_view op) noexcept
{
    return detail::op_error(errc::invalid_argument, op,
                            {"the kernel was never compiled, or no copy of it is left; keep one until the op is "
                             "given to the device"});
}

launch_head make_head(const kernel& k, const launch_shape& shape, std::size_t count) noexcept
{
    return {k.id(), k ? k.native()->host : 0, static_cast<std::uint32_t>(count), shape};
}

error_code check_launch(const launch_head& head)
{
    const auto i = find_image(head.kernel);
    if (!i || head.host != i->host)
        return no_kernel("jit.launch");
    if (is_empty(head.shape.grid))
        return empty(*i, "grid", head.shape.grid);
    if (is_empty(head.shape.block))
        return empty(*i, "block", head.shape.block);
    return i->parameters.known ? check_arguments(*i, head) : error_code{};
}

error_code occupancy_op::check() const
{
    return find_image(kernel) ? error_code{} : no_kernel(name);
}

} // namespace coaccel::jit
