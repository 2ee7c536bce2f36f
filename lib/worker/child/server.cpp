#include "worker/child/server.hpp"

#include "context/lanes/lane_selector.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <utility>

namespace coaccel::worker {
namespace {

using detail::clock;
using detail::next_turn;

constexpr int requests_per_turn = 256;
constexpr auto gauge_interval = std::chrono::milliseconds(1);
/// How long a context that is about to end waits for its operations. One that never returns, such as a function of a
/// plug-in in an endless loop, ends with the process.
constexpr auto end_grace_period = std::chrono::milliseconds(100);

worker_setup copy_of(const worker_setup& shared) noexcept
{
    worker_setup s;
    std::memcpy(&s, &shared, sizeof(s));
    return s;
}

bool allocates_buffer(const bound_op& o) noexcept
{
    return o.info->role == op_role::allocate;
}

} // namespace

server::server(const worker_endpoints& place)
    : place_(place), setup_(copy_of(place.control.setup)), requests_(place.control.requests, place.request_ring),
      replies_(place.control.replies, place.reply_ring)
{}

void server::run(const detail::context_factory& make, fault_injector& faults)
{
    faults_ = &faults;
    const error_code ec = begin(make);
    out_.clear();
    out_.put(ec ? message_type::refused : message_type::ready);
    if (ec) {
        out_.put_error(ec);
    } else {
        out_.put_text(context_->backend_name());
        put_hardware(out_, context_->hardware());
        out_.put(context_->can_export() ? exporting::yes : exporting::no);
    }
    show_gauges();
    // A beat before `ready` is sent: from now on the parent checks the heartbeat, even if the worker hangs immediately.
    place_.control.beats.fetch_add(1, std::memory_order_relaxed);
    send();
    (void)flush();
    if (ec)
        return;

    auto now = clock::now();
    auto last_moved = now;
    auto last_accepting = now;
    auto next_gauge = now;
    while (!corrupted_ && !lost_) {
        const bool moved = take_requests();
        now = clock::now();
        const next_turn next = context_->turn(now);
        if (context_->accepting())
            last_accepting = now;
        else if (!lost_ && now - last_accepting > end_grace_period)
            lost(make_error_with_message(errc::context_lost, "an operation does not return"),
                 detail::loss_cause::fault);
        const bool sent = flush();
        place_.control.beats.fetch_add(1, std::memory_order_relaxed);
        if (moved || sent)
            last_moved = now;
        if (now >= next_gauge) {
            show_gauges();
            next_gauge = now + gauge_interval;
        }
        if (next.when == next_turn::kind::again || now - last_moved < setup_.spin || !waiting_.empty()) {
            give_way(now - last_moved);
            continue;
        }
        show_gauges();
        if (!requests_.may_sleep())
            continue;
        auto time = std::chrono::nanoseconds(setup_.beat);
        if (next.when == next_turn::kind::sleep)
            time = std::min<std::chrono::nanoseconds>(time, std::max(next.at - now, clock::duration::zero()));
        (void)place_.request_bell.wait(time);
        requests_.awake();
        last_moved = clock::now();
    }
}

error_code server::begin(const detail::context_factory& make)
{
    auto made = make({}, *this, setup_.context);
    if (!made)
        return made.error();
    context_ = std::move(made).value();
    if (auto ec = context_->pin(place_.staging))
        return ec;
    if (setup_.standby)
        warm_up();
    return {};
}

void server::warm_up()
{
    constexpr std::uint64_t count = 256;
    // Each lane has its own handles. With memory of their own, requests that are started together get different lanes,
    // unless the context selects the lane by the library of the first op.
    const bool by_library = setup_.context.lanes.how == lane_policy::kind::per_library;
    const std::size_t lanes = by_library ? 1 : detail::lane_selector(setup_.context.lanes).policy_lanes();
    // A temporary identity: refs of device 0 are empty, and an op that uses one is refused.
    context_->adopt({1, 1});
    const detail::allocate_op allocate{.count = count, .type = dtype::f32};
    std::vector<detail::allocation> made(lanes);
    std::vector<bound_op> allocations;
    std::vector<op_list> lists(lanes);
    std::vector<std::vector<bound_op>> bound(lanes);
    std::vector<std::span<bound_op>> requests;
    for (std::size_t i = 0; i < lanes; ++i)
        allocations.push_back({.info = &info_of<detail::allocate_op>(), .op = &allocate, .reply = &made[i]});
    for (bound_op& o : allocations)
        requests.push_back({&o, 1});
    if (run_here(requests)) {
        requests.clear();
        for (std::size_t i = 0; i < lanes; ++i) {
            context_->add_warm_up(lists[i], ref<float>::from_raw(made[i].ref));
            for (detail::listed_op& o : detail::op_list_access::ops(lists[i]))
                bound[i].push_back(o.record.bind(*o.info));
            const std::size_t size = by_library ? 1 : bound[i].size();
            for (std::size_t first = 0; first < bound[i].size(); first += size)
                requests.push_back({&bound[i][first], size});
        }
        (void)run_here(requests);
    }
    for (const detail::allocation& a : made)
        context_->release(a.ref);
    context_->adopt({});
}

bool server::run_here(std::span<const std::span<bound_op>> requests)
{
    struct own_request final : detail::request {
        void post() override {}
        void destroy() noexcept override {}
    };
    std::deque<own_request> all(requests.size());
    warming_ = requests.size();
    warmed_ = true;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        all[i].ops = requests[i];
        context_->submit(all[i], clock::now());
    }
    while (warming_ > 0 && !lost_) {
        const auto next = context_->turn(clock::now());
        place_.control.beats.fetch_add(1, std::memory_order_relaxed);
        if (warming_ > 0 && next.when == next_turn::kind::sleep)
            (void)place_.request_bell.wait(std::chrono::milliseconds(1));
    }
    return warmed_ && !lost_;
}

bool server::take_requests()
{
    bool any = false;
    for (int n = 0; n < requests_per_turn && !corrupted_; ++n) {
        auto got = requests_.read(record_);
        if (!got) {
            corrupted_ = true;
            break;
        }
        if (!got.value())
            break;
        any = true;
        corrupted_ = !obey(record_);
        // A beat after each request, because the driver blocks a launch when its queue is full.
        place_.control.beats.fetch_add(1, std::memory_order_relaxed);
    }
    return any;
}

bool server::obey(std::span<const std::byte> record)
{
    decoder in(record);
    message_type what{};
    if (!in.get(what, message_type::adopt, message_type::export_memory))
        return false;
    switch (what) {
    case message_type::adopt: {
        detail::context_identity who;
        if (!in.get(who.device) || !in.get(who.generation) || !in.at_end() || who.device == made_here)
            return false;
        context_->adopt(who);
        return true;
    }
    case message_type::submit:
        if (!get_submit(in, frame_))
            return false;
        return submit(frame_);
    case message_type::release: {
        any_ref ref;
        return in.get_ref(ref) && in.at_end() && release(ref);
    }
    case message_type::image: {
        image_frame image;
        return get_image(in, image) && images_.add(image);
    }
    case message_type::forget: {
        std::uint64_t id = 0;
        return in.get(id) && in.at_end() && images_.remove(id);
    }
    case message_type::plan: {
        plan_frame part;
        return get_plan(in, part) && add_plan(part);
    }
    case message_type::forget_plan: {
        std::uint64_t number = 0;
        return in.get(number) && in.at_end() && plans_.remove(number);
    }
    case message_type::load: return get_load(in, load_) && load(load_);
    case message_type::run: return get_run(in, run_) && run(run_);
    case message_type::import_memory: {
        import_frame frame;
        return get_import(in, frame) && import_memory(frame);
    }
    case message_type::export_memory: {
        export_frame frame;
        return get_export(in, frame) && export_memory(frame);
    }
    default: return false;
    }
}

void server::inject(injected_fault f)
{
    if (f == injected_fault::poison)
        faults_->poison();
    else if (f == injected_fault::hang)
        faults_->hang();
}

bool server::submit(const submit_frame& frame)
{
    inject(frame.injected_fault);
    remote_request& r = spare();
    error_code ec = r.load(frame, *context_, images_, place_.staging);
    if (!ec && r.step() == remote_request::plan_step::unload)
        ec = instances_.begin_unload(r.unload());
    return start(r, ec);
}

bool server::start(remote_request& r, const error_code& loaded)
{
    if (loaded == errc::worker_corrupted)
        return false;
    if (loaded) {
        if (loaded == make_error_code(errc::unsupported_op))
            answer_unsupported(r);
        else
            answer(r.id(), loaded, nullptr);
        spare_.push_back(&r);
    } else {
        r.sequence = ++submitted_;
        context_->submit(r, clock::now());
    }
    return true;
}

remote_request& server::spare()
{
    if (spare_.empty())
        return requests_made_.emplace_back();
    remote_request& r = *spare_.back();
    spare_.pop_back();
    return r;
}

void server::finished(detail::request& r, error_code ec) noexcept
{
    if (warming_ > 0) {
        --warming_;
        // The standby may still be usable for other ops.
        if (ec && std::exchange(warmed_, false))
            std::fprintf(stderr, "this standby could not be warmed up: %s\n", ec.message().c_str());
        return;
    }
    auto& done = static_cast<remote_request&>(r);
    if (done.step() != remote_request::plan_step::none)
        note_plan_step(done, ec);
    // Before the reply: a caller that has received its buffer finds it in the statistics.
    if (!ec && context_ && std::ranges::any_of(r.ops, allocates_buffer))
        show_use();
    // Not for a lost context: it is reported with message_type::lost, after which the parent fails its requests itself.
    if (!is_context_lost(ec) || !context_ || context_->accepting())
        answer(done.id(), ec, &done);
    spare_.push_back(&done);
}

void server::lost(error_code why, detail::loss_cause) noexcept
{
    lost_ = true;
    out_.clear();
    out_.put(message_type::lost);
    out_.put_error(why);
    send();
    (void)flush();
}

void server::begin_answer(std::uint64_t id, const error_code& ec)
{
    out_.clear();
    out_.put(message_type::ended);
    out_.put(id);
    out_.put_error(ec);
}

void server::answer(std::uint64_t id, const error_code& ec, const remote_request* with)
{
    begin_answer(id, ec);
    if (with)
        with->put_replies(out_, !ec);
    send();
}

void server::answer_unsupported(const remote_request& r)
{
    out_.clear();
    out_.put(message_type::unsupported);
    out_.put(r.id());
    out_.put(r.unsupported());
    send();
}

void server::send()
{
    const auto record = out_.record();
    const auto went = waiting_.empty() ? replies_.write(record) : written::full;
    if (went == written::full)
        waiting_.emplace_back(record.begin(), record.end());
    unannounced_ |= went == written::yes;
    corrupted_ |= went == written::corrupted;
}

/// Returns whether anything was sent since the last call.
bool server::flush()
{
    std::size_t gone = 0;
    auto went = written::yes;
    while (gone < waiting_.size() && (went = replies_.write(waiting_[gone])) == written::yes)
        ++gone;
    corrupted_ |= went == written::corrupted;
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(gone));
    if (gone == 0 && !unannounced_)
        return false;
    unannounced_ = false;
    if (replies_.wants_bell())
        place_.reply_bell.ring();
    return true;
}

void server::show_use() noexcept
{
    const memory_info m = context_->memory_use();
    auto& g = place_.control.now;
    g.used.store(m.used, std::memory_order_relaxed);
    g.high_water.store(m.high_water, std::memory_order_relaxed);
    g.buffers.store(context_->live_buffers(), std::memory_order_relaxed);
}

void server::show_gauges()
{
    if (!context_)
        return;
    const memory_info m = context_->memory();
    auto& g = place_.control.now;
    g.used.store(m.used, std::memory_order_relaxed);
    g.free.store(m.free, std::memory_order_relaxed);
    g.total.store(m.total, std::memory_order_relaxed);
    g.reserved.store(m.reserved, std::memory_order_relaxed);
    g.high_water.store(m.high_water, std::memory_order_relaxed);
    g.library_objects.store(m.library_objects, std::memory_order_relaxed);
    g.buffers.store(context_->live_buffers(), std::memory_order_relaxed);
}

} // namespace coaccel::worker
