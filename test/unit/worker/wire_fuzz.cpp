#include "buffer_ref.hpp"
#include "host/factory.hpp"
#include "mutator.hpp"
#include "support/op_frames.hpp"
#include "support/plan_records.hpp"
#include "worker/child/received_kernels.hpp"
#include "worker/child/server.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <future>
#include <sys/mman.h>
#include <thread>

namespace test_worker_wire_fuzz {

// Mutated records for the worker. A failure message contains the seed, which reproduces the records.
namespace {

using namespace coaccel;
using namespace coaccel::worker;
using namespace std::chrono_literals;
using test::allocation;
using test::buffer_ref;
using test::bytes;
using test::context_driver;
using test::fuzz_time;
using test::generator;
using test::mutated;
using test::plain;
using test::submission;
using clock_type = std::chrono::steady_clock;

/// Between inaccessible pages. Never freed, because a context that hangs may use it longer than its test.
std::span<std::byte> guarded_staging()
{
    constexpr std::size_t page = 4096, size = 16 * page;
    static std::byte* const base = [] {
        void* const all = ::mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(all != MAP_FAILED);
        auto* const inner = static_cast<std::byte*>(all) + page;
        REQUIRE(::mprotect(inner, size, PROT_READ | PROT_WRITE) == 0);
        return inner;
    }();
    return {base, size};
}

op_frame transfer(op_kind what, const any_ref& ref)
{
    return test::transfer(what, ref, 256, ref.size);
}

constexpr std::uint64_t kernel_number = 5;

bytes image_record()
{
    encoder out;
    image_frame f;
    f.id = kernel_number;
    f.name = "scale";
    f.symbol = "_Z5scalePKfPff";
    const bytes code(64, std::byte{1});
    f.total = code.size();
    f.part = code;
    put_image(out, f);
    return {out.record().begin(), out.record().end()};
}

bytes launch_record(const any_ref& a, const any_ref& b)
{
    using launch = jit::launch_op<in<float>, out<float>, float>;
    launch op({}, {{2}, {3}}, in<float>(ref<float>::from_raw(a)), out<float>(ref<float>::from_raw(b)), 1.5f);
    bytes data(sizeof(op));
    std::memcpy(data.data(), &op, sizeof(op));
    std::memcpy(data.data(), &kernel_number, sizeof(kernel_number));
    op_frame f;
    f.what = op_kind::launch;
    f.id = jit::launch_op_id;
    f.data = data;
    f.operands = info_of<launch>().operands;
    return submission({f});
}

/// Requests about the plan of opening().
std::vector<bytes> plan_requests();

/// Requests of every message type that is sent to the worker.
std::vector<bytes> valid_requests()
{
    constexpr auto device = context_driver::device;
    const any_ref here = buffer_ref(made_here, 0, 64);
    const auto made = ref<float>::from_raw(here);
    const any_ref first = buffer_ref(device, 0, 64), second = buffer_ref(device, 1, 64);
    const auto x = ref<float>::from_raw(first), y = ref<float>::from_raw(second);
    std::vector<bytes> all;
    encoder out;
    out.put(message_type::adopt);
    out.put(context_driver::device);
    out.put(context_driver::generation);
    all.emplace_back(out.record().begin(), out.record().end());
    all.push_back(submission({allocation(64)}));
    all.push_back(submission({allocation(64), plain(memory::fill<float>{made, 1})}));
    all.push_back(submission({allocation(64), transfer(op_kind::write, here)}));
    all.push_back(submission({allocation(64), transfer(op_kind::write, here), transfer(op_kind::read, here)}));
    all.push_back(submission({transfer(op_kind::write, first)}));
    all.push_back(submission({transfer(op_kind::read, second)}));
    all.push_back(submission({plain(memory::fill<float>{x, 2})}));
    all.push_back(submission({plain(memory::copy<float>{x, y})}));
    all.push_back(submission({plain(memory::trim{})}));
    all.push_back(submission({plain(blas::gemm<float>{
        .a = x.subspan(0, 16), .b = x.subspan(16, 16), .c = y.subspan(0, 16), .m = 4, .n = 4, .k = 4})}));
    all.push_back(submission({plain(blas::dot<float>{.x = x, .y = y, .n = 64})}));
    all.push_back(image_record());
    all.push_back(launch_record(first, second));
    out.clear();
    out.put(message_type::release);
    out.put_ref(second);
    all.emplace_back(out.record().begin(), out.record().end());
    out.clear();
    put_export(out, {.head = {}, .buffer = buffer_ref(device, 0, 64, dtype::u8)});
    all.emplace_back(out.record().begin(), out.record().end());
    for (const bytes& r : plan_requests())
        all.push_back(r);
    return all;
}

const any_ref instance_memory = buffer_ref(context_driver::device, 2, test::small_plan_instance, dtype::u8);
const any_ref instance_constant = buffer_ref(context_driver::device, 3, test::small_plan_constant, dtype::u8);

/// Records after which a worker has two buffers of floats and a loaded plan.
std::vector<bytes> opening()
{
    encoder out;
    out.put(message_type::adopt);
    out.put(context_driver::device);
    out.put(context_driver::generation);
    std::vector<bytes> all{{out.record().begin(), out.record().end()}};
    all.push_back(submission({allocation(64)}));
    all.push_back(submission({allocation(64)}));
    all.push_back(submission({allocation(instance_memory.size, dtype::u8)}));
    all.push_back(submission({allocation(instance_constant.size, dtype::u8)}));
    all.push_back(test::plan_record(*test::small_plan()));
    all.push_back(test::load_record(1, {instance_memory, instance_constant}));
    return all;
}

std::vector<bytes> plan_requests()
{
    encoder out;
    out.put(message_type::release);
    out.put_ref(instance_constant);
    const bytes release(out.record().begin(), out.record().end());
    return {test::run_record(1, instance_memory), test::run_record(1, instance_memory),
            test::run_record(2, instance_memory), test::unload_record(2), release};
}

/// Every valid record, including those that are valid only once.
std::vector<bytes> every_record()
{
    auto all = valid_requests();
    encoder out;
    put_import(out, {.head = {}, .buffer = {.count = 4096}});
    all.emplace_back(out.record().begin(), out.record().end());
    const auto plan = test::small_plan();
    for (const bytes& r : opening())
        all.push_back(r);
    for (const bytes& r : {test::plan_record(*plan, 0, 50), test::plan_record(*plan, 50), test::unload_record(1),
                           test::load_record(2, {instance_memory, instance_constant}), test::forget_plan_record()})
        all.push_back(r);
    return all;
}

class host_world final : public test::context_world {
public:
    host_world()
    {
        host.mode = host_mode::inline_;
        host.memory_limit = std::uint64_t(1) << 20;
    }

    detail::context_factory factory() override
    {
        host.injector = &injector;
        return coaccel::host::make_factory(host);
    }

    void poison() override {}

    fault_injector injector;
    host_options host;
};

/// A server on its own thread, with the test as its parent.
class served {
public:
    served()
    {
        control_->setup.spin = 0ns;
        control_->setup.beat = 100ms;
        control_->setup.staging_bytes = guarded_staging().size();
        thread_ = std::thread([this] {
            {
                server s({*control_,
                          {request_ring_.get(), ring_bytes},
                          {reply_ring_.get(), ring_bytes},
                          guarded_staging(),
                          request_bell_,
                          reply_bell_,
                          sockets_.second});
                host_options o;
                o.threads = 1;
                o.memory_limit = std::uint64_t(1) << 20;
                o.injector = &faults_;
                s.run(coaccel::host::make_factory(o), faults_);
            }
            over_.set_value();
        });
    }

    ~served() { thread_.join(); }

    bool over(std::chrono::milliseconds wait) { return ended_.wait_for(wait) == std::future_status::ready; }

    /// Returns false if the ring is full.
    bool ask(std::span<const std::byte> record)
    {
        if (requests_.write(record) != written::yes)
            return false;
        if (requests_.wants_bell())
            request_bell_.ring();
        return true;
    }

    /// Returns the number of valid replies; fails on an invalid one.
    int listen()
    {
        int n = 0;
        for (;;) {
            const auto got = replies_.read(record_);
            REQUIRE(got);
            if (!got.value())
                return n;
            decoder in(record_);
            message_type what{};
            error_code ec;
            std::uint64_t id = 0;
            std::uint32_t position = 0;
            std::string text;
            hardware_info hardware;
            exporting exports{};
            REQUIRE(in.get(what, message_type::ready, message_type::lost));
            switch (what) {
            case message_type::ready:
                REQUIRE((in.get_text(text) && get_hardware(in, hardware) &&
                         in.get(exports, exporting::no, exporting::yes) && in.at_end()));
                break;
            case message_type::lost: REQUIRE((in.get_error(ec) && in.at_end() && ec)); break;
            case message_type::ended: REQUIRE((in.get(id) && in.get_error(ec))); break;
            case message_type::unsupported: REQUIRE((in.get(id) && in.get(position) && in.at_end())); break;
            default: REQUIRE(false);
            }
            ++n;
        }
    }

    void wait_until_ready()
    {
        while (listen() == 0)
            if (replies_.may_sleep()) {
                REQUIRE(reply_bell_.wait(60s));
                replies_.awake();
            }
    }

    bool has_taken_all() const { return control_->requests.taken == control_->requests.written; }

    control_block& control() { return *control_; }
    void ring() { request_bell_.ring(); }

private:
    std::unique_ptr<control_block> control_ = std::make_unique<control_block>();
    std::unique_ptr<std::byte[]> request_ring_ = std::make_unique<std::byte[]>(ring_bytes);
    std::unique_ptr<std::byte[]> reply_ring_ = std::make_unique<std::byte[]>(ring_bytes);
    doorbell request_bell_ = doorbell::create().value();
    doorbell reply_bell_ = doorbell::create().value();
    std::pair<descriptor_socket, descriptor_socket> sockets_ = descriptor_socket::create().value();
    fault_injector faults_;
    ring_writer requests_{control_->requests, {request_ring_.get(), ring_bytes}};
    ring_reader replies_{control_->replies, {reply_ring_.get(), ring_bytes}};
    bytes record_;
    std::promise<void> over_;
    std::future<void> ended_ = over_.get_future();
    std::thread thread_;
};

const bytes nonsense(1, std::byte{0});

} // namespace

TEST_SUITE_BEGIN("wire_fuzz");

TEST_CASE("a mutated record is decoded to exactly its content or refused")
{
    const auto seeds = every_record();
    const auto end = clock_type::now() + fuzz_time(4);
    generator random(1);
    std::uint64_t taken = 0, refused = 0, wrong = 0;
    encoder out;
    while (clock_type::now() < end)
        for (int i = 0; i < 500; ++i) {
            const bytes r = mutated(seeds[random() % seeds.size()], random, seeds);
            const std::span<const std::byte> body = std::span(r).subspan(1);
            out.clear();
            submit_frame submit;
            image_frame image;
            plan_frame plan;
            load_frame load;
            run_frame run;
            import_frame imported;
            export_frame exported;
            hardware_info hardware;
            error_code ec;
            any_ref ref;
            decoder as_plan(body), as_load(body), as_run(body), as_import(body), as_export(body);
            decoder as_submit(body), as_image(body), as_hardware(body), as_error(body), as_ref(body);
            const bool is_submit = get_submit(as_submit, submit);
            if (is_submit) {
                put_submit_head(out, submit.id, submit.how, submit.injected_fault,
                                static_cast<std::uint8_t>(submit.size));
                for (std::size_t n = 0; n < submit.size; ++n)
                    put_op(out, submit.ops[n]);
            } else if (get_image(as_image, image)) {
                put_image(out, image);
            } else if (get_plan(as_plan, plan)) {
                put_plan(out, plan);
            } else if (get_load(as_load, load)) {
                put_load(out, load);
            } else if (get_run(as_run, run)) {
                put_run(out, run);
            } else if (get_import(as_import, imported)) {
                put_import(out, imported);
            } else if (get_export(as_export, exported)) {
                put_export(out, exported);
            }
            const bool same = out.record().empty() || std::ranges::equal(out.record().subspan(1), body);
            wrong += !same;
            ++(out.record().empty() ? refused : taken);
            (void)get_hardware(as_hardware, hardware);
            (void)as_error.get_error(ec);
            (void)as_ref.get_ref(ref);
        }
    MESSAGE("taken ", taken, ", refused ", refused);
    CHECK(wrong == 0);
    CHECK(taken > 0);
    CHECK(refused > 0);
}

TEST_CASE("a request from a mutated record is run or refused by the context")
{
    const auto seeds = valid_requests();
    const auto end = clock_type::now() + fuzz_time(4);
    std::uint64_t ran = 0, failed = 0, refused = 0;
    for (std::uint64_t seed = 1; clock_type::now() < end; ++seed) {
        INFO("seed ", seed);
        generator random(seed);
        host_world world;
        context_driver driver(world);
        received_kernels images;
        submit_frame frame;
        remote_request request;
        for (int i = 0; i < 300; ++i) {
            const bytes r = i < static_cast<int>(seeds.size()) ? seeds[static_cast<std::size_t>(i)]
                                                               : mutated(seeds[random() % seeds.size()], random, seeds);
            decoder in{std::span(r).subspan(1)};
            image_frame image;
            if (static_cast<message_type>(r[0]) == message_type::image) {
                if (get_image(in, image))
                    (void)images.add(image);
                continue;
            }
            if (static_cast<message_type>(r[0]) != message_type::submit || !get_submit(in, frame))
                continue;
            const auto ec = request.load(frame, *driver.context, images, guarded_staging());
            if (ec) {
                ++refused;
                continue;
            }
            const auto outcome = driver.outcome_of(request);
            ++(outcome ? failed : ran);
            encoder out;
            request.put_replies(out, !outcome);
            for (std::size_t n = 0; n < frame.size; ++n)
                if (frame.ops[n].what == op_kind::allocate && random() % 2)
                    driver.context->release(request.made(n));
        }
    }
    MESSAGE("ran ", ran, ", failed ", failed, ", refused ", refused);
    CHECK(ran > 0);
    CHECK(failed > 0);
    CHECK(refused > 0);
}

TEST_CASE("a server that gets mutated records replies or ends")
{
    const auto seeds = valid_requests(), all = every_record();
    const auto end = clock_type::now() + fuzz_time(4);
    std::uint64_t sessions = 0, asked = 0, answers = 0, ended_early = 0;
    for (std::uint64_t seed = 1; clock_type::now() < end; ++seed, ++sessions) {
        INFO("seed ", seed);
        generator random(seed);
        served s;
        s.wait_until_ready();
        for (const bytes& r : opening())
            REQUIRE(s.ask(r));
        for (int i = 0; i < 200 && !s.over(0ms); ++i) {
            const bytes& valid = seeds[random() % seeds.size()];
            const bytes r = i < 20 || random() % 16 ? valid : mutated(all[random() % all.size()], random, all);
            if (r.size() > max_ring_record(ring_bytes) || !s.ask(r))
                break;
            ++asked;
            answers += static_cast<std::uint64_t>(s.listen());
        }
        const auto until = clock_type::now() + 60s;
        while (!s.over(0ms) && !s.has_taken_all()) {
            REQUIRE(clock_type::now() < until);
            answers += static_cast<std::uint64_t>(s.listen());
        }
        ended_early += s.over(0ms);
        while (!s.over(1ms)) {
            REQUIRE(clock_type::now() < until);
            (void)s.ask(nonsense);
            s.ring();
            answers += static_cast<std::uint64_t>(s.listen());
        }
        answers += static_cast<std::uint64_t>(s.listen());
    }
    MESSAGE("sessions ", sessions, ", asked ", asked, ", answers ", answers, ", ended early ", ended_early);
    CHECK(answers > 0);
    CHECK(ended_early > 0);
}

TEST_CASE("a server loads, runs and unloads a plan, and ends when it gets one that is invalid")
{
    served s;
    s.wait_until_ready();
    const auto until = clock_type::now() + 60s;
    int answers = 0;
    const auto expect = [&](int n) {
        while (answers < n) {
            REQUIRE(clock_type::now() < until);
            answers += s.listen();
        }
    };
    for (const bytes& r : opening())
        REQUIRE(s.ask(r));
    auto* const x = reinterpret_cast<float*>(guarded_staging().data() + 256);
    auto* const y = reinterpret_cast<float*>(guarded_staging().data() + 1024);
    // The content of the constant.
    std::fill_n(x, 4, 3.0f);
    REQUIRE(s.ask(submission({transfer(op_kind::write, instance_constant)})));
    // Four buffers, the load and the copy.
    expect(6);
    x[0] = 4;
    y[0] = -1;
    REQUIRE(s.ask(test::run_record(1, instance_memory)));
    expect(7);
    CHECK(y[0] == 11);
    REQUIRE(s.ask(test::unload_record(1)));
    REQUIRE(s.ask(test::run_record(1, instance_memory)));
    expect(9);
    REQUIRE(s.ask(test::forget_plan_record()));
    REQUIRE(s.ask(test::plan_record(*test::small_plan(), 0, 50)));
    while (!s.has_taken_all())
        REQUIRE(clock_type::now() < until);
    CHECK_FALSE(s.over(0ms));
    REQUIRE(s.ask(test::load_record(1, {instance_memory, instance_constant})));
    CHECK(s.over(60s));
}

TEST_CASE("a server with an impossible ring position ends")
{
    for (const std::uint64_t position : {std::uint64_t(1), std::uint64_t(8), std::uint64_t(ring_bytes) + 8,
                                         ~std::uint64_t(7), std::uint64_t(1) << 63}) {
        CAPTURE(position);
        served s;
        s.control().requests.written = position;
        s.ring();
        CHECK(s.over(60s));
    }
}

TEST_CASE("a server keeps its replies until they are read")
{
    served s;
    const auto fill = submission({plain(memory::trim{})});
    const auto until = clock_type::now() + 60s;
    int asked = 0;
    while (asked < 30000) {
        REQUIRE(clock_type::now() < until);
        asked += s.ask(fill);
    }
    int answers = -1; // It also reports that it is ready.
    while (answers < asked) {
        REQUIRE(clock_type::now() < until);
        answers += s.listen();
    }
    CHECK(answers == asked);
    (void)s.ask(nonsense);
    CHECK(s.over(60s));
}

TEST_SUITE_END();

} // namespace test_worker_wire_fuzz
