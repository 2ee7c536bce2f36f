#include "device/backends.hpp"

#include "device/lifecycle.hpp"
#include "plugin/plugins.hpp"
#include "posix/environment.hpp"
#include "worker/parent/worker_context_factory.hpp"

#ifdef COACCEL_HAS_HOST
#include "host/factory.hpp"
#endif
#ifdef COACCEL_HAS_CUDA
#include "cuda/factory.hpp"
#endif

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace coaccel::detail {
namespace {

context_source host_source([[maybe_unused]] const device_options& options)
{
#ifdef COACCEL_HAS_HOST
    return {host::make_factory(options.host), options.host.mode == host_mode::pool};
#else
    return {};
#endif
}

context_source cuda_source([[maybe_unused]] const device_options& options)
{
#ifdef COACCEL_HAS_CUDA
    return {cuda::make_factory(options.cuda, options.ordinal), true};
#else
    return {};
#endif
}

// Whether there is a GPU is known only after querying the driver, which takes too long here.
context_source first_that_works(context_source first, context_source second)
{
    if (!first.make || !second.make)
        return first.make ? std::move(first) : std::move(second);
    return {[first = std::move(first.make), second = std::move(second.make)](
                context_identity identity, context_events& events, const context_options& how) {
                auto made = first(identity, events, how);
                return !made && is_out_of_reach(made.error()) ? second(identity, events, how) : std::move(made);
            },
            true};
}

// A relative path refers to the current directory now, not to the one at the time a context is replaced.
std::string plugin_file(const std::string& named)
{
    if (named.find('/') == std::string::npos)
        return named;
    std::error_code failed;
    const auto whole = std::filesystem::absolute(named, failed);
    return failed ? named : whole.string();
}

context_factory with_plugin(context_factory make, std::string file)
{
    return [make = std::move(make),
            file = std::move(file)](context_identity identity, context_events& events,
                                    const context_options& how) -> result<std::unique_ptr<context>> {
        if (auto ec = plugin::load(file))
            return ec;
        return make(identity, events, how);
    };
}

} // namespace

result<context_source> find_backend(const device_options& options)
{
    context_source found;
    switch (options.kind) {
    case device_kind::best: found = first_that_works(cuda_source(options), host_source(options)); break;
    case device_kind::host: found = host_source(options); break;
    case device_kind::cuda: found = cuda_source(options); break;
    }
    if (found.make && options.plugin)
        found.make = with_plugin(std::move(found.make), plugin_file(options.plugin));
    if (found.make)
        return found;
    return make_error_with_message(errc::backend_unavailable, options.kind == device_kind::cuda
                                                                  ? "this build of coaccel has no CUDA backend"
                                                                  : "this build of coaccel has no host backend");
}

result<context_source> find_source(const device_options& options, const boost::asio::any_io_executor& executor)
{
    auto environment = copy_environment();
    if (options.isolation == isolation::in_process)
        return find_backend(options);
    worker::source_options o;
    o.how = options.worker;
    o.setup.kind = static_cast<std::uint8_t>(options.kind);
    o.setup.ordinal = options.ordinal;
    o.setup.context = options.context;
    o.setup.host = options.host;
    o.setup.cuda = options.cuda;
    o.standby = options.standby;
    if (options.plugin)
        o.plugin = plugin_file(options.plugin);
    o.environment = std::move(environment);
    o.faults = options.host.injector;
    o.copy_threads = options.cuda.helper_threads;
    auto made = worker::make_source(o, executor);
    return context_source{
        std::move(made.make),         true, std::move(made.give_up), std::move(made.has_standby), std::move(made.rest),
        std::move(made.make_standby), true};
}

} // namespace coaccel::detail
