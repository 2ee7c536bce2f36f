#include "worker/transport/chunked_copy.hpp"

#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace test_worker_chunked_copy {

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

    // The op determines the element size, even while its ref is empty, as in an upload before the allocation.
    const detail::write_op<T> early{ref<T>::from_raw({}), memory, 3};
    CHECK(view_transfer(bind(early))->bytes() == sizeof(memory));

    // The check of the op handles different lengths.
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

TEST_SUITE_BEGIN("chunked_copy");

TEST_CASE("write, read and collect ops of every element type are recognized as transfers")
{
    check_all_views(element_types{});
}

TEST_CASE("other ops are not recognized as transfers")
{
    const detail::allocate_op allocate{3, dtype::f32};
    CHECK_FALSE(view_transfer(bind(allocate)));
    const memory::trim trim;
    CHECK_FALSE(view_transfer(bind(trim)));
    const blas::gemm<float> gemm{};
    CHECK_FALSE(view_transfer(bind(gemm)));
    // The role counts, not the id.
    auto other = info_of<detail::write_op<float>>();
    other.role = op_role::compute;
    const detail::write_op<float> write{};
    CHECK_FALSE(view_transfer({.info = &other, .op = &write, .reply = nullptr}));
}

TEST_CASE("chunks are contiguous, in order, within the transfer, and limited in number")
{
    for (std::uint64_t bytes = 0; bytes <= 40; ++bytes)
        for (std::uint64_t piece_bytes = 1; piece_bytes <= 12; ++piece_bytes) {
            CAPTURE(bytes);
            CAPTURE(piece_bytes);
            std::minstd_rand random(static_cast<unsigned>(1 + bytes * 100 + piece_bytes));
            chunked_copy t(bytes, piece_bytes);
            std::vector<chunked_copy::piece> begun;
            std::uint64_t at = 0, sent = 0, ended = 0;
            bool wrong = false;
            while (!t.over()) {
                const auto next = t.next();
                const bool must = begun.size() - ended < chunked_copy::most_under_way && at < bytes;
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

TEST_CASE("an empty transfer is complete from the start")
{
    for (const chunked_copy& t : {chunked_copy(), chunked_copy(0, 4096)}) {
        CHECK(t.over());
        CHECK(t.all_sent());
        CHECK_FALSE(t.next());
    }
}

TEST_CASE("at most eight chunks are in flight")
{
    chunked_copy t(100, 1);
    for (int i = 0; i < chunked_copy::most_under_way; ++i) {
        const auto p = t.next();
        REQUIRE(p);
        t.begun(*p);
    }
    CHECK_FALSE(t.next());
    t.ended({});
    CHECK(t.next());
}

TEST_CASE("after the first failure no chunk begins, and the transfer ends with the last chunk in flight")
{
    for (int under_way = 1; under_way <= chunked_copy::most_under_way; ++under_way)
        for (int failing = 0; failing < under_way; ++failing) {
            chunked_copy t(100, 4);
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

TEST_CASE("a transfer that fails before its first chunk is complete immediately")
{
    chunked_copy t(100, 4);
    t.fail(errc::out_of_memory);
    CHECK(t.over());
    CHECK(t.all_sent());
    CHECK_FALSE(t.next());
    CHECK(t.error() == errc::out_of_memory);
}

TEST_CASE("a transfer is sent when its last chunk is sent, not when that chunk begins")
{
    chunked_copy t(8, 4);
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

TEST_CASE("chunks are halved while none is in flight, down to a page")
{
    chunked_copy t(64 * kib, 32 * kib);
    for (const auto expected : {32 * kib, 16 * kib, 8 * kib, 4 * kib}) {
        CHECK(t.next()->bytes == expected);
        CHECK(t.use_smaller_chunks() == (expected > 4 * kib));
    }
    CHECK(t.next()->bytes == 4 * kib);
    chunked_copy busy(64 * kib, 32 * kib);
    busy.begun(*busy.next());
    CHECK_FALSE(busy.use_smaller_chunks());
    CHECK(busy.next()->bytes == 32 * kib);
    busy.ended({});
    CHECK(busy.use_smaller_chunks());
    CHECK(busy.next()->bytes == 16 * kib);
    CHECK(busy.next()->offset == 32 * kib);
}

TEST_CASE("a chunk holds whole elements of every type, and eight chunks fit into the staging area")
{
    for (std::uint64_t staging = 512 * kib; staging <= (std::uint64_t(1) << 32); staging = staging * 3 / 2)
        for (std::uint64_t bytes = 1; bytes < (std::uint64_t(1) << 40); bytes = bytes * 5 / 3 + 1) {
            const auto piece = chunked_copy::piece_for(bytes, staging);
            REQUIRE(piece % 4096 == 0);
            REQUIRE(piece >= 32 * kib);
            REQUIRE(piece <= 2048 * kib);
            REQUIRE(chunked_copy::most_under_way * piece <= std::max(staging / 2, 256 * kib));
        }
    CHECK(chunked_copy::piece_for(1, 64 << 20) == 256 * kib);
    CHECK(chunked_copy::piece_for(std::uint64_t(1) << 30, 64 << 20) == 2048 * kib);
    CHECK(chunked_copy::piece_for(~std::uint64_t(0), 64 << 20) == 2048 * kib);
}

TEST_SUITE_END();

} // namespace test_worker_chunked_copy
