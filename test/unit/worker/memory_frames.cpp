#include "worker/protocol/memory_frames.hpp"

#include "buffer_ref.hpp"

#include <doctest/doctest.h>

namespace test_worker_memory_frames {

namespace {

using namespace coaccel;
using namespace coaccel::worker;

template <class Frame>
bool read(const encoder& out, message_type what, bool (*get)(decoder&, Frame&), Frame& frame, std::size_t drop = 0)
{
    decoder in(out.record().first(out.record().size() - drop));
    message_type got{};
    return in.get(got, message_type::adopt, message_type::lost) && got == what && get(in, frame);
}

const request_head head{
    .id = 5, .how = {.priority = priority::high, .lane = 2}, .injected_fault = injected_fault::hang};

} // namespace

TEST_SUITE_BEGIN("memory_frames");

TEST_CASE("an import is decoded to what was encoded, and refused if it is not whole")
{
    encoder out;
    put_import(out, {.head = head, .buffer = {.count = 1024, .type = dtype::f32, .access = memory_access::read_write}});
    import_frame got;
    REQUIRE(read(out, message_type::import_memory, get_import, got));
    CHECK(got.head.id == 5);
    CHECK(got.head.how.priority == priority::high);
    CHECK(got.head.injected_fault == injected_fault::hang);
    CHECK(got.buffer.count == 1024);
    CHECK(got.buffer.type == dtype::f32);
    CHECK(got.buffer.access == memory_access::read_write);
    for (std::size_t n = 1; n < out.record().size(); ++n)
        REQUIRE_FALSE(read(out, message_type::import_memory, get_import, got, n));
    out.put(std::uint8_t(0));
    CHECK_FALSE(read(out, message_type::import_memory, get_import, got));
}

TEST_CASE("an import of nothing, or of more than an address space, is refused")
{
    for (const std::uint64_t bytes : {std::uint64_t(0), std::uint64_t(1) << 63, ~std::uint64_t(0)}) {
        encoder out;
        put_import(out, {.head = head, .buffer = {.count = bytes}});
        import_frame got;
        CHECK_FALSE(read(out, message_type::import_memory, get_import, got));
    }
}

TEST_CASE("an import or export with an impossible type or access is refused")
{
    import_frame got;
    encoder out;
    put_import(out, {.head = head, .buffer = {.count = 1, .type = dtype{99}}});
    CHECK_FALSE(read(out, message_type::import_memory, get_import, got));
    out.clear();
    put_import(out, {.head = head, .buffer = {.count = 1, .access = memory_access{2}}});
    CHECK_FALSE(read(out, message_type::import_memory, get_import, got));
    out.clear();
    put_import(out, {.head = head, .buffer = {.count = std::uint64_t(1) << 61, .type = dtype::f32}});
    CHECK_FALSE(read(out, message_type::import_memory, get_import, got));
    export_frame other;
    out.clear();
    put_export(out, {.head = head, .buffer = test::buffer_ref(7, 3, 4096, dtype::u8), .access = memory_access{2}});
    CHECK_FALSE(read(out, message_type::export_memory, get_export, other));
}

TEST_CASE("an export is decoded to what was encoded, and refused if it is not whole")
{
    const any_ref buffer = test::buffer_ref(7, 3, 4096, dtype::u8);
    encoder out;
    put_export(out, {.head = head, .buffer = buffer, .access = memory_access::read_write});
    export_frame got;
    REQUIRE(read(out, message_type::export_memory, get_export, got));
    CHECK(got.head.id == 5);
    CHECK(got.buffer == buffer);
    CHECK(got.access == memory_access::read_write);
    for (std::size_t n = 1; n < out.record().size(); ++n)
        REQUIRE_FALSE(read(out, message_type::export_memory, get_export, got, n));
    out.put(std::uint8_t(0));
    CHECK_FALSE(read(out, message_type::export_memory, get_export, got));
    out.clear();
    put_export(out, {.head = head, .buffer = test::buffer_ref(made_here, 0, 4096, dtype::u8)});
    CHECK_FALSE(read(out, message_type::export_memory, get_export, got));
}

TEST_SUITE_END();

} // namespace test_worker_memory_frames
