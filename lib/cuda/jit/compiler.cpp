#include "cuda/jit/compiler.hpp"

#include "cuda/jit/compile_plan.hpp"
#include "cuda/jit/disk_cache.hpp"
#include "cuda/jit/nvrtc_error.hpp"

#include <algorithm>
#include <vector>

namespace coaccel::cuda {
namespace {

constexpr const char* program_name = "kernel.cu";

class program {
public:
    explicit program(const nvrtc_api& api) noexcept : api_(api) {}
    program(const program&) = delete;
    program& operator=(const program&) = delete;
    ~program()
    {
        if (native_)
            (void)api_.nvrtcDestroyProgram(&native_);
    }

    nvrtcResult create(const std::string& source, const std::vector<jit::header>& headers)
    {
        std::vector<const char*> names, texts;
        for (const auto& h : headers) {
            names.push_back(h.name.c_str());
            texts.push_back(h.text.c_str());
        }
        return api_.nvrtcCreateProgram(&native_, source.c_str(), program_name, static_cast<int>(headers.size()),
                                       texts.data(), names.data());
    }

    nvrtcProgram native() const noexcept { return native_; }

    /// Calls a pair of NVRTC functions: `size` returns the length of the text that `get` copies.
    template <class Size, class Get>
    nvrtcResult text(Size size, Get get, std::string& out) const
    {
        std::size_t n = 0;
        if (const auto r = size(native_, &n); r != NVRTC_SUCCESS)
            return r;
        out.assign(n, '\0');
        return n == 0 ? NVRTC_SUCCESS : get(native_, out.data());
    }

private:
    const nvrtc_api& api_;
    nvrtcProgram native_ = nullptr;
};

std::string log_of(const nvrtc_api& api, const program& p)
{
    std::string log;
    if (p.text(api.nvrtcGetProgramLogSize, api.nvrtcGetProgramLog, log) != NVRTC_SUCCESS)
        return {};
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n'))
        log.pop_back();
    return log;
}

std::vector<int> supported_architectures(const nvrtc_api& api)
{
    int count = 0;
    if (api.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0)
        return {};
    std::vector<int> all(static_cast<std::size_t>(count));
    if (api.nvrtcGetSupportedArchs(all.data()) != NVRTC_SUCCESS)
        all.clear();
    return all;
}

result<compile_plan> plan_for(const nvrtc_api& api, const jit::compile_options& options, const compile_target& target)
{
    const int architecture = options.architecture() != 0 ? options.architecture() : target.architecture;
    return plan_compilation(options, architecture, {api.path, api.version, supported_architectures(api), api.build});
}

result<jit::compiled_code> run_compiler(const nvrtc_api& api, const std::string& source,
                                        const jit::compile_options& options, const compile_plan& plan)
{
    program p(api);
    if (auto ec = make_error(p.create(source, options.headers())))
        return ec;
    if (auto ec = make_error(api.nvrtcAddNameExpression(p.native(), options.name().c_str())))
        return ec;
    std::vector<const char*> texts;
    for (const auto& o : plan.options)
        texts.push_back(o.c_str());
    const auto r = api.nvrtcCompileProgram(p.native(), static_cast<int>(texts.size()), texts.data());

    jit::compiled_code made;
    made.log = log_of(api, p);
    if (r != NVRTC_SUCCESS) {
        if (r == NVRTC_ERROR_OUT_OF_MEMORY || (r != NVRTC_ERROR_COMPILATION && made.log.empty()))
            return make_error(r);
        return make_error_with_message(errc::compile_failed, std::move(made.log));
    }
    const char* symbol = nullptr;
    if (auto ec = make_error(api.nvrtcGetLoweredName(p.native(), options.name().c_str(), &symbol)))
        return ec;
    made.symbol = symbol;
    const auto got = plan.kind == code_kind::cubin ? p.text(api.nvrtcGetCUBINSize, api.nvrtcGetCUBIN, made.code)
                                                   : p.text(api.nvrtcGetPTXSize, api.nvrtcGetPTX, made.code);
    if (auto ec = make_error(got))
        return ec;
    if (made.code.empty())
        return make_error_with_message(errc::compile_failed, "the compiler made no code");
    return made;
}

error_code check(const std::string& source, const jit::compile_options& options)
{
    const auto is_bad = [](const std::string& text) { return text.empty() || text.find('\0') != text.npos; };
    if (is_bad(source))
        return make_error_with_message(errc::invalid_argument,
                                       "the source of a kernel is empty or has a zero byte in it");
    if (is_bad(options.name()))
        return make_error_with_message(errc::invalid_argument, "a kernel needs a name");
    if (options.architecture() < 0)
        return make_error_with_message(errc::invalid_argument, "an architecture is a number such as 90");
    return {};
}

} // namespace

result<jit::kernel> compile(const std::string& source, const jit::compile_options& options,
                            const compile_target& target)
{
    if (auto ec = check(source, options))
        return ec;
    const nvrtc_api* api = target.nvrtc;
    if (!api) {
        auto loaded = nvrtc_api::load();
        // Without a GPU as the target, the host function is enough.
        if (!loaded && options.host() && target.architecture == 0)
            return jit::make_host_kernel(options, loaded.error().message());
        if (!loaded)
            return loaded.error();
        api = loaded.value();
    }
    BOOST_OUTCOME_TRY(auto plan, plan_for(*api, options, target));

    const bool may_cache = options.cache() == jit::disk_caching::on;
    const disk_cache cache(options.cache_folder().empty() ? disk_cache::default_folder() : options.cache_folder(),
                           options.cache_limit());
    std::optional<std::string> key;
    if (may_cache)
        key = make_key(source, options, plan, api->version, target.driver_version);
    if (key)
        if (auto found = cache.find(*key)) {
            found->source = source;
            return jit::make_kernel(options, std::move(*found));
        }
    BOOST_OUTCOME_TRY(auto made, run_compiler(*api, source, options, plan));
    // Store only if no header has changed meanwhile: NVRTC may have read the old or the new text.
    if (key && key == make_key(source, options, plan, api->version, target.driver_version))
        (void)cache.store(*key, made);
    made.source = source;
    return jit::make_kernel(options, std::move(made));
}

bool can_cache(const std::string& source, const jit::compile_options& options, const compile_target& target)
{
    const auto plan = plan_for(*target.nvrtc, options, target);
    return plan && make_key(source, options, plan.value(), target.nvrtc->version, target.driver_version);
}

} // namespace coaccel::cuda
