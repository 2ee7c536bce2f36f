#include "host/factory.hpp"

#include "context/engine.hpp"
#include "host/backend.hpp"

#include <memory>
#include <utility>

namespace coaccel::host {

detail::context_factory make_factory(const host_options& options)
{
    return
        [options = backend::options(options)](detail::context_identity identity, detail::context_events& events,
                                              const context_options& how) -> result<std::unique_ptr<detail::context>> {
            BOOST_OUTCOME_TRY(auto made, backend::create(options));
            return std::make_unique<detail::engine<backend>>(std::move(made), identity, events, how);
        };
}

} // namespace coaccel::host
