#ifndef COACCEL_PLUGIN_PLUGINS_HPP
#define COACCEL_PLUGIN_PLUGINS_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/plugin/interface.hpp>

#include <string>
#include <string_view>

// The functions of the plug-ins in this process. A plug-in is never unloaded: ops under way and the CUDA runtime refer
// to it until the end.
namespace coaccel::plugin {

/// Adds what the plug-in has, unless it was loaded before.
///
/// Errors: errc::plugin_missing when the system refuses to load it, it is no plug-in or one for another version of the
/// interface, or another has a function of the same name; the message says which.
COACCEL_DECL error_code load(const std::string& file);

/// Null: no such function.
COACCEL_DECL const function* find(std::string_view name) noexcept;

/// Calls the function that a call_op names, with the memory of its operands.
COACCEL_DECL error_code run(const bound_op& call, const native_stream& where) noexcept;

} // namespace coaccel::plugin

#endif
