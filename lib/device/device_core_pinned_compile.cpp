#include "device/compiler.hpp"
#include "device/device_core_nodes.hpp"

#include <coaccel/core/detail/op_error.hpp>

#include <algorithm>
#include <exception>
#include <new>

namespace coaccel::detail {
namespace {

// Nothing else catches exceptions on a thread of the pool.
result<jit::kernel> compile_or_error(const std::string& source, const jit::compile_options& how,
                                     const hardware_info& hardware)
try {
    return compile(source, how, hardware);
} catch (const std::bad_alloc&) {
    return errc::out_of_memory;
} catch (const std::exception& e) {
    return make_error_with_message(errc::compile_failed, e.what());
}

} // namespace

void device_core::on_side_call(request& r)
{
    if (life_.stopping())
        return complete(r, errc::device_stopped);
    if (life_.failed())
        return complete(r, errc::device_failed);
    if (r.call == request_kind::pinned)
        pinning_.push_back(r);
    else
        compiling_.push_back(static_cast<compile_call*>(&r));
}

/// First come, first served, so that small requests cannot overtake a large one forever.
void device_core::serve_pinned()
{
    while (!pinning_.empty()) {
        auto& call = static_cast<pinned_call&>(*pinning_.front());
        error_code ec;
        if (!call.wanted)
            ec = op_error(errc::size_overflow, "memory.pinned", {"the number of bytes overflows 64 bits"});
        else if (*call.wanted == 0)
            ec = is_zero("memory.pinned", "count");
        if (!ec) {
            call.owner = context_->pinned();
            auto memory = call.owner->try_allocate(*call.wanted);
            if (memory && !memory.value())
                return;
            if (memory)
                call.memory = memory.value();
            else
                ec = memory.error();
        }
        pinning_.pop_front();
        complete(call, ec);
    }
}

void device_core::begin_compiles()
{
    for (auto it = compiling_.begin(); it != compiling_.end();) {
        compile_call* call = *it;
        if (call->begun) {
            ++it;
            continue;
        }
        call->begun = std::make_shared<const bool>(true);
        // The job owns all its inputs, because its request may be cancelled and destroyed long before the compilation
        // ends.
        const auto no_thread =
            run_off_executor(blocking_pool::kind::compiling,
                             [self = shared_from_this(), id = call->sequence, source = std::move(call->source),
                              how = std::move(call->how), hardware = context_->hardware(),
                              wanted = std::weak_ptr<const bool>(call->begun)] {
                                 if (!wanted.expired())
                                     self->push(*new compiled_node(id, compile_or_error(source, how, hardware)));
                             });
        if (!no_thread) {
            ++it;
            continue;
        }
        it = compiling_.erase(it);
        complete(*call, no_thread);
    }
}

void device_core::on_compiled(compiled_node& node)
{
    const auto found = std::ranges::find(compiling_, node.id, &compile_call::sequence);
    if (found == compiling_.end())
        return;
    compile_call& call = **found;
    compiling_.erase(found);
    if (node.made)
        call.made = std::move(node.made).value();
    complete(call, node.made ? error_code{} : node.made.error());
}

void device_core::end_side_calls(error_code ec)
{
    async_op_list ended;
    take_side_calls(ended);
    while (async_op_base* p = ended.pop_front())
        complete(static_cast<request&>(*p), ec);
}

void device_core::take_side_calls(async_op_list& out) noexcept
{
    out.append(pinning_);
    for (compile_call* call : compiling_)
        out.push_back(*call);
    compiling_.clear();
}

} // namespace coaccel::detail
