#include "cuda/prim/prim_kernels.hpp"

#include "cuda/prim/kernel_names.hpp"
#include "cuda/prim/kernel_source.hpp"
#include "nvrtc.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace test_jit_prim_kernels {

namespace {

using namespace coaccel;

} // namespace

TEST_SUITE_BEGIN("prim kernels");

TEST_CASE("the kernels have different names")
{
    const auto names = cuda::prim_kernel_names();
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
    CHECK(names.size() > 600);
}

TEST_CASE("NVRTC compiles every kernel, without a warning")
{
    const auto* api = test::nvrtc();
    if (!api)
        return;
    const std::string source = cuda::prim_kernel_source();
    const auto names = cuda::prim_kernel_names();
    // All in one program, without optimisation and machine code, which would take minutes.
    nvrtcProgram program = nullptr;
    REQUIRE(api->nvrtcCreateProgram(&program, source.c_str(), "prim.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
    for (const auto& name : names)
        REQUIRE(api->nvrtcAddNameExpression(program, name.c_str()) == NVRTC_SUCCESS);
    const char* options[] = {"--gpu-architecture=compute_90", "--std=c++17", "--device-debug",
                             "--diag-suppress=177,186"};
    const auto compiled = api->nvrtcCompileProgram(program, static_cast<int>(std::size(options)), options);
    std::size_t size = 0;
    CHECK(api->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS);
    std::string log(size, ' ');
    CHECK(api->nvrtcGetProgramLog(program, log.data()) == NVRTC_SUCCESS);
    CHECK_MESSAGE(compiled == NVRTC_SUCCESS, log.substr(0, 4000));
    CHECK_MESSAGE(size <= 1, log.substr(0, 4000));
    std::set<std::string> symbols;
    if (compiled == NVRTC_SUCCESS)
        for (const auto& name : names) {
            const char* symbol = nullptr;
            REQUIRE_MESSAGE(api->nvrtcGetLoweredName(program, name.c_str(), &symbol) == NVRTC_SUCCESS, name);
            symbols.insert(symbol);
        }
    CHECK(symbols.size() == names.size());
    CHECK(api->nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
}

TEST_CASE("one kernel of each group compiles to machine code by the path that ops use")
{
    if (!test::nvrtc())
        return;
    for (const char* name :
         {"coaccel_prim::unary<coaccel_prim::real_gelu,coaccel_prim::f16>",
          "coaccel_prim::cast<coaccel_prim::i64,coaccel_prim::f8_e5m2>",
          "coaccel_prim::softmax<coaccel_prim::log_softmax_value,coaccel_prim::bf16>",
          "coaccel_prim::reduce<coaccel_prim::reduce_sum,coaccel_prim::f32>",
          "coaccel_prim::scan<coaccel_prim::reduce_max,coaccel_prim::f16>",
          "coaccel_prim::transpose<coaccel_prim::c128>", "coaccel_prim::top_k<coaccel_prim::f64>",
          "coaccel_prim::sort_pairs<coaccel_prim::i64>", "coaccel_prim::select<coaccel_prim::c128>",
          "coaccel_prim::run_length<coaccel_prim::bf16>", "coaccel_prim::histogram<coaccel_prim::f16>"}) {
        const auto made = test::compile(cuda::prim_kernel_source(), cuda::prim_compile_options(name));
        REQUIRE_MESSAGE(made.has_value(), made.error().message());
        CHECK(test::is_cubin(made.value()));
        CHECK(made.value().log().empty());
    }
}

TEST_SUITE_END();

} // namespace test_jit_prim_kernels
