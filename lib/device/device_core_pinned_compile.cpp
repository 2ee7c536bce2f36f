#include "device/compiler.hpp"
#include "device/device_core_nodes.hpp"

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
        pinned_.add(static_cast<pinned_call&>(r));
    else
        compiles_.add(static_cast<compile_call&>(r));
}

void device_core::serve_side_calls()
{
    if (!pinned_.empty())
        pinned_.serve(context_->pinned(), completer());
    compiles_.begin([this](compile_call& call) { return begin_compile(call); }, completer());
}

// The job owns all its inputs, because its request may be cancelled and destroyed long before the compilation ends.
error_code device_core::begin_compile(compile_call& call)
{
    return supply_.run(blocking_pool::kind::compiling,
                       [self = shared_from_this(), id = call.sequence, source = std::move(call.source),
                        how = std::move(call.how), hardware = context_->hardware(),
                        wanted = std::weak_ptr<const bool>(call.begun)] {
                           if (!wanted.expired())
                               self->push(*new compiled_node(id, compile_or_error(source, how, hardware)));
                       });
}

void device_core::on_compiled(compiled_node& node)
{
    compile_call* call = compiles_.take(node.id);
    if (!call)
        return;
    if (node.made)
        call->made = std::move(node.made).value();
    complete(*call, node.made ? error_code{} : node.made.error());
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
    pinned_.take_all(out);
    compiles_.take_all(out);
}

} // namespace coaccel::detail
