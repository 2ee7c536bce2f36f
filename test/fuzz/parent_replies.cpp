// A device's context whose worker is controlled by the input. Whatever it sends, every request ends exactly once.
#include "input.hpp"
#include "parent_requests.hpp"
#include "worker/parent/remote_context.hpp"
#include "worker/protocol/plan_frames.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <set>
#include <thread>

namespace {

using namespace coaccel;
using namespace coaccel::detail;
using namespace coaccel::worker;
using detail::clock;
using detail::next_turn;
using fuzz::reply_step;
using fuzz::require;

/// Not a multiple of the alignment of positions.
constexpr std::uint64_t impossible = ~std::uint64_t(0);

/// The results of the requests.
class ledger final : public detail::context_events {
public:
    void finished(detail::request& r, error_code ec) noexcept override
    {
        require(under_way.erase(&r) == 1, "a request ends once");
        for (const bound_op& o : r.ops)
            require(ec || !o.info->accepts || o.info->accepts(o.op, o.reply), "a reply is possible");
    }

    void lost(error_code why, detail::loss_cause) noexcept override
    {
        require(++losses == 1, "a context is lost once");
        require(bool(why), "a context is lost for a reason");
        require(under_way.empty(), "a lost context has no requests");
    }

    bool has_more() noexcept override { return false; }
    void wake() noexcept override
    {
        const std::scoped_lock lock(mutex_);
        woken_ = true;
        changed_.notify_one();
    }

    void wait()
    {
        std::unique_lock lock(mutex_);
        const bool woken = changed_.wait_for(lock, std::chrono::seconds(30), [this] { return woken_; });
        require(woken, "who sleeps is woken");
        woken_ = false;
    }

    std::set<const void*> under_way;
    int losses = 0;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool woken_ = false;
};

/// A process that only sleeps, and its ends of the rings.
struct fake_worker {
    fake_worker()
    {
        auto control = shared_memory::create(control_bytes, "fuzz").value();
        memory = control.bytes();
        block = new (memory.data()) control_block;
        auto child = child_process::start(
            {.program = "/bin/sleep", .arguments = {"1000"}, .environment = {}, .descriptors = {}});
        require(bool(child), "there is a process");
        const link_plan plan{.program = {},
                             .plugin = {},
                             .setup = {},
                             .start_timeout = std::chrono::hours(1),
                             .heartbeat = {},
                             .log = [](std::string_view) {}};
        static const auto watch = process_monitor::shared();
        link = std::make_unique<worker_link>(
            plan, std::move(control), doorbell::create().value(), doorbell::create().value(), unique_fd(),
            std::move(descriptor_socket::create().value().first), std::move(child).value(), watch);
        requests.emplace(block->requests, memory.subspan(ring_offset, ring_bytes));
        replies.emplace(block->replies, memory.subspan(ring_offset + ring_bytes, ring_bytes));
    }

    void say(std::span<const std::byte> record)
    {
        if (!record.empty() && record.size() <= replies->max_record())
            (void)replies->write(record);
    }

    // In the memory of the link, which lives as long as the context that owns it.
    std::span<std::byte> memory;
    control_block* block = nullptr;
    std::unique_ptr<worker_link> link;
    std::optional<ring_reader> requests;
    std::optional<ring_writer> replies;
};

class session {
public:
    session(fuzz::input& in, const std::shared_ptr<staging>& memory) : in_(in), memory_(memory) {}
    ~session() { memory_->release(pinned_.data()); }

    /// Whether the parent accepts it as a worker.
    bool greet()
    {
        worker_.say(in_.take_record());
        // Without a record the parent would wait.
        if (worker_.block->replies.written == 0)
            worker_.block->replies.written = impossible;
        return !worker_.link->wait_until_ready();
    }

    void begin(boost::asio::io_context& io)
    {
        auto watch = doorbell_waiter::create(io.get_executor(), worker_.link->reply_bell().wait_fd(), ledger_);
        require(bool(watch), "there is a watch");
        context_options how;
        // Never armed with polling, because the io_context does not run.
        how.completion = completion::polled;
        remote_setup setup;
        setup.identity = {fuzz::device, fuzz::generation};
        setup.memory = memory_;
        // Without copy threads the copies run on this thread.
        setup.copy_threads = 0;
        link_ = worker_.link.get();
        context_ =
            std::make_unique<remote_context>(std::move(worker_.link), std::move(watch), ledger_, how, std::move(setup));
        for (const std::uint32_t slot : {1u, 2u})
            make(fuzz::buffer(slot, fuzz::every_request::many));
        make(fuzz::every_request::plan_memory());
        make(fuzz::every_request::plan_constant());
    }

    void step()
    {
        switch (fuzz::take_step(in_, reply_step::gauge)) {
        case reply_step::record: worker_.say(in_.take_record()); break;
        case reply_step::right_answer: answer(false); break;
        case reply_step::answer: answer(true); break;
        case reply_step::submit: submit(in_.take<std::uint8_t>()); break;
        case reply_step::release: context_->release(fuzz::buffer(in_.take<std::uint8_t>(), 1)); break;
        case reply_step::idle: break;
        case reply_step::position: worker_.block->replies.written = in_.take<std::uint64_t>(); break;
        case reply_step::requests_taken: worker_.block->requests.taken = in_.take<std::uint64_t>(); break;
        case reply_step::scribble: {
            const auto at = in_.take<std::uint32_t>() % memory_->bytes();
            const auto what = in_.take_record();
            std::copy_n(what.begin(), std::min<std::size_t>(what.size(), memory_->bytes() - at), memory_->at(at));
            break;
        }
        case reply_step::gauge:
            worker_.block->now.used = in_.take<std::uint64_t>();
            (void)context_->memory();
            break;
        }
        (void)context_->turn(clock::now());
    }

    void end(std::uint8_t flags)
    {
        // So that some requests are in flight and others are held back.
        for (std::size_t i = 0; i < requests_.all.size(); i += 3)
            submit(static_cast<std::uint8_t>(i));
        if ((flags & fuzz::is_dropped) == 0) {
            if ((flags & fuzz::dies) != 0)
                link_->end(errc::worker_hung);
            else
                worker_.block->replies.written = impossible;
            while (ledger_.losses == 0)
                if (context_->turn(clock::now()).when == next_turn::kind::sleep)
                    ledger_.wait();
                else
                    std::this_thread::yield();
        }
        detail::async_op_list left;
        context_->drop(left);
        while (auto* r = left.pop_front())
            require(ledger_.under_way.erase(static_cast<detail::request*>(r)) == 1, "a request is dropped once");
        require(ledger_.under_way.empty(), "every request ends");
        context_.reset();
    }

private:
    /// Makes the worker create a buffer, which copies need.
    void make(const any_ref& wanted)
    {
        fuzz::one_op<detail::allocate_op> r({.count = wanted.size, .type = wanted.type});
        ledger_.under_way.insert(&r);
        context_->submit(r, clock::now());
        fuzz::bytes record;
        submit_frame asked;
        for (message_type what{}; what != message_type::submit;) {
            (void)worker_.requests->read(record);
            decoder in(record);
            require(in.get(what, message_type::adopt, message_type::image), "it asks for something");
            if (what == message_type::submit)
                require(get_submit(in, asked), "it asks for a buffer");
        }
        encoder out;
        out.put(message_type::ended);
        out.put(asked.id);
        out.put_error({});
        out.put_ref(wanted);
        worker_.say(out.record());
        (void)context_->turn(clock::now());
        require(ledger_.under_way.empty(), "there is a buffer");
    }

    void submit(std::uint8_t number)
    {
        auto& r = *requests_.all[number % requests_.all.size()];
        if (ledger_.under_way.insert(&r).second)
            context_->submit(r, clock::now());
    }

    /// Replies to the next request of the context; `otherwise`: with a result from the input.
    void answer(bool otherwise)
    {
        fuzz::bytes record;
        const auto rest = otherwise ? in_.take_record() : std::span<const std::byte>();
        const auto got = worker_.requests->read(record);
        if (!got || !got.value())
            return;
        decoder in(record);
        message_type what{};
        submit_frame frame;
        load_frame load;
        run_frame run;
        plan_frame part;
        require(in.get(what, message_type::adopt, message_type::export_memory),
                "a parent writes what a worker understands");
        std::uint64_t id = 0;
        switch (what) {
        case message_type::submit:
            require(get_submit(in, frame), "a parent submits what a worker understands");
            id = frame.id;
            break;
        case message_type::load:
            require(get_load(in, load), "a parent loads what a worker understands");
            id = load.head.id;
            break;
        case message_type::run:
            require(get_run(in, run), "a parent runs what a worker understands");
            id = run.head.id;
            break;
        case message_type::plan: return require(get_plan(in, part), "a parent sends plans that a worker understands");
        default: return;
        }
        encoder out;
        out.put(message_type::ended);
        out.put(id);
        out.put_bytes(rest);
        if (!otherwise)
            put_results(out, frame);
        if (!otherwise && what == message_type::load)
            out.put(std::uint8_t(1));
        worker_.say(out.record());
    }

    void put_results(encoder& out, const submit_frame& frame)
    {
        out.put_error({});
        for (std::size_t i = 0; i < frame.size; ++i) {
            const op_frame& op = frame.ops[i];
            const fuzz::bytes reply(op.what == op_kind::plain ? op.reply_size : 0);
            if (op.what == op_kind::allocate)
                out.put_ref(fuzz::buffer(next_slot_++, op.count, op.type));
            out.put_bytes(reply);
        }
    }

    static std::span<float> pin(staging& memory)
    {
        constexpr std::size_t count = fuzz::every_request::few;
        auto* const pinned = static_cast<float*>(memory.try_allocate(count * sizeof(float)).value());
        require(pinned != nullptr, "there is pinned memory");
        return {pinned, count};
    }

    fuzz::input& in_;
    const std::shared_ptr<staging> memory_;
    const std::span<float> pinned_ = pin(*memory_);
    fuzz::every_request requests_{pinned_};
    fake_worker worker_;
    ledger ledger_;
    worker_link* link_ = nullptr;
    // After the buffers that exist at the start.
    std::uint32_t next_slot_ = 9;
    std::unique_ptr<remote_context> context_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const auto memory = staging::create(std::uint64_t(1) << 20).value();
    static boost::asio::io_context io;
    fuzz::input in(data, size);
    const auto flags = in.take<std::uint8_t>();
    {
        session s(in, memory);
        if ((flags & fuzz::greets) == 0 || s.greet()) {
            s.begin(io);
            while (!in.empty())
                s.step();
            s.end(flags);
        }
    }
    const auto all = memory->take(memory->bytes());
    require(all.has_value(), "a context gives its memory back");
    memory->give_back(*all);
    return 0;
}
