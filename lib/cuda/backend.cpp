#include "cuda/backend.hpp"

#include "cuda/driver/error.hpp"
#include "cuda/driver/nvtx_range.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <new>
#include <utility>

namespace coaccel::cuda {

static_assert(coaccel::backend<backend>);

namespace {

constexpr auto exit_grace_period = std::chrono::milliseconds(50);

} // namespace

result<std::unique_ptr<backend>> backend::create(const options& o)
{
    if (auto ec = o.check())
        return ec;
    BOOST_OUTCOME_TRY(const driver_api* api, o.libraries.get<driver_api>());
    BOOST_OUTCOME_TRY(auto context, context_handle::create(*api, o.ordinal));
    auto made = std::make_unique<backend>(o, *api, std::move(context));
    [[maybe_unused]] const auto here = made->enter();
    if (auto ec = made->set_up())
        return ec;
    return made;
}

backend::backend(const options& o, const driver_api& api, context_handle context)
    : options_(o), api_(api), context_(std::move(context)), table_(all_ops()),
      helpers_(api, context_.native(), o.helper_threads),
      pinned_(std::make_shared<pinned_pool>(api, helpers_, o.pinned_limit)),
      events_(api, CU_EVENT_DISABLE_TIMING | (o.blocking_events ? unsigned(CU_EVENT_BLOCKING_SYNC) : 0u)),
      memory_(api, helpers_, [this] { notify_progress(); }),
      exportable_(
          api, helpers_, memory_, [this](CUresult r) { return check(r); }, [this] { notify_progress(); }),
      modules_(*this), copies_({api, helpers_, *pinned_, busy_with_callers, [this](CUresult r) { return check(r); },
                                [this] { notify_progress(); }, [this] { return aborted(); }}),
      blocking_(helpers_, [this] { notify_progress(); })
{}

backend::~backend()
{
    abort();
    helpers_.stop();
    listen({});
    {
        [[maybe_unused]] const auto here = enter();
        synchronize_streams();
        if (!dead())
            tear_down();
    }
    if (!dead())
        return;
    for (auto& s : streams_)
        s->notifier.abandon();
    pinned_->detach(sticky_error_.load(std::memory_order_acquire) != CUDA_SUCCESS ? pinned_pool::context_end::faulted
                                                                                  : pinned_pool::context_end::hung);
    context_.forget();
}

error_code backend::set_up()
{
    std::array<char, 256> text{};
    if (auto ec = check(api_.cuDeviceGetName(text.data(), static_cast<int>(text.size()) - 1, device())))
        return ec;
    hardware_.name = text.data();
    hardware_.ordinal = options_.ordinal;
    hardware_.driver_version = api_.version;
    auto major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    auto minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    auto multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    auto pools = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    for (auto* a : {&major, &minor, &multiprocessors, &pools})
        if (!*a)
            return a->error();
    hardware_.compute_capability = 10 * major.value() + minor.value();
    hardware_.multiprocessors = multiprocessors.value();
    if (pools.value() == 0)
        return make_error_with_message(errc::backend_unavailable,
                                       hardware_.name + " has no stream-ordered memory pools");
    if (auto ec = check(api_.cuCtxGetStreamPriorityRange(&least_priority_, &greatest_priority_)))
        return ec;
    for (CUstream* s : {&probe_, &growth_})
        if (auto ec = make_native_stream(*s, priority::low))
            return ec;
    auto pool = device_memory::make_pool(api_, device(), options_);
    if (!pool)
        return pool.error();
    pool_ = pool.value();
    memory_.use(pool_, growth_, options_);
    bool can_export = false;
    if (auto ec = check(exportable_memory::find_support(api_, device(), can_export)))
        return ec;
    return can_export ? exportable_.use(device()) : error_code();
}

void backend::synchronize_streams() noexcept
{
    const auto wait_for = [this](CUstream s) { return dead() || !s || !check(api_.cuStreamSynchronize(s)); };
    for (auto& s : streams_) {
        (void)wait_for(s->native);
        // Pending notifications still use the state of the stream.
        if (!wait_for(s->side))
            s->notifier.abandon();
    }
    for (CUstream s : {probe_, growth_})
        (void)wait_for(s);
}

// One by one, and after everything that uses it: the context remains, with all that is left in it.
void backend::tear_down() noexcept
{
    // Before the kernels and workspaces that graphs use.
    resources_.destroy();
    modules_.destroy();
    copies_.destroy();
    for (auto& s : streams_)
        s->resources.destroy();
    for (auto& s : streams_) {
        (void)api_.cuStreamDestroy(s->native);
        if (s->side)
            (void)api_.cuStreamDestroy(s->side);
    }
    streams_.clear();
    events_.clear();
    exportable_.destroy();
    memory_.destroy();
    pinned_->detach(pinned_pool::context_end::healthy);
    for (void* memory : registered_)
        (void)api_.cuMemHostUnregister(memory);
    if (pool_)
        (void)api_.cuMemPoolDestroy(pool_);
    for (CUstream s : {probe_, growth_})
        if (s)
            (void)api_.cuStreamDestroy(s);
}

void backend::listen(notification n) noexcept
{
    {
        const std::scoped_lock lock(listener_mutex_);
        listener_ = n;
    }
    pinned_->listen(n);
    // Host functions that the driver has not called yet, perhaps of an abandoned context, must not call the old
    // listener.
    if (!n.function)
        for (auto& s : streams_)
            s->notifier.disarm();
}

void backend::notify_progress() noexcept
{
    const std::scoped_lock lock(listener_mutex_);
    if (listener_.function)
        listener_.function(listener_.argument);
}

result<int> backend::attribute(CUdevice_attribute a) noexcept
{
    int value = 0;
    if (auto ec = check(api_.cuDeviceGetAttribute(&value, a, device())))
        return ec;
    return value;
}

error_code backend::make_native_stream(CUstream& s, priority p) noexcept
{
    int level = least_priority_;
    if (p != priority::low)
        level = p == priority::high ? greatest_priority_ : (least_priority_ + greatest_priority_) / 2;
    return check(api_.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, level));
}

result<backend::stream> backend::make_stream(priority p)
{
    if (dead())
        return sticky_error();
    CUstream made = nullptr;
    if (auto ec = make_native_stream(made, p))
        return ec;
    try {
        streams_.push_back(std::make_unique<stream_state>(made));
    } catch (const std::bad_alloc&) {
        (void)check(api_.cuStreamDestroy(made));
        return errc::out_of_memory;
    }
    return stream(*streams_.back());
}

void backend::make_current() const noexcept
{
    if (!dead())
        (void)api_.cuCtxSetCurrent(context_.native());
}

error_code backend::record(event& e, stream& s) noexcept
{
    if (dead())
        return sticky_error();
    e.where = s.state_;
    e.word = std::exchange(s.state_->last_word, nullptr);
    e.misses = 0;
    e.recorded = false;
    // A thread that blocks needs the event.
    return e.word && !options_.blocking_events ? error_code() : record_now(e);
}

error_code backend::record_now(event& e) noexcept
{
    if (!e) {
        event taken;
        if (auto ec = check(events_.take(taken)))
            return ec;
        taken.where = e.where;
        taken.word = e.word;
        e = std::move(taken);
    }
    if (auto ec = check(api_.cuEventRecord(e.native(), e.where->native)))
        return ec;
    e.recorded = true;
    return {};
}

error_code backend::settle(event& e) noexcept
{
    if (dead())
        return sticky_error();
    return e.recorded || e.told() ? error_code() : record_now(e);
}

error_code backend::wait(stream& s, event& e) noexcept
{
    if (auto ec = settle(e))
        return ec;
    if (e.told())
        return {};
    s.state_->last_word = nullptr;
    return check(api_.cuStreamWaitEvent(s.state_->native, e.native(), CU_EVENT_WAIT_DEFAULT));
}

result<progress> backend::query(event& e) noexcept
{
    if (dead())
        return sticky_error();
    if (e.told())
        return progress::passed;
    // Only the driver knows of a fault, after which no word is set.
    if (e.word && ++e.misses % misses_per_driver_call != 0)
        return progress::pending;
    const CUresult r = e.recorded ? api_.cuEventQuery(e.native()) : api_.cuStreamQuery(e.where->native);
    if (r == CUDA_ERROR_NOT_READY)
        return progress::pending;
    if (auto ec = check(r))
        return ec;
    return progress::passed;
}

error_code backend::synchronize(event& e) noexcept
{
    if (dead())
        return sticky_error();
    [[maybe_unused]] const auto here = enter();
    return check(api_.cuEventSynchronize(e.native()));
}

// The notification uses a side stream, because a host function blocks the stream it runs on.
error_code backend::notify(event& e, notification n) noexcept
{
    if (auto ec = settle(e))
        return ec;
    if (e.told()) {
        n.function(n.argument);
        return {};
    }
    stream_state& lane = *e.where;
    if (!lane.side)
        if (auto ec = make_native_stream(lane.side, priority::high))
            return ec;
    if (auto ec = check(api_.cuStreamWaitEvent(lane.side, e.native(), CU_EVENT_WAIT_DEFAULT)))
        return ec;
    return check(lane.notifier.arm(api_, lane.side, n));
}

result<void*> backend::allocate(stream& s, std::size_t bytes, memory_kind kind)
{
    if (dead())
        return sticky_error();
    if (kind == memory_kind::exportable)
        return can_export() ? exportable_.allocate(bytes) : errc::unsupported_op;
    allocations_ = s.state_->native;
    return memory_.allocate(allocations_, bytes, kind);
}

void backend::release(stream& s, void* memory, std::size_t bytes, memory_kind kind) noexcept
{
    if (dead())
        return;
    // The engine releases it only when nothing uses it any more.
    if (kind == memory_kind::exportable)
        return exportable_.release(memory);
    const CUstream where = s.state_->native;
    const auto left =
        where == allocations_ ? device_memory::last_use::unused : device_memory::last_use::in_stream_order;
    (void)check(memory_.release(where, memory, bytes, kind, left));
}

result<detail::unique_fd> backend::export_memory(void* memory, std::size_t, memory_access access)
{
    if (dead())
        return sticky_error();
    return exportable_.export_memory(memory, access);
}

result<void*> backend::import_memory(detail::unique_fd descriptor, std::size_t bytes, memory_access access)
{
    if (dead())
        return sticky_error();
    if (!can_export())
        return errc::unsupported_op;
    return exportable_.import_memory(descriptor, bytes, access);
}

error_code backend::pin(std::span<std::byte> memory)
{
    registered_.reserve(registered_.size() + 1);
    if (auto ec = check(api_.cuMemHostRegister(memory.data(), memory.size(), how_to_register)))
        return ec;
    registered_.push_back(memory.data());
    return {};
}

memory_info backend::memory() const noexcept
{
    memory_info info;
    if (!dead())
        memory_.fill(info);
    info.pinned_used = pinned_->used();
    info.pinned_reserved = pinned_->reserved();
    info.library_objects = resources_.count();
    for (const auto& s : streams_)
        info.library_objects += s->resources.count();
    return info;
}

result<readiness> backend::prepare(stream& s, bound_op& op)
{
    if (dead())
        return sticky_error();
    const auto* code = static_cast<const op_code*>(op.code);
    if (!code->prepare)
        return readiness::ready;
    // Ops without a function to enqueue them are put on the stream here.
    s.state_->last_word = nullptr;
    const nvtx_range range(options_.nvtx && !code->enqueue, op.info->name);
    return code->prepare(*this, *s.state_, op);
}

error_code backend::enqueue(stream& s, bound_op& op)
{
    s.state_->last_word = nullptr;
    const nvtx_range range(options_.nvtx, op.info->name);
    return static_cast<const op_code*>(op.code)->enqueue(*this, *s.state_, op);
}

error_code backend::finish(bound_op& op) noexcept
{
    const auto* code = static_cast<const op_code*>(op.code);
    return code && code->finish ? code->finish(*this, op) : op.status;
}

error_code backend::status() noexcept
{
    if (!dead())
        (void)check(api_.cuStreamQuery(probe_));
    // Work that was aborted because it hangs, without a fault, cannot be stopped from within its process: it is
    // abandoned, with all that we have in the context. It may still write to our own memory and to the callers' pinned
    // memory. Other backends on the context continue.
    if (aborted())
        dead_.store(true, std::memory_order_release);
    if (!dead() || busy_with_callers.load(std::memory_order_seq_cst) != 0)
        return {};
    // After a fault every driver call returns at once, so the jobs inside the driver leave it soon, and no other job
    // enters it.
    const auto now = std::chrono::steady_clock::now();
    if (dead_since_ == std::chrono::steady_clock::time_point{})
        dead_since_ = now;
    return helpers_.idle() || now - dead_since_ > exit_grace_period ? sticky_error() : error_code{};
}

void backend::abort() noexcept
{
    aborted_.store(true, std::memory_order_seq_cst);
}

error_code backend::check(CUresult r) noexcept
{
    if (r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY)
        return {};
    if (is_sticky(r)) {
        sticky_error_.store(r, std::memory_order_release);
        dead_.store(true, std::memory_order_release);
        aborted_.store(true, std::memory_order_seq_cst);
        helpers_.context_died();
    }
    return make_error(r);
}

error_code backend::sticky_error() const noexcept
{
    const CUresult r = sticky_error_.load(std::memory_order_acquire);
    return r == CUDA_SUCCESS ? make_error_code(errc::context_lost) : make_error(r);
}

fault backend::classify(const error_code& ec) noexcept
{
    // This error prevents the creation of a context but does not end an existing one: the request does not suit this
    // GPU.
    if (ec == make_error(CUDA_ERROR_INVALID_DEVICE))
        return fault::library;
    const auto condition = ec.default_error_condition();
    return condition.category() == fault_category() ? static_cast<fault>(condition.value()) : fault::library;
}

} // namespace coaccel::cuda
