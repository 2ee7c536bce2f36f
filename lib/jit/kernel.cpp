#include "jit/registry.hpp"

#include <utility>

namespace coaccel::jit {
namespace {

const std::string nothing;

} // namespace

const std::string& kernel::name() const noexcept
{
    return image_ ? image_->name : nothing;
}

std::vector<std::string> kernel::parameters() const
{
    std::vector<std::string> texts;
    if (image_)
        for (const auto& p : image_->parameters.parameters)
            texts.push_back(p.text);
    return texts;
}

bool kernel::knows_parameters() const noexcept
{
    return image_ && image_->parameters.known;
}

const std::string& kernel::log() const noexcept
{
    return image_ ? image_->log : nothing;
}

bool kernel::from_cache() const noexcept
{
    return image_ && image_->from_cache;
}

std::uint64_t kernel::id() const noexcept
{
    return image_ ? image_->id : 0;
}

result<kernel> make_kernel(const compile_options& options, compiled_code code)
{
    auto made = std::make_shared<image>();
    made->name = options.name();
    made->symbol = std::move(code.symbol);
    made->code = std::move(code.code);
    made->log = std::move(code.log);
    made->from_cache = code.from_cache;
    made->source = std::move(code.source);
    made->options = options;
    made->parameters = parse_symbol(made->symbol);
    if (options.host()) {
        std::string why;
        if (!merge(made->parameters, signature_of(options.host()), why))
            return make_error_with_message(errc::argument_mismatch, made->name + ": " + why);
        made->host = register_host_function(options.host());
    }
    return kernel(register_image(std::move(made)));
}

result<kernel> make_host_kernel(const compile_options& options, std::string why)
{
    if (options.name().empty())
        return make_error_with_message(errc::invalid_argument, "a kernel needs a name");
    if (!options.host())
        return make_error_with_message(errc::unsupported_op,
                                       "the kernel " + options.name() +
                                           " has no host function (compile_options::host), and cannot be "
                                           "compiled for a GPU: " +
                                           why);
    return make_kernel(options, {{}, {}, std::move(why)});
}

} // namespace coaccel::jit
