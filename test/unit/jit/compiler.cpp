#include "nvrtc.hpp"

#include <coaccel/cuda/libraries.hpp>

#include <algorithm>

namespace test_jit_compiler {

namespace {

using namespace coaccel;
using test::compile;
using options = jit::compile_options;

void saxpy(const jit::launch_shape&, const float*, float*, float, std::uint32_t) {}

std::string error_text(const result<jit::kernel>& r)
{
    return r ? "compiled" : r.error().message();
}

} // namespace

TEST_SUITE_BEGIN("cuda::compile");

TEST_CASE("an extern C kernel compiles to a CUBIN")
{
    if (!test::nvrtc())
        return;
    const auto made = compile(test::saxpy_source, options("saxpy"));
    REQUIRE_MESSAGE(made.has_value(), error_text(made));
    const auto& k = made.value();
    CHECK(k.name() == "saxpy");
    CHECK(k.native()->symbol == "saxpy");
    CHECK(test::is_cubin(k));
    CHECK_FALSE(k.knows_parameters());
    CHECK_FALSE(k.from_cache());
    CHECK(k.id() != 0);
}

TEST_CASE("a template is compiled by its name expression, and its parameters are known")
{
    if (!test::nvrtc())
        return;
    const std::string source = R"(
        #include <cuda_fp16.h>
        struct params { float x; int n; };
        enum class mode : int { a };
        namespace ns {
        template <class T> struct id { using type = T; };
        template <class T>
        __global__ void f(const T* __restrict__ x, T* __restrict__ y, T a, typename id<T>::type* z, unsigned n,
                          long long m, params p, mode q, const __half* h, float2* c, const bool b)
        { y[0] = x[0] * a; }
        })";
    const auto made = compile(source, options("ns::f<float>"));
    REQUIRE_MESSAGE(made.has_value(), error_text(made));
    const auto& k = made.value();
    CHECK(k.knows_parameters());
    CHECK(k.parameters().size() == 11);
    struct own_params {
        float x;
        int n;
    };
    enum class own_mode : int { a };
    const ref<float> f;
    CHECK_FALSE(jit::launch(k, {}, in(f), out(f), 1.0f, out(f), 1u, 1ll, own_params{}, own_mode::a, in(ref<half>()),
                            out(ref<std::complex<float>>()), true)
                    .check());
    CHECK(jit::launch(k, {}, in(f), out(f), 1.0, out(f), 1u, 1ll, own_params{}, own_mode::a, in(ref<half>()),
                      out(ref<std::complex<float>>()), true)
              .check() == errc::argument_mismatch);

    const auto doubles = compile(source, options("ns::f<double>"));
    REQUIRE_MESSAGE(doubles.has_value(), error_text(doubles));
    CHECK(doubles.value().parameters().front() == "double const*");
}

TEST_CASE("source that does not compile is an error with the compiler's log")
{
    if (!test::nvrtc())
        return;
    const struct {
        const char* name;
        std::string source;
        options how;
        const char* word;
    } rows[] = {
        {"syntax", "extern \"C\" __global__ void f() { nonsense; }", options("f"), "nonsense"},
        {"no such kernel", "extern \"C\" __global__ void f() {}", options("g"), "g"},
        {"no such header", "#include \"not_there.h\"\nextern \"C\" __global__ void f() {}", options("f"),
         "not_there.h"},
        {"no such option", "extern \"C\" __global__ void f() {}", options("f").option("--no-such-option"),
         "--no-such-option"},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        const auto made = compile(r.source, r.how);
        REQUIRE_FALSE(made.has_value());
        CAPTURE(made.error().message());
        CHECK(made.error() == errc::compile_failed);
        CHECK(made.error().message().find(r.word) != std::string::npos);
    }
}

TEST_CASE("invalid arguments are refused before compilation")
{
    CHECK(compile("", options("f")).error() == errc::invalid_argument);
    CHECK(compile(std::string("a\0b", 3), options("f")).error() == errc::invalid_argument);
    CHECK(compile("code", options()).error() == errc::invalid_argument);
    CHECK(compile("code", options("f").architecture(-1)).error() == errc::invalid_argument);
}

TEST_CASE("warnings are in the kernel's log")
{
    if (!test::nvrtc())
        return;
    const auto made = compile("extern \"C\" __global__ void f() { int unused_thing; }", options("f"));
    REQUIRE_MESSAGE(made.has_value(), error_text(made));
    CHECK(made.value().log().find("unused_thing") != std::string::npos);
}

TEST_CASE("headers of CUDA and CCCL are found")
{
    if (!test::nvrtc())
        return;
    for (const char* header : {"cuda_fp16.h", "cuda_bf16.h", "cuda/std/span", "cuda/std/cstdint"}) {
        CAPTURE(header);
        const auto made =
            compile("#include <" + std::string(header) + ">\nextern \"C\" __global__ void f() {}", options("f"));
        CHECK_MESSAGE(made.has_value(), error_text(made));
    }
}

TEST_CASE("headers in memory and in folders are found")
{
    if (!test::nvrtc())
        return;
    const test::temporary_folder folder;
    test::write_file(folder / "from_folder.h", "#define FOLDER 1\n");
    const std::string source = R"(
        #include "from_memory.h"
        #include "from_folder.h"
        static_assert(MEMORY + FOLDER == 3);
        extern "C" __global__ void f() {})";
    const auto made =
        compile(source, options("f").add_header("from_memory.h", "#define MEMORY 2\n").include_folder(folder.path()));
    CHECK_MESSAGE(made.has_value(), error_text(made));
}

TEST_CASE("the standard is C++17 unless an option says otherwise")
{
    if (!test::nvrtc())
        return;
    const std::string source = "static_assert(__cplusplus == STANDARD);\nextern \"C\" __global__ void f() {}";
    CHECK(compile(source, options("f").option("-DSTANDARD=201703L")).has_value());
    CHECK(compile(source, options("f").option("-DSTANDARD=202002L").option("--std=c++20")).has_value());
}

TEST_CASE("an architecture unknown to NVRTC becomes PTX, and so does an unspecified one")
{
    if (!test::nvrtc())
        return;
    const options off = options("saxpy").cache(jit::disk_caching::off);
    for (const int architecture : {0, 9999}) {
        CAPTURE(architecture);
        const auto made = cuda::compile(test::saxpy_source, off, {.architecture = architecture});
        REQUIRE_MESSAGE(made.has_value(), error_text(made));
        CHECK_FALSE(test::is_cubin(made.value()));
        CHECK(made.value().native()->code.find(".target sm_") != std::string::npos);
    }
    auto own = off;
    const auto made = cuda::compile(test::saxpy_source, own.architecture(90), {.architecture = 9999});
    REQUIRE(made.has_value());
    CHECK(test::is_cubin(made.value()));
    const auto old = cuda::compile(test::saxpy_source, off, {.architecture = 10});
    REQUIRE_FALSE(old.has_value());
    CHECK(old.error() == errc::invalid_argument);
}

TEST_CASE("an architecture among the options is kept")
{
    if (!test::nvrtc())
        return;
    const auto made = compile(test::saxpy_source, options("saxpy").option("--gpu-architecture=compute_80"));
    REQUIRE_MESSAGE(made.has_value(), error_text(made));
    CHECK(made.value().native()->code.find(".target sm_80") != std::string::npos);
}

TEST_CASE("the host function is checked against the kernel")
{
    if (!test::nvrtc())
        return;
    const std::string source = "__global__ void saxpy(const float*, float*, double, unsigned) {}";
    const auto made = compile(source, options("saxpy").host(saxpy));
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error() == errc::argument_mismatch);
    const auto plain = compile(test::saxpy_source, options("saxpy").host(saxpy));
    REQUIRE(plain.has_value());
    CHECK(plain.value().knows_parameters());
}

TEST_SUITE_END();

} // namespace test_jit_compiler
