#include "cuda/factory.hpp"

#include "context/engine.hpp"
#include "cuda/backend.hpp"

#include <memory>
#include <utility>

namespace coaccel::cuda {

detail::context_factory make_factory(const cuda_options& options, int ordinal, const library_tables& libraries)
{
    backend::options o{options, ordinal, false, libraries};
    return [o](detail::context_identity identity, detail::context_events& events,
               const context_options& how) -> result<std::unique_ptr<detail::context>> {
        auto chosen = o;
        chosen.blocking_events = how.completion == completion::sync;
        BOOST_OUTCOME_TRY(auto made, backend::create(chosen));
        return std::make_unique<detail::engine<backend>>(std::move(made), identity, events, how);
    };
}

} // namespace coaccel::cuda
