#include "cuda/plan/plan_instances.hpp"

#include "cuda/backend.hpp"
#include "cuda/blas/blas_context.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <utility>

namespace coaccel::cuda {

// Resources are destroyed in the reverse order of creation, and graphs contain the kernels of blas_context.
plan_instances::plan_instances(backend& b) : backend_(b)
{
    (void)b.resources().get<blas_context>();
}

plan_instance* plan_instances::find(std::uint64_t id) noexcept
{
    const auto found = all_.find(id);
    return found == all_.end() || found->second->recording ? nullptr : &found->second->instance;
}

result<plan_entry*> plan_instances::add(const detail::plan_load_head& head, void* const* operands)
{
    if (all_.contains(head.instance))
        return detail::op_error(errc::invalid_argument, "plan.load",
                                {"instance ", head.instance, " is already loaded"});
    auto made = std::make_unique<plan_entry>(backend_, copies_, head, operands);
    if (auto ec = made->instance.find_codes())
        return ec;
    auto& entry = *made;
    stream_state* stream = nullptr;
    if (entry.instance.recordable()) {
        BOOST_OUTCOME_TRY(auto* r, recorder_of(head.chain));
        all_.emplace(head.instance, std::move(made));
        r->chain = head.chain;
        ++r->instances;
        entry.uses_recorder = true;
        stream = r->stream;
    } else {
        all_.emplace(head.instance, std::move(made));
    }
    entry.recording.emplace(backend_, entry.instance, stream);
    return &entry;
}

result<plan_instances::recorder*> plan_instances::recorder_of(std::uint64_t chain)
{
    for (const std::uint64_t wanted : {chain, std::uint64_t(0)})
        if (const auto found = std::ranges::find(recorders_, wanted, &recorder::chain); found != recorders_.end())
            return &*found;
    recorders_.reserve(recorders_.size() + 1);
    BOOST_OUTCOME_TRY(const auto made, backend_.make_stream(priority::normal));
    return &recorders_.emplace_back(recorder{.stream = &made.state()});
}

void plan_instances::remove(std::uint64_t id) noexcept
{
    const auto found = all_.find(id);
    if (found->second->uses_recorder) {
        auto& r = *std::ranges::find(recorders_, found->second->instance.chain, &recorder::chain);
        if (--r.instances == 0)
            r.chain = 0;
    }
    all_.erase(found);
}

void plan_instances::destroy() noexcept
{
    for (auto& [id, entry] : all_)
        entry->instance.destroy();
    all_.clear();
    copies_.unload(backend_);
}

std::size_t plan_instances::count() const noexcept
{
    return static_cast<std::size_t>(std::ranges::count_if(
        all_, [](const auto& e) { return !e.second->recording && e.second->instance.recorded(); }));
}

} // namespace coaccel::cuda
