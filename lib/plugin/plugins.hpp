#ifndef COACCEL_PLUGIN_PLUGINS_HPP
#define COACCEL_PLUGIN_PLUGINS_HPP

#include <coaccel/core/op.hpp>
#include <coaccel/core/result.hpp>
#include <coaccel/plugin/interface.hpp>

#include <cstdint>
#include <string>
#include <string_view>

// The functions of the plug-ins in this process. A plug-in is never unloaded: ops in flight and the CUDA runtime refer
// to it until the process ends.
namespace coaccel::plugin {

/// A function of a loaded plug-in.
struct loaded_function {
    const function* what = nullptr; ///< Null if there is no such function.
    std::uint32_t version = 0;      ///< At least 1. Not read from `what`: tables of older plug-ins do not have it.

    explicit operator bool() const noexcept { return what != nullptr; }
};

/// Adds the plug-in's functions, unless it was loaded before.
///
/// Errors: errc::plugin_missing when the system cannot load it, it is not a plug-in, it is for another version of the
/// interface, or another plug-in has a function of the same name; the message says which.
COACCEL_DECL error_code load(const std::string& file);

/// Empty if there is no such function.
COACCEL_DECL loaded_function find(std::string_view name) noexcept;

/// Whether this process has loaded a plug-in.
COACCEL_DECL bool any_loaded() noexcept;

/// Calls the function named by a call_op, with the memory of its operands.
COACCEL_DECL error_code run(const bound_op& call, const native_stream& where) noexcept;

} // namespace coaccel::plugin

#endif
