#include "host/backend.hpp"

#include "posix/machine_limits.hpp"

#include <new>
#include <system_error>

namespace coaccel::host {

static_assert(coaccel::backend<backend>);

result<std::unique_ptr<backend>> backend::create(const options& o)
{
    if (auto ec = o.check())
        return ec;
    if (o.injector->refuses_start())
        return errc::start_failed;
    try {
        return std::make_unique<backend>(o);
    } catch (const std::bad_alloc&) {
        return errc::out_of_memory;
    } catch (const std::system_error& e) {
        return make_error_with_message(errc::start_failed, std::string("threads of the host backend: ") + e.what());
    }
}

backend::backend(const options& o)
    : options_(o), table_(all_ops()), memory_(o.memory_limit), exportable_(memory_),
      pinned_(std::make_shared<pinned_memory>(o.pinned_limit))
{
    if (o.mode == host_mode::inline_)
        return;
    const auto cpus = detail::usable_cpus();
    const int threads = o.threads != 0 ? o.threads : static_cast<int>(cpus);
    // On a single CPU, a thread that polls for work would take CPU time from the thread that submits it.
    const auto idle = cpus > 1 ? stream_runners::idle::look : stream_runners::idle::sleep;
    pool_ = std::make_unique<stream_runners>(threads, [this](stream_state& s) { run(s); }, idle);
}

backend::~backend()
{
    abort();
    pool_.reset();
    resources_.destroy();
}

result<backend::stream> backend::make_stream(priority p)
{
    streams_.push_back(std::make_unique<stream_state>(p, pool_.get()));
    return stream(*streams_.back());
}

error_code backend::record(event& e, stream& s) noexcept
{
    e = {s.state_, s.state_->pushed()};
    return {};
}

error_code backend::wait(stream& s, event& e)
{
    return push(*s.state_, {.what = stream_item::kind::wait, .other = e.where, .position = e.position});
}

result<progress> backend::query(event& e) noexcept
{
    if (dead())
        return errc::context_lost;
    return e.where->passed() >= e.position ? progress::passed : progress::pending;
}

error_code backend::synchronize(event& e)
{
    struct waiter {
        backend* self;
        bool passed = false;
    } w{this};
    e.where->watch(e.position, {[](void* argument) noexcept {
                                    auto* w = static_cast<waiter*>(argument);
                                    const std::scoped_lock lock(w->self->death_mutex_);
                                    w->passed = true;
                                    w->self->death_.notify_all();
                                },
                                &w});
    {
        std::unique_lock lock(death_mutex_);
        death_.wait(lock, [&] { return w.passed || dead(); });
    }
    e.where->unwatch(&w);
    return dead() ? make_error_code(errc::context_lost) : error_code{};
}

error_code backend::notify(event& e, notification n)
{
    e.where->watch(e.position, n);
    return {};
}

hardware_info backend::hardware() const
{
    return {.name = "CPU", .multiprocessors = pool_ ? pool_->threads() : 1};
}

result<void*> backend::allocate(stream&, std::size_t bytes, memory_kind kind)
{
    if (dead())
        return errc::context_lost;
    if (options_.injector->out_of_memory(memory_.info().used + bytes))
        return errc::out_of_memory;
    return kind == memory_kind::exportable ? exportable_.allocate(bytes) : memory_.allocate(bytes);
}

void backend::release(stream& s, void* memory, std::size_t, memory_kind kind) noexcept
{
    const bool exportable = kind == memory_kind::exportable;
    if (s.state_->passed() != s.state_->pushed())
        (void)push(*s.state_, {.what = exportable ? stream_item::kind::release_exportable : stream_item::kind::release,
                               .memory = memory});
    else if (exportable)
        exportable_.release(memory);
    else
        memory_.release(memory);
}

result<detail::unique_fd> backend::export_memory(void* memory, std::size_t, memory_access access)
{
    return exportable_.seal(memory, access);
}

result<void*> backend::import_memory(detail::unique_fd descriptor, std::size_t bytes, memory_access access)
{
    if (options_.injector->out_of_memory(memory_.info().used + bytes))
        return errc::out_of_memory;
    return exportable_.map(descriptor, bytes, access);
}

memory_info backend::memory() const noexcept
{
    memory_info info = memory_.info();
    info.pinned_used = info.pinned_reserved = pinned_->used();
    info.library_objects = resources_.count();
    return info;
}

error_code backend::find_code(bound_op& op) const noexcept
{
    const op_code* code = table_.find(op.info->id);
    op.code = code;
    if (!code)
        return errc::unsupported_op;
    return code->refuse ? code->refuse(op) : error_code();
}

result<readiness> backend::prepare(stream& s, bound_op& op)
{
    if (dead())
        return errc::context_lost;
    const auto* code = static_cast<const op_code*>(op.code);
    return code->prepare ? code->prepare(*this, *s.state_, op) : readiness::ready;
}

error_code backend::enqueue(stream& s, bound_op& op)
{
    const auto* code = static_cast<const op_code*>(op.code);
    return push(*s.state_, {.what = stream_item::kind::op, .run = code->run, .op = &op});
}

error_code backend::status() noexcept
{
    // The sticky error is reported only after all running ops have returned, because they may access the callers'
    // memory.
    return dead() && running_.load(std::memory_order_seq_cst) == 0 ? make_error_code(errc::context_lost) : error_code{};
}

void backend::abort() noexcept
{
    const std::scoped_lock lock(death_mutex_);
    dead_.store(true, std::memory_order_seq_cst);
    death_.notify_all();
}

fault backend::classify(const error_code& ec) noexcept
{
    const auto condition = ec.default_error_condition();
    return condition.category() == fault_category() ? static_cast<fault>(condition.value()) : fault::library;
}

error_code backend::push(stream_state& s, const stream_item& item)
{
    if (s.push(item)) {
        if (pool_)
            pool_->schedule(s);
        else
            run(s);
    }
    return {};
}

void backend::run(stream_state& s)
{
    running_.fetch_add(1, std::memory_order_seq_cst);
    while (!dead()) {
        const stream_item* item = s.next();
        if (!item || !run_item(s, *item))
            break;
    }
    running_.fetch_sub(1, std::memory_order_seq_cst);
}

// False if the stream is parked at a wait (another thread may already be running it) or the backend is dead.
bool backend::run_item(stream_state& s, const stream_item& item)
{
    switch (item.what) {
    case stream_item::kind::op:
        run_op(item);
        if (dead())
            return false;
        break;
    case stream_item::kind::release: memory_.release(item.memory); break;
    case stream_item::kind::release_exportable: exportable_.release(item.memory); break;
    case stream_item::kind::wait:
        if (item.other->passed() < item.position) {
            item.other->watch(item.position, {[](void* argument) noexcept {
                                                  auto* s = static_cast<stream_state*>(argument);
                                                  s->pool()->schedule(*s);
                                              },
                                              &s});
            return false;
        }
        break;
    }
    s.pass();
    return true;
}

void backend::run_op(const stream_item& item)
{
    using verdict = fault_injector::verdict;
    const auto fate = options_.injector->next_op();
    if (options_.injector->delay() > std::chrono::nanoseconds(0))
        linger(options_.injector->delay());
    // In inline mode no other thread could end the wait, so an op that should hang kills the context at once.
    if (fate == verdict::hang && options_.mode == host_mode::pool)
        linger(std::chrono::nanoseconds::max());
    else if (fate != verdict::run)
        abort();
    if (!dead())
        item.run(*item.op);
}

void backend::linger(std::chrono::nanoseconds time)
{
    std::unique_lock lock(death_mutex_);
    if (time == std::chrono::nanoseconds::max())
        death_.wait(lock, [this] { return dead(); });
    else
        death_.wait_for(lock, time, [this] { return dead(); });
}

} // namespace coaccel::host
