#include "worker/host_transfer.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using direction = transfer_view::direction;

constexpr std::uint64_t kib = 1024;

template <class Op>
bound_op bind(const Op& op)
{
    return {.info = &info_of<Op>(), .op = &op, .reply = nullptr};
}

template <class T>
ref<T> ref_of(std::uint64_t size)
{
    return ref<T>::from_raw(
        {.device = 1, .generation = 2, .slot = 3, .version = 4, .offset = 5, .size = size, .type = dtype_v<T>});
}

template <class T>
void check_views()
{
    T memory[3] = {};
    const detail::write_op<T> write{ref_of<T>(3), memory, 3};
    const auto w = view_transfer(bind(write));
    REQUIRE(w);
    CHECK(w->way == direction::to_device);
    CHECK(w->ref == write.dst.raw);
    CHECK(w->host == memory);
    CHECK(w->count == 3);
    CHECK(w->bytes() == sizeof(memory));

    // The size of an element is the op's to say, also while its ref is none, as that of an upload is at first.
    const detail::write_op<T> early{ref<T>::from_raw({}), memory, 3};
    CHECK(view_transfer(bind(early))->bytes() == sizeof(memory));

    // Lengths that differ are for the check of the op.
    const detail::read_op<T> read{ref_of<T>(3), memory, 2};
    const auto r = view_transfer(bind(read));
    REQUIRE(r);
    CHECK(r->way == direction::to_host);
    CHECK(r->ref == read.src.raw);
    CHECK(r->host == memory);
    CHECK(r->count == 2);
    CHECK(r->bytes() == 2 * sizeof(T));

    int object = 0;
    const detail::collect_op<T> collect{
        ref_of<T>(7),
        {&object, [](void*, const void*, std::size_t) noexcept {}, [](void* p, std::size_t) noexcept { return p; }}};
    const auto c = view_transfer(bind(collect));
    REQUIRE(c);
    CHECK(c->way == direction::to_host);
    CHECK(c->ref == collect.src.raw);
    CHECK(c->host == nullptr);
    CHECK(c->sink.object == &object);
    CHECK((c->sink.append == collect.sink.append));
    CHECK((c->sink.room == collect.sink.room));
    CHECK(c->count == 7);
    CHECK(c->bytes() == 7 * sizeof(T));

    const memory::fill<T> fill{ref_of<T>(3), T{}};
    CHECK_FALSE(view_transfer(bind(fill)));
    const memory::copy<T> copy{ref_of<T>(3), ref_of<T>(3)};
    CHECK_FALSE(view_transfer(bind(copy)));
}

template <class... Ts>
void check_all_views(type_list<Ts...>)
{
    (check_views<Ts>(), ...);
}

} // namespace

TEST_SUITE_BEGIN("host_transfer");

TEST_CASE("transfers of every element type are seen as what they are")
{
    check_all_views(element_types{});
}

TEST_CASE("ops that are no transfers are not seen as such")
{
    const detail::allocate_op allocate{3, dtype::f32};
    CHECK_FALSE(view_transfer(bind(allocate)));
    const memory::trim trim;
    CHECK_FALSE(view_transfer(bind(trim)));
    const blas::gemm<float> gemm{};
    CHECK_FALSE(view_transfer(bind(gemm)));
    // The same number in another library is another op.
    auto other = info_of<detail::write_op<float>>();
    other.lib = library::user;
    const detail::write_op<float> write{};
    CHECK_FALSE(view_transfer({.info = &other, .op = &write, .reply = nullptr}));
}

TEST_CASE("pieces are next to each other, in order, none beyond the end, and never too many at a time")
{
    for (std::uint64_t bytes = 0; bytes <= 40; ++bytes)
        for (std::uint64_t piece_bytes = 1; piece_bytes <= 12; ++piece_bytes) {
            CAPTURE(bytes);
            CAPTURE(piece_bytes);
            std::minstd_rand random(static_cast<unsigned>(1 + bytes * 100 + piece_bytes));
            host_transfer t(bytes, piece_bytes);
            std::vector<host_transfer::piece> begun;
            std::uint64_t at = 0, sent = 0, ended = 0;
            bool wrong = false;
            while (!t.over()) {
                const auto next = t.next();
                const bool must = begun.size() - ended < host_transfer::most_under_way && at < bytes;
                wrong |= next.has_value() != must;
                wrong |= t.all_sent() && sent < begun.size();
                if (next && random() % 2) {
                    wrong |= next->offset != at || next->bytes == 0 || next->bytes > piece_bytes;
                    wrong |= next->bytes < piece_bytes && next->offset + next->bytes != bytes;
                    t.begun(*next);
                    begun.push_back(*next);
                    at += next->bytes;
                } else if (sent < begun.size() && random() % 2) {
                    t.sent(begun[sent++]);
                } else if (ended < sent) {
                    t.ended({});
                    ++ended;
                }
                REQUIRE_FALSE(wrong);
            }
            CHECK(at == bytes);
            CHECK(ended == begun.size());
            CHECK(t.all_sent());
            CHECK_FALSE(t.next());
            CHECK_FALSE(t.error());
        }
}

TEST_CASE("a transfer of nothing is over before it has begun")
{
    for (const host_transfer& t : {host_transfer(), host_transfer(0, 4096)}) {
        CHECK(t.over());
        CHECK(t.all_sent());
        CHECK_FALSE(t.next());
    }
}

TEST_CASE("no more than eight pieces are under way")
{
    host_transfer t(100, 1);
    for (int i = 0; i < host_transfer::most_under_way; ++i) {
        const auto p = t.next();
        REQUIRE(p);
        t.begun(*p);
    }
    CHECK_FALSE(t.next());
    t.ended({});
    CHECK(t.next());
}

TEST_CASE("after the first failure nothing begins, and all is over when the rest has ended")
{
    for (int under_way = 1; under_way <= host_transfer::most_under_way; ++under_way)
        for (int failing = 0; failing < under_way; ++failing) {
            host_transfer t(100, 4);
            for (int i = 0; i < under_way; ++i)
                t.begun(*t.next());
            for (int i = 0; i < under_way; ++i) {
                CHECK_FALSE(t.over());
                CHECK(t.all_sent() == (i > failing));
                t.ended(i == failing                ? make_error_code(errc::out_of_memory)
                        : i > failing && i % 2 == 0 ? make_error_code(errc::released_ref)
                                                    : error_code{});
            }
            CHECK(t.over());
            CHECK_FALSE(t.next());
            CHECK(t.error() == errc::out_of_memory);
        }
}

TEST_CASE("a transfer that fails before its first piece is over at once")
{
    host_transfer t(100, 4);
    t.fail(errc::out_of_memory);
    CHECK(t.over());
    CHECK(t.all_sent());
    CHECK_FALSE(t.next());
    CHECK(t.error() == errc::out_of_memory);
}

TEST_CASE("all is sent when the last piece is, not when it has begun")
{
    host_transfer t(8, 4);
    const auto first = *t.next();
    t.begun(first);
    const auto second = *t.next();
    t.begun(second);
    CHECK_FALSE(t.all_sent());
    t.sent(first);
    CHECK_FALSE(t.all_sent());
    t.sent(second);
    CHECK(t.all_sent());
    CHECK_FALSE(t.over());
    t.ended({});
    t.ended({});
    CHECK(t.over());
}

TEST_CASE("pieces are halved while none is under way, down to a page")
{
    host_transfer t(64 * kib, 32 * kib);
    for (const auto expected : {32 * kib, 16 * kib, 8 * kib, 4 * kib}) {
        CHECK(t.next()->bytes == expected);
        CHECK(t.make_do_with_less() == (expected > 4 * kib));
    }
    CHECK(t.next()->bytes == 4 * kib);
    host_transfer busy(64 * kib, 32 * kib);
    busy.begun(*busy.next());
    CHECK_FALSE(busy.make_do_with_less());
    CHECK(busy.next()->bytes == 32 * kib);
    busy.ended({});
    CHECK(busy.make_do_with_less());
    CHECK(busy.next()->bytes == 16 * kib);
    CHECK(busy.next()->offset == 32 * kib);
}

TEST_CASE("a piece holds whole elements of every type and several fit into the staging area")
{
    for (std::uint64_t staging = 512 * kib; staging <= (std::uint64_t(1) << 32); staging = staging * 3 / 2)
        for (std::uint64_t bytes = 1; bytes < (std::uint64_t(1) << 40); bytes = bytes * 5 / 3 + 1) {
            const auto piece = host_transfer::piece_for(bytes, staging);
            REQUIRE(piece % 4096 == 0);
            REQUIRE(piece >= 32 * kib);
            REQUIRE(piece <= 2048 * kib);
            REQUIRE(host_transfer::most_under_way * piece <= std::max(staging / 2, 256 * kib));
        }
    CHECK(host_transfer::piece_for(1, 64 << 20) == 256 * kib);
    CHECK(host_transfer::piece_for(std::uint64_t(1) << 30, 64 << 20) == 2048 * kib);
    CHECK(host_transfer::piece_for(~std::uint64_t(0), 64 << 20) == 2048 * kib);
}

TEST_SUITE_END();
