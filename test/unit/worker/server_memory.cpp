#include "buffer_ref.hpp"
#include "posix/sealed_memory.hpp"
#include "served.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace test_worker_server_memory {

// Memory that outlives the worker, in the worker.
namespace {

using namespace coaccel;
using namespace coaccel::worker;
using namespace std::chrono_literals;
using detail::sealed_memory;
using test::context_driver;

constexpr std::uint64_t bytes = 4 * 4096;

struct staging_area {
    std::vector<std::byte> staging_ = std::vector<std::byte>(bytes);
};

/// A server that was adopted.
class served : staging_area, public test::served {
public:
    served() : test::served(staging_)
    {
        std::string name;
        hardware_info hardware;
        exporting exports{};
        auto in = next(message_type::ready);
        REQUIRE((in.get_text(name) && get_hardware(in, hardware) && in.get(exports, exporting::no, exporting::yes)));
        CHECK(in.at_end());
        CHECK(exports == exporting::yes);
        REQUIRE(test::served::ask(test::adopt_record()));
    }

    ~served()
    {
        encoder nonsense;
        nonsense.put(std::uint8_t(0));
        ask(nonsense);
    }

    void ask(const encoder& out) { REQUIRE(test::served::ask(out.record())); }

    decoder next(message_type expected)
    {
        wait_for_reply();
        auto in = reply();
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

    /// Whether it ends.
    bool over() { return test::served::over(60s); }
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
