#ifndef COACCEL_JIT_SIGNATURE_HPP
#define COACCEL_JIT_SIGNATURE_HPP

#include <coaccel/ops/jit/host_function.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace coaccel::jit {

struct parameter {
    parameter_type type;
    /// The C++ type, as written by the demangler or derived from the host function.
    std::string text;
};

/// The parameters of a kernel, if known.
struct signature {
    bool known = false;
    std::vector<parameter> parameters;
};

/// Parses a C++ symbol. An unmangled one, such as that of an extern "C" function, does not contain its parameters.
COACCEL_DECL signature parse_symbol(const std::string& symbol);

/// Parses a function as printed by a demangler, such as "void ns::scale<float>(float const*, float*, float)".
COACCEL_DECL signature parse_demangled(std::string_view function);

/// Parses one parameter's type, such as "float const*".
COACCEL_DECL parameter_type parse_type(std::string_view text);

COACCEL_DECL signature signature_of(const host_function& f);

/// Completes the kernel's parameters with the types of the host function. Returns false if the two do not match, with
/// the reason in `why`.
COACCEL_DECL bool merge(signature& kernel, const signature& host, std::string& why);

} // namespace coaccel::jit

#endif
