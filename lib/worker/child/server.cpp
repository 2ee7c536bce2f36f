#include "worker/child/server.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace coaccel::worker {
namespace {

using detail::clock;
using detail::next_turn;

constexpr int requests_per_turn = 256;
constexpr auto gauge_interval = std::chrono::milliseconds(1);

worker_setup copy_of(const worker_setup& shared) noexcept
{
    worker_setup s;
    std::memcpy(&s, &shared, sizeof(s));
    return s;
}

bool is_allocation(const bound_op& o) noexcept
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
    auto next_gauge = now;
    while (!corrupted_ && !lost_) {
        const bool moved = take_requests();
        now = clock::now();
        const next_turn next = context_->turn(now);
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
    // A temporary identity: refs of device 0 are empty, and an op that uses one is refused.
    context_->adopt({1, 1});
    const detail::allocate_op allocate{.count = count, .type = dtype::f32};
    detail::allocation made;
    run_here({.info = &info_of<detail::allocate_op>(), .op = &allocate, .reply = &made});
    op_list ops;
    context_->add_warm_up(ops, ref<float>::from_raw(made.ref));
    for (detail::listed_op& o : detail::op_list_access::ops(ops))
        run_here(o.record.bind(*o.info));
    context_->release(made.ref);
    context_->adopt({});
}

void server::run_here(bound_op op)
{
    struct : detail::request {
        void post() override {}
        void destroy() noexcept override {}
    } r;
    r.ops = {&op, 1};
    warming_ = true;
    context_->submit(r, clock::now());
    while (warming_ && !lost_) {
        const auto next = context_->turn(clock::now());
        place_.control.beats.fetch_add(1, std::memory_order_relaxed);
        if (warming_ && next.when == next_turn::kind::sleep)
            (void)place_.request_bell.wait(std::chrono::milliseconds(1));
    }
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
    if (!in.get(what, message_type::adopt, message_type::forget))
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
        if (!in.get_ref(ref) || !in.at_end())
            return false;
        context_->release(ref);
        show_use();
        return true;
    }
    case message_type::image: {
        image_frame image;
        return get_image(in, image) && images_.add(image);
    }
    case message_type::forget: {
        std::uint64_t id = 0;
        return in.get(id) && in.at_end() && images_.remove(id);
    }
    default: return false;
    }
}

bool server::submit(const submit_frame& frame)
{
    if (frame.injected_fault == injected_fault::poison)
        faults_->poison();
    else if (frame.injected_fault == injected_fault::hang)
        faults_->hang();
    remote_request& r = spare();
    const error_code ec = r.load(frame, *context_, images_, place_.staging);
    if (ec == errc::worker_corrupted)
        return false;
    if (ec) {
        if (ec == errc::unsupported_op)
            answer_unsupported(r);
        else
            answer(frame.id, ec, nullptr);
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
    if (std::exchange(warming_, false)) {
        // The standby may still be usable for other ops.
        if (ec)
            std::fprintf(stderr, "this standby could not be warmed up: %s\n", ec.message().c_str());
        return;
    }
    auto& done = static_cast<remote_request&>(r);
    // Before the reply: a caller that has received its buffer finds it in the statistics.
    if (!ec && context_ && std::ranges::any_of(r.ops, is_allocation))
        show_use();
    // Not for a lost context: it is reported with message_type::lost, after which the parent fails its requests itself.
    if (!is_context_lost(ec) || !context_ || context_->accepting())
        answer(done.id(), ec, &done);
    spare_.push_back(&done);
}

void server::lost(error_code why) noexcept
{
    lost_ = true;
    out_.clear();
    out_.put(message_type::lost);
    out_.put_error(why);
    send();
    (void)flush();
}

void server::answer(std::uint64_t id, const error_code& ec, const remote_request* with)
{
    out_.clear();
    out_.put(message_type::ended);
    out_.put(id);
    out_.put_error(ec);
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
