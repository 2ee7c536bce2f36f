#ifndef COACCEL_JIT_IMAGE_HPP
#define COACCEL_JIT_IMAGE_HPP

#include "jit/signature.hpp"

#include <coaccel/ops/jit/compile.hpp>
#include <coaccel/ops/jit/kernel.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace coaccel::jit {

/// The state of a kernel handle; immutable once registered.
struct image {
    image() = default;
    image(const image&) = delete;
    image& operator=(const image&) = delete;
    /// Removes it from the registry.
    COACCEL_DECL ~image();

    std::uint64_t id = 0;
    std::string name;
    /// The name in the code: mangled, unless it is extern "C".
    std::string symbol;
    /// CUBIN or PTX; empty if there is only a host function.
    std::string code;
    std::string log;
    bool from_cache = false;
    signature parameters;
    /// Number of the host function in the registry; 0: none.
    std::uint32_t host = 0;
    /// What the code was compiled from; empty if this is unknown, as in a worker.
    std::string source;
    /// How it was compiled.
    compile_options options;
};

/// The result of the compiler or of the disk cache.
struct compiled_code {
    std::string symbol;
    std::string code;
    std::string log;
    bool from_cache = false;
    /// What it was compiled from; empty: unknown.
    std::string source{};
};

/// Makes a kernel from compiled code and the host function of the options, if any.
///
/// Errors: errc::argument_mismatch when host function and kernel take different arguments.
COACCEL_DECL result<kernel> make_kernel(const compile_options& options, compiled_code code);

/// Makes a kernel that runs on the host only; `why` becomes its log.
///
/// Errors: errc::unsupported_op without a host function, errc::invalid_argument without a name.
COACCEL_DECL result<kernel> make_host_kernel(const compile_options& options, std::string why);

} // namespace coaccel::jit

#endif
