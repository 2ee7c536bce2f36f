#include "buffer_ref.hpp"
#include "host/factory.hpp"
#include "posix/sealed_memory.hpp"
#include "support/context_driver.hpp"
#include "support/op_frames.hpp"
#include "worker/child/server.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <future>
#include <optional>
#include <thread>

namespace test_worker_server_memory {

// Memory that outlives the worker, in the worker.
namespace {

using namespace coaccel;
using namespace coaccel::worker;
using namespace std::chrono_literals;
using detail::sealed_memory;
using test::context_driver;

constexpr std::uint64_t bytes = 4 * 4096;

/// A server on its own thread, with the test as its parent.
class served {
public:
    served()
    {
        control_->setup.beat = 100ms;
        control_->setup.staging_bytes = staging_.size();
        thread_ = std::thread([this] {
            {
                server s({*control_,
                          {request_ring_.get(), ring_bytes},
                          {reply_ring_.get(), ring_bytes},
                          staging_,
                          request_bell_,
                          reply_bell_,
                          sockets_.second});
                host_options o;
                o.threads = 1;
                o.injector = &faults_;
                s.run(host::make_factory(o), faults_);
            }
            over_.set_value();
        });
        std::string name;
        hardware_info hardware;
        exporting exports{};
        auto in = next(message_type::ready);
        REQUIRE((in.get_text(name) && get_hardware(in, hardware) && in.get(exports, exporting::no, exporting::yes)));
        CHECK(in.at_end());
        CHECK(exports == exporting::yes);
        encoder out;
        out.put(message_type::adopt);
        out.put(context_driver::device);
        out.put(context_driver::generation);
        ask(out);
    }

    ~served()
    {
        encoder nonsense;
        nonsense.put(std::uint8_t(0));
        ask(nonsense);
        thread_.join();
    }

    void ask(const encoder& out)
    {
        REQUIRE(requests_.write(out.record()) == written::yes);
        if (requests_.wants_bell())
            request_bell_.ring();
    }

    decoder next(message_type expected)
    {
        for (;;) {
            const auto got = replies_.read(record_);
            REQUIRE(got);
            if (got.value())
                break;
            if (replies_.may_sleep()) {
                REQUIRE(reply_bell_.wait(60s));
                replies_.awake();
            }
        }
        decoder in(record_);
        message_type what{};
        REQUIRE(in.get(what, expected, expected));
        return in;
    }

    /// The error of the reply; the rest of it is in `rest`.
    error_code reply_to(std::uint64_t id, std::optional<any_ref>* made = nullptr)
    {
        auto in = next(message_type::ended);
        std::uint64_t got = 0;
        error_code ec;
        REQUIRE((in.get(got) && in.get_error(ec)));
        CHECK(got == id);
        if (any_ref r; made && !in.at_end() && in.get_ref(r))
            *made = r;
        CHECK(in.at_end());
        return ec;
    }

    any_ref allocate(memory_kind kind)
    {
        op_frame f;
        f.what = op_kind::allocate;
        f.count = bytes;
        f.kind = kind;
        encoder out;
        put_submit_head(out, 1, {}, injected_fault::none, 1);
        put_op(out, f);
        ask(out);
        std::optional<any_ref> made;
        REQUIRE_FALSE(reply_to(1, &made));
        return made.value();
    }

    void write(const any_ref& to, char content)
    {
        std::memset(staging_.data(), content, bytes);
        op_frame f;
        f.what = op_kind::write;
        f.ref = to;
        f.count = bytes;
        encoder out;
        put_submit_head(out, 2, {}, injected_fault::none, 1);
        put_op(out, f);
        ask(out);
        REQUIRE_FALSE(reply_to(2));
    }

    char read(const any_ref& from)
    {
        std::memset(staging_.data(), 0, bytes);
        op_frame f;
        f.what = op_kind::read;
        f.ref = from;
        f.count = bytes;
        encoder out;
        put_submit_head(out, 3, {}, injected_fault::none, 1);
        put_op(out, f);
        ask(out);
        REQUIRE_FALSE(reply_to(3));
        CHECK(staging_[0] == staging_[bytes - 1]);
        return static_cast<char>(staging_[0]);
    }

    void ask_import(std::uint64_t id, std::uint64_t size = bytes)
    {
        encoder out;
        put_import(out, {.head = {id, {}, injected_fault::none}, .buffer = {.count = size}});
        ask(out);
    }

    void ask_export(std::uint64_t id, const any_ref& buffer)
    {
        encoder out;
        put_export(out, {.head = {id, {}, injected_fault::none}, .buffer = buffer});
        ask(out);
    }

    descriptor_socket& socket() { return sockets_.first; }
    bool over() { return ended_.wait_for(60s) == std::future_status::ready; }

private:
    std::unique_ptr<control_block> control_ = std::make_unique<control_block>();
    std::unique_ptr<std::byte[]> request_ring_ = std::make_unique<std::byte[]>(ring_bytes);
    std::unique_ptr<std::byte[]> reply_ring_ = std::make_unique<std::byte[]>(ring_bytes);
    std::vector<std::byte> staging_ = std::vector<std::byte>(bytes);
    doorbell request_bell_ = doorbell::create().value();
    doorbell reply_bell_ = doorbell::create().value();
    std::pair<descriptor_socket, descriptor_socket> sockets_ = descriptor_socket::create().value();
    fault_injector faults_;
    ring_writer requests_{control_->requests, {request_ring_.get(), ring_bytes}};
    ring_reader replies_{control_->replies, {reply_ring_.get(), ring_bytes}};
    std::vector<std::byte> record_;
    std::promise<void> over_;
    std::future<void> ended_ = over_.get_future();
    std::thread thread_;
};

} // namespace

TEST_SUITE_BEGIN("server_memory");

TEST_CASE("memory that one worker has exported is imported by another, after its end too")
{
    detail::unique_fd fd;
    {
        served first;
        const any_ref made = first.allocate(memory_kind::exportable);
        first.write(made, 'm');
        first.ask_export(10, made);
        REQUIRE_FALSE(first.reply_to(10));
        auto got = first.socket().receive(10);
        REQUIRE(got);
        CHECK_FALSE(sealed_memory::check(got.value(), bytes, memory_access::read_only));
        fd = std::move(got).value();
        CHECK(first.read(made) == 'm');
    }
    served second;
    REQUIRE_FALSE(second.socket().send(11, fd.get()));
    second.ask_import(11);
    std::optional<any_ref> made;
    REQUIRE_FALSE(second.reply_to(11, &made));
    REQUIRE(made);
    CHECK(made->size == bytes);
    CHECK(made->type == dtype::u8);
    CHECK(second.read(*made) == 'm');
}

TEST_CASE("what cannot be exported or imported is an error, and the worker goes on")
{
    served s;
    const any_ref ordinary = s.allocate(memory_kind::device);
    s.ask_export(10, ordinary);
    CHECK(errc_of(s.reply_to(10)) == errc::invalid_argument);
    s.ask_export(11, test::buffer_ref(context_driver::device, 99, bytes, dtype::u8));
    CHECK(s.reply_to(11));
    CHECK(s.socket().empty());
    // Of another size.
    REQUIRE_FALSE(
        s.socket().send(12, sealed_memory::create(4096, "test").value().seal(memory_access::read_only).value().get()));
    s.ask_import(12);
    CHECK(errc_of(s.reply_to(12)) == errc::invalid_argument);
    s.write(ordinary, 'o');
    CHECK(s.read(ordinary) == 'o');
}

TEST_CASE("a record without its descriptor is a protocol error")
{
    {
        served s;
        s.ask_import(10);
        CHECK(s.over());
    }
    served s;
    REQUIRE_FALSE(
        s.socket().send(11, sealed_memory::create(bytes, "test").value().seal(memory_access::read_only).value().get()));
    s.ask_import(10);
    CHECK(s.over());
}

TEST_SUITE_END();

} // namespace test_worker_server_memory
