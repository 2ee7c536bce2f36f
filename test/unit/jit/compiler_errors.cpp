#include "cuda/jit/nvrtc_error.hpp"
#include "nvrtc.hpp"

#include <cstring>

namespace test_jit_compiler_errors {

namespace {

using namespace coaccel;
using options = jit::compile_options;

// The results of the functions below; tests change one at a time.
nvrtcResult create_answer, name_answer, compile_answer, lowered_answer, cubin_answer;
const char* log_text = "";
int programs = 0;
int created_with_headers = 0;

/// A compiler that turns every source into "code".
cuda::nvrtc_api fake()
{
    create_answer = name_answer = compile_answer = lowered_answer = cubin_answer = NVRTC_SUCCESS;
    log_text = "";
    programs = 0;
    cuda::nvrtc_api api;
    api.path = "/none/lib/libnvrtc.so";
    api.version = 13000;
    api.nvrtcGetNumSupportedArchs = [](int* n) {
        *n = 2;
        return NVRTC_SUCCESS;
    };
    api.nvrtcGetSupportedArchs = [](int* all) {
        all[0] = 80;
        all[1] = 90;
        return NVRTC_SUCCESS;
    };
    api.nvrtcCreateProgram = [](nvrtcProgram* p, const char*, const char*, int n, const char* const*,
                                const char* const*) {
        created_with_headers = n;
        if (create_answer == NVRTC_SUCCESS) {
            ++programs;
            *p = reinterpret_cast<nvrtcProgram>(&programs);
        }
        return create_answer;
    };
    api.nvrtcDestroyProgram = [](nvrtcProgram* p) {
        --programs;
        *p = nullptr;
        return NVRTC_SUCCESS;
    };
    api.nvrtcAddNameExpression = [](nvrtcProgram, const char*) { return name_answer; };
    api.nvrtcCompileProgram = [](nvrtcProgram, int, const char* const*) { return compile_answer; };
    api.nvrtcGetLoweredName = [](nvrtcProgram, const char*, const char** name) {
        *name = "_Z1fv";
        return lowered_answer;
    };
    api.nvrtcGetProgramLogSize = [](nvrtcProgram, std::size_t* n) {
        *n = std::strlen(log_text) + 1;
        return NVRTC_SUCCESS;
    };
    api.nvrtcGetProgramLog = [](nvrtcProgram, char* to) {
        std::memcpy(to, log_text, std::strlen(log_text) + 1);
        return NVRTC_SUCCESS;
    };
    api.nvrtcGetCUBINSize = [](nvrtcProgram, std::size_t* n) {
        *n = 4;
        return cubin_answer;
    };
    api.nvrtcGetCUBIN = [](nvrtcProgram, char* to) {
        std::memcpy(to, "code", 4);
        return cubin_answer;
    };
    return api;
}

result<jit::kernel> compile_with(const cuda::nvrtc_api& api, options how)
{
    return cuda::compile("source", how.cache(jit::disk_caching::off), {.architecture = 90, .nvrtc = &api});
}

} // namespace

TEST_SUITE_BEGIN("cuda::compile");

TEST_CASE("each failure of NVRTC is reported and leaves no program behind")
{
    const auto api = fake();
    REQUIRE(compile_with(api, options("f").add_header("a", "")).has_value());
    CHECK(created_with_headers == 1);
    for (auto* answer : {&create_answer, &name_answer, &compile_answer, &lowered_answer, &cubin_answer}) {
        *answer = NVRTC_ERROR_INTERNAL_ERROR;
        const auto made = compile_with(api, options("f"));
        *answer = NVRTC_SUCCESS;
        REQUIRE_FALSE(made.has_value());
        CHECK(made.error() == cuda::make_error(NVRTC_ERROR_INTERNAL_ERROR));
        CHECK(programs == 0);
    }
    CHECK(compile_with(api, options("f")).has_value());
}

TEST_CASE("running out of memory is not reported as a compile error")
{
    const auto api = fake();
    compile_answer = NVRTC_ERROR_OUT_OF_MEMORY;
    log_text = "some log";
    const auto made = compile_with(api, options("f"));
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error() == cuda::make_error(NVRTC_ERROR_OUT_OF_MEMORY));
}

TEST_CASE("trailing line breaks of the log are removed")
{
    const auto api = fake();
    log_text = "a warning\n\n";
    const auto made = compile_with(api, options("f"));
    REQUIRE(made.has_value());
    CHECK(made.value().log() == "a warning");
}

TEST_SUITE_END();

} // namespace test_jit_compiler_errors
