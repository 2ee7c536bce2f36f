#ifndef COACCEL_CUDA_JIT_COMPILE_PLAN_HPP
#define COACCEL_CUDA_JIT_COMPILE_PLAN_HPP

#include "cuda/jit/compiler.hpp"

#include <optional>
#include <vector>

namespace coaccel::cuda {

enum class code_kind : std::uint8_t { cubin, ptx };

/// The options for NVRTC and the kind of code it produces.
struct compile_plan {
    std::vector<std::string> options;
    /// Folders in which #include finds the caller's files.
    std::vector<std::string> folders;
    /// Identifies the NVRTC build and the toolkit headers.
    std::string toolkit;
    code_kind kind = code_kind::cubin;
};

/// Properties of an NVRTC library.
struct compiler_facts {
    std::string path;
    /// 1000 * major + 10 * minor.
    int version = 0;
    std::vector<int> architectures;
    /// Distinguishes releases of the same version.
    std::string build = {};
};

/// For an architecture that NVRTC does not know, the result is PTX for the newest older one.
///
/// Errors: errc::invalid_argument for an architecture older than all of them.
result<compile_plan> plan_compilation(const jit::compile_options& options, int architecture,
                                      const compiler_facts& nvrtc);

/// Everything that the compiled code depends on; nothing if that is unknown.
std::optional<std::string> make_key(const std::string& source, const jit::compile_options& options,
                                    const compile_plan& plan, int nvrtc_version, int driver_version);

} // namespace coaccel::cuda

#endif
