#ifndef COACCEL_JIT_SIGNATURE_HPP
#define COACCEL_JIT_SIGNATURE_HPP

#include <coaccel/ops/jit_host_function.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace coaccel::jit {

struct parameter {
    parameter_type type;
    /// In C++, as the compiler or the host function has it.
    std::string text;
};

/// What a kernel takes, where that is known.
struct signature {
    bool known = false;
    std::vector<parameter> parameters;
};

/// From a C++ symbol. One that is not mangled, as those of extern "C" functions, says nothing of its parameters.
COACCEL_DECL signature parse_symbol(const std::string& symbol);

/// From a function as a demangler prints it, such as "void ns::scale<float>(float const*, float*, float)".
COACCEL_DECL signature parse_demangled(std::string_view function);

/// From one parameter's type, such as "float const*".
COACCEL_DECL parameter_type parse_type(std::string_view text);

COACCEL_DECL signature signature_of(const host_function& f);

/// Fills in what only the host function knows of the kernel's parameters. False when the one cannot stand in for the
/// other; `why` says it.
COACCEL_DECL bool merge(signature& kernel, const signature& host, std::string& why);

} // namespace coaccel::jit

#endif
