// A worker whose parent is controlled by the input. It is the real server, on this thread: the steps of the parent run
// while the server lets its context take a turn.
#include "host/factory.hpp"
#include "input.hpp"
#include "plugin/plugins.hpp"
#include "seeds.hpp"
#include "worker/child/server.hpp"
#include "worker/protocol/plan_frames.hpp"

#include <coaccel/plugin/export.hpp>

#include <algorithm>
#include <numeric>

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::clock;
using fuzz::request_step;
using fuzz::require;
using fuzz::staging_size;

constexpr std::size_t ring_size = std::size_t(32) << 10;

// --- functions for the calls of a plug-in -------------------------------------------------------------------------

struct pair {
    float a;
    std::int64_t b;
};

void scale(plugin::stream, std::span<const float> x, std::span<float> y, float factor)
{
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
        y[i] = x[i] * factor;
}

void fill_pairs(plugin::stream, std::span<double> to, pair p, bool reverse)
{
    std::iota(to.begin(), to.end(), reverse ? -double(p.b) : double(p.a));
}

COACCEL_PLUGIN_FUNCTION(scale)
COACCEL_PLUGIN_FUNCTION(fill_pairs)

// --- the parent ---------------------------------------------------------------------------------------------------

/// Checks that encoding the decoded record gives the same record.
void check_decoding(std::span<const std::byte> record)
{
    if (record.empty())
        return;
    decoder as_submit(record.subspan(1)), as_image(record.subspan(1));
    submit_frame submit;
    image_frame image;
    encoder out;
    if (get_submit(as_submit, submit)) {
        put_submit_head(out, submit.id, submit.how, submit.injected_fault, static_cast<std::uint8_t>(submit.size));
        for (std::size_t n = 0; n < submit.size; ++n)
            put_op(out, submit.ops[n]);
        require(std::ranges::equal(out.record().subspan(1), record.subspan(1)), "a submission is what it says");
    }
    // Long texts are truncated when they are written.
    if (get_image(as_image, image) && image.name.size() < 1000 && image.symbol.size() < 1000) {
        out.clear();
        put_image(out, image);
        require(std::ranges::equal(out.record().subspan(1), record.subspan(1)), "an image is what it says");
    }
    decoder as_plan(record.subspan(1)), as_load(record.subspan(1)), as_run(record.subspan(1));
    plan_frame plan;
    load_frame load;
    run_frame run;
    out.clear();
    if (get_plan(as_plan, plan))
        put_plan(out, plan);
    else if (get_load(as_load, load))
        put_load(out, load);
    else if (get_run(as_run, run))
        put_run(out, run);
    require(out.record().empty() || std::ranges::equal(out.record().subspan(1), record.subspan(1)),
            "a message about a plan is what it says");
}

class parent {
public:
    parent(fuzz::input& in, const worker_endpoints& place)
        : in_(in), place_(place), requests_(place.control.requests, place.request_ring),
          replies_(place.control.replies, place.reply_ring)
    {}

    /// An initial state, so that the input can test what follows.
    void open()
    {
        for (const auto& record : fuzz::opening())
            (void)requests_.write(record);
    }

    void step()
    {
        if (!deaf_)
            listen();
        // An impossible position, so that the worker ends.
        if (in_.empty()) {
            place_.control.requests.written = place_.control.requests.taken + 1;
            return;
        }
        switch (fuzz::take_step(in_, request_step::idle)) {
        case request_step::record: {
            const auto record = in_.take_record();
            check_decoding(record);
            if (!record.empty() && record.size() <= requests_.max_record())
                (void)requests_.write(record);
            break;
        }
        case request_step::position: place_.control.requests.written = in_.take<std::uint64_t>(); break;
        case request_step::answers_taken:
            place_.control.replies.taken = in_.take<std::uint64_t>();
            deaf_ = true;
            break;
        case request_step::scribble: {
            const auto at = in_.take<std::uint16_t>() % place_.staging.size();
            const auto what = in_.take_record();
            std::copy_n(what.begin(), std::min(what.size(), place_.staging.size() - at), place_.staging.data() + at);
            break;
        }
        case request_step::deaf: deaf_ = true; break;
        case request_step::idle: break;
        }
    }

    void listen()
    {
        for (;;) {
            const auto got = replies_.read(record_);
            require(bool(got), "a worker writes records");
            if (!got.value())
                return;
            require(understood(), "a worker writes what a parent understands");
        }
    }

    bool is_deaf() const noexcept { return deaf_; }

private:
    bool understood()
    {
        decoder in(record_);
        message_type what{};
        error_code ec;
        std::uint64_t id = 0;
        std::uint32_t position = 0;
        std::string text;
        hardware_info hardware;
        exporting exports{};
        if (!in.get(what, message_type::ready, message_type::lost))
            return false;
        switch (what) {
        case message_type::ready:
            return in.get_text(text) && get_hardware(in, hardware) && in.get(exports, exporting::no, exporting::yes) &&
                   in.at_end();
        case message_type::lost: return in.get_error(ec) && in.at_end() && ec;
        case message_type::ended: return in.get(id) && in.get_error(ec);
        case message_type::unsupported: return in.get(id) && in.get(position) && in.at_end();
        default: return false;
        }
    }

    fuzz::input& in_;
    worker_endpoints place_;
    ring_writer requests_;
    ring_reader replies_;
    fuzz::bytes record_;
    bool deaf_ = false;
};

/// Lets the parent take a step in each turn.
class attended final : public detail::context {
public:
    attended(std::unique_ptr<detail::context> inner, parent& who) : inner_(std::move(inner)), parent_(who) {}

    std::string_view backend_name() const noexcept override { return inner_->backend_name(); }
    void adopt(detail::context_identity who) noexcept override { inner_->adopt(who); }
    error_code pin(std::span<std::byte> memory) override { return inner_->pin(memory); }
    const op_info* describe(std::uint64_t id) const noexcept override { return inner_->describe(id); }
    bool replaceable() const noexcept override { return inner_->replaceable(); }
    void submit(detail::request& r, clock::time_point now) override { inner_->submit(r, now); }
    void release(const any_ref& buffer) noexcept override { inner_->release(buffer); }
    bool can_export() const noexcept override { return inner_->can_export(); }
    result<detail::unique_fd> export_buffer(const any_ref& buffer, memory_access access) override
    {
        return inner_->export_buffer(buffer, access);
    }
    result<any_ref> import_buffer(detail::unique_fd fd, const detail::imported_buffer& what) override
    {
        return inner_->import_buffer(std::move(fd), what);
    }
    void drop(detail::async_op_list& out) noexcept override { inner_->drop(out); }
    bool accepting() const noexcept override { return inner_->accepting(); }
    std::size_t live_buffers() const noexcept override { return inner_->live_buffers(); }
    memory_info memory() const noexcept override { return inner_->memory(); }
    hardware_info hardware() const override { return inner_->hardware(); }
    std::shared_ptr<detail::pinned_memory> pinned() const override { return inner_->pinned(); }

    detail::next_turn turn(clock::time_point now, clock::duration patience) override
    {
        const auto next = inner_->turn(now, patience);
        parent_.step();
        return next;
    }

private:
    std::unique_ptr<detail::context> inner_;
    parent& parent_;
};

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***)
{
    // The empty file name means the program itself.
    require(!plugin::load(""), "this program is a plug-in");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static doorbell request_bell = doorbell::create().value(), reply_bell = doorbell::create().value();
    auto sockets = descriptor_socket::create().value();
    fuzz::input in(data, size);
    control_block control{};
    const auto flags = in.take<std::uint8_t>();
    control.setup.standby = (flags & fuzz::standby) != 0;
    control.setup.context.completion = completion::polled;
    // Exactly their sizes: the address sanitizer detects access beyond them.
    const auto request_ring = std::make_unique<std::byte[]>(ring_size);
    const auto reply_ring = std::make_unique<std::byte[]>(ring_size);
    const auto staging = std::make_unique<std::byte[]>(staging_size);
    const worker_endpoints place{control,
                                 {request_ring.get(), ring_size},
                                 {reply_ring.get(), ring_size},
                                 {staging.get(), staging_size},
                                 request_bell,
                                 reply_bell,
                                 sockets.second};
    parent p(in, place);
    if ((flags & fuzz::opened) != 0)
        p.open();
    fault_injector faults;
    host_options host;
    host.mode = host_mode::inline_;
    host.memory_limit = std::uint64_t(64) << 10;
    host.injector = &faults;
    const auto make = [&](detail::context_identity who, detail::context_events& events,
                          const context_options& how) -> result<std::unique_ptr<detail::context>> {
        auto made = host::make_factory(host)(who, events, how);
        require(bool(made), "there is a context");
        return std::make_unique<attended>(std::move(made).value(), p);
    };
    {
        server s(place);
        s.run(make, faults);
    }
    if (!p.is_deaf())
        p.listen();
    return 0;
}
