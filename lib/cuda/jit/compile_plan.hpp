#ifndef COACCEL_CUDA_JIT_COMPILE_PLAN_HPP
#define COACCEL_CUDA_JIT_COMPILE_PLAN_HPP

#include "cuda/jit/compiler.hpp"

#include <optional>
#include <vector>

namespace coaccel::cuda {

enum class code_kind : std::uint8_t { cubin, ptx };

/// What NVRTC is told, and what comes out.
struct compile_plan {
    std::vector<std::string> options;
    /// Where #include finds files of the caller's.
    std::vector<std::string> folders;
    /// Which NVRTC and which headers of the toolkit's.
    std::string toolkit;
    code_kind kind = code_kind::cubin;
};

/// What there is to know of an NVRTC before it is used.
struct compiler_facts {
    std::string path;
    /// 1000 times the major version plus 10 times the minor one.
    int version = 0;
    std::vector<int> architectures;
    /// Tells it from other releases of the same version.
    std::string build = {};
};

/// An architecture NVRTC does not know becomes PTX for the newest one below.
///
/// Errors: errc::invalid_argument for an architecture older than all of them.
result<compile_plan> plan_compilation(const jit::compile_options& options, int architecture,
                                      const compiler_facts& nvrtc);

/// Everything the compiled code depends on; none when that cannot be told.
std::optional<std::string> make_key(const std::string& source, const jit::compile_options& options,
                                    const compile_plan& plan, int nvrtc_version, int driver_version);

} // namespace coaccel::cuda

#endif
