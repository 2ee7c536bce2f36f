#include "worker/protocol/wire.hpp"

#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace test_worker_wire {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using bytes = std::vector<std::byte>;

constexpr any_ref some_ref{
    .device = 1, .generation = 2, .slot = 3, .version = 4, .offset = 5, .size = 6, .type = dtype::f64};

op_frame plain(std::span<const std::byte> data)
{
    op_frame f;
    f.id = 99;
    f.data = data;
    f.reply_size = 8;
    return f;
}

op_frame launch(std::span<const std::byte> data, std::size_t operands)
{
    op_frame f = plain(data);
    f.what = op_kind::launch;
    f.reply_size = 0;
    for (std::size_t i = 0; i < operands; ++i)
        f.operands.push_back({"operand", static_cast<std::uint16_t>(40 * i), sizeof(any_ref), op_field::kind::operand,
                              i % 2 ? coaccel::access::write : coaccel::access::read, dtype::i32});
    return f;
}

op_frame transfer(op_kind what)
{
    op_frame f;
    f.what = what;
    f.ref = some_ref;
    f.type = some_ref.type;
    f.offset = 4096;
    f.count = 6;
    return f;
}

op_frame allocation()
{
    op_frame f;
    f.what = op_kind::allocate;
    f.count = 1000;
    f.type = dtype::bf16;
    return f;
}

/// The record without the message type, which the caller of get_submit has read.
bytes submit_record(const std::vector<op_frame>& ops, const exec_options& how = {},
                    injected_fault p = injected_fault::none)
{
    encoder out;
    put_submit_head(out, 0x1122334455667788, how, p, static_cast<std::uint8_t>(ops.size()));
    for (const op_frame& op : ops)
        put_op(out, op);
    return {out.record().begin() + 1, out.record().end()};
}

bytes without_message_type(const encoder& out)
{
    return {out.record().begin() + 1, out.record().end()};
}

bool taken(const bytes& record)
{
    submit_frame frame;
    decoder in(record);
    return get_submit(in, frame);
}

bool image_taken(std::uint64_t total, std::uint64_t offset, std::span<const std::byte> part)
{
    image_frame f;
    f.total = total;
    f.offset = offset;
    f.part = part;
    encoder out;
    put_image(out, f);
    const auto record = without_message_type(out);
    decoder in(record);
    image_frame got;
    return get_image(in, got);
}

template <class Taken>
void check_truncations(const bytes& record, Taken taken)
{
    REQUIRE(taken(record));
    for (std::size_t n = 0; n < record.size(); ++n) {
        CAPTURE(n);
        CHECK_FALSE(taken(bytes(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(n))));
    }
}

const bytes data(128, std::byte{0x5a});

// Offsets in a submission, after its id.
constexpr std::size_t lane_at = 8;
constexpr std::size_t priority_at = lane_at + 4;
constexpr std::size_t injected_fault_at = priority_at + 1;
constexpr std::size_t count_at = injected_fault_at + 1;
constexpr std::size_t kind_at = count_at + 1;

} // namespace

TEST_SUITE_BEGIN("wire");

TEST_CASE("a submission with every kind of op survives a round trip")
{
    exec_options how;
    how.lane = 3;
    how.priority = priority::high;
    const auto record =
        submit_record({allocation(), plain(data), launch(data, 2), transfer(op_kind::write), transfer(op_kind::read)},
                      how, injected_fault::hang);
    decoder in(record);
    submit_frame f;
    REQUIRE(get_submit(in, f));
    CHECK(f.id == 0x1122334455667788);
    CHECK(f.how.lane == 3);
    CHECK(f.how.priority == priority::high);
    CHECK(f.injected_fault == injected_fault::hang);
    REQUIRE(f.size == 5);
    CHECK(f.ops[0].what == op_kind::allocate);
    CHECK(f.ops[0].count == 1000);
    CHECK(f.ops[0].type == dtype::bf16);
    CHECK(f.ops[1].what == op_kind::plain);
    CHECK(f.ops[1].id == 99);
    CHECK(f.ops[1].reply_size == 8);
    CHECK(bytes(f.ops[1].data.begin(), f.ops[1].data.end()) == data);
    CHECK(f.ops[2].what == op_kind::launch);
    REQUIRE(f.ops[2].operands.size() == 2);
    CHECK(f.ops[2].operands[1].offset == 40);
    CHECK(f.ops[2].operands[1].mode == coaccel::access::write);
    CHECK(f.ops[2].operands[1].type == dtype::i32);
    CHECK(f.ops[2].operands[1].size == sizeof(any_ref));
    for (const std::size_t i : {3u, 4u}) {
        CHECK(f.ops[i].what == (i == 3 ? op_kind::write : op_kind::read));
        CHECK(f.ops[i].ref == some_ref);
        CHECK(f.ops[i].offset == 4096);
        CHECK(f.ops[i].count == 6);
    }
}

TEST_CASE("a reused frame keeps nothing of its previous content")
{
    submit_frame f;
    const auto many = submit_record({launch(data, 3), launch(data, 2), allocation()});
    decoder first(many);
    REQUIRE(get_submit(first, f));
    const auto few = submit_record({launch(data, 1)});
    decoder second(few);
    REQUIRE(get_submit(second, f));
    CHECK(f.size == 1);
    CHECK(f.ops[0].operands.size() == 1);
}

TEST_CASE("a truncated submission is refused, and so is one with an extra byte")
{
    for (const auto& op : {allocation(), plain(data), launch(data, 3), transfer(op_kind::write)}) {
        auto record = submit_record({op, op});
        check_truncations(record, taken);
        record.push_back(std::byte{0});
        CHECK_FALSE(taken(record));
    }
}

TEST_CASE("enumerators out of range are refused in every field")
{
    const auto good = submit_record({transfer(op_kind::read)});
    struct place {
        const char* what;
        std::size_t at;
        int last;
    };
    for (const auto& p :
         {place{"priority", priority_at, 2}, place{"play", injected_fault_at, 2}, place{"kind of op", kind_at, 4}}) {
        INFO(std::string(p.what));
        for (int n = p.last + 1; n <= 255; ++n) {
            auto record = good;
            record[p.at] = static_cast<std::byte>(n);
            CHECK_FALSE(taken(record));
        }
    }
    for (const auto type : {0, 17, 255}) {
        auto op = transfer(op_kind::read);
        op.ref.type = static_cast<dtype>(type);
        CHECK_FALSE(taken(submit_record({op})));
        op = transfer(op_kind::read);
        op.type = static_cast<dtype>(type);
        CHECK_FALSE(taken(submit_record({op})));
        op = allocation();
        op.type = static_cast<dtype>(type);
        CHECK_FALSE(taken(submit_record({op})));
        op = launch(data, 1);
        op.operands[0].type = static_cast<dtype>(type);
        CHECK_FALSE(taken(submit_record({op})));
    }
    auto op = launch(data, 1);
    op.operands[0].mode = static_cast<coaccel::access>(77);
    CHECK_FALSE(taken(submit_record({op})));
}

TEST_CASE("every lane number is decoded, and the context validates it")
{
    for (const int lane : {-2147483647 - 1, -1, 0, 3, 4, 2147483647}) {
        exec_options how;
        how.lane = lane;
        const auto record = submit_record({allocation()}, how);
        decoder in(record);
        submit_frame f;
        REQUIRE(get_submit(in, f));
        CHECK(f.how.lane == lane);
    }
}

TEST_CASE("a submission has 1 to 255 ops, and as many as its count")
{
    CHECK_FALSE(taken(submit_record({})));
    CHECK(taken(submit_record(std::vector(255, allocation()))));
    auto record = submit_record({allocation(), allocation()});
    for (const int n : {0, 1, 3, 255}) {
        record[count_at] = static_cast<std::byte>(n);
        CHECK_FALSE(taken(record));
    }
}

TEST_CASE("an op has a limited number of bytes, and at least one")
{
    CHECK_FALSE(taken(submit_record({plain({})})));
    const bytes large(largest_op);
    CHECK(taken(submit_record({plain(large)})));
    const bytes larger(largest_op + 1);
    CHECK_FALSE(taken(submit_record({plain(larger)})));
}

TEST_CASE("the refs of a launch must lie within it")
{
    CHECK(taken(submit_record({launch(data, 0)})));
    auto op = launch(data, 1);
    for (const auto& p : {std::pair{0, true},
                          {88, true},
                          {89, false},
                          {4, false},
                          {96, false},
                          {128, false},
                          {65528, false},
                          {65535, false}}) {
        CAPTURE(p.first);
        op.operands[0].offset = static_cast<std::uint16_t>(p.first);
        CHECK(taken(submit_record({op})) == p.second);
    }
    const bytes large(40 * (jit::max_arguments + 1));
    CHECK(taken(submit_record({launch(large, jit::max_arguments)})));
    CHECK_FALSE(taken(submit_record({launch(large, jit::max_arguments + 1)})));
}

TEST_CASE("a part of an image survives a round trip")
{
    image_frame f{.id = 7, .name = "scale", .symbol = "_Z5scalev", .total = 500, .offset = 100, .part = data};
    encoder out;
    put_image(out, f);
    const auto record = without_message_type(out);
    decoder in(record);
    image_frame got;
    REQUIRE(get_image(in, got));
    CHECK(got.id == 7);
    CHECK(got.name == "scale");
    CHECK(got.symbol == "_Z5scalev");
    CHECK(got.total == 500);
    CHECK(got.offset == 100);
    CHECK(bytes(got.part.begin(), got.part.end()) == data);
    check_truncations(record, [](const bytes& r) {
        decoder again(r);
        image_frame frame;
        return get_image(again, frame);
    });
    auto longer = record;
    longer.push_back(std::byte{0});
    decoder too_much(longer);
    CHECK_FALSE(get_image(too_much, got));
}

TEST_CASE("parts must lie within their image, and an image within the maximum size")
{
    constexpr std::uint64_t most = std::uint64_t(256) << 20;
    constexpr std::uint64_t huge = ~std::uint64_t(0);
    CHECK(image_taken(128, 0, data));
    CHECK(image_taken(most, most - 128, data));
    CHECK(image_taken(0, 0, {}));
    CHECK_FALSE(image_taken(0, 0, data));
    CHECK_FALSE(image_taken(0, 1, {}));
    CHECK_FALSE(image_taken(most + 1, 0, data));
    CHECK_FALSE(image_taken(127, 0, data));
    CHECK_FALSE(image_taken(200, 100, data));
    CHECK_FALSE(image_taken(200, 201, data));
    CHECK_FALSE(image_taken(200, huge - 10, data));
    CHECK_FALSE(image_taken(huge, huge - 128, data));
}

TEST_CASE("the hardware description survives a round trip")
{
    const hardware_info info{
        .name = "a GPU", .ordinal = 3, .compute_capability = 90, .multiprocessors = 132, .driver_version = 13000};
    encoder out;
    put_hardware(out, info);
    const bytes record(out.record().begin(), out.record().end());
    decoder in(record);
    hardware_info got;
    REQUIRE(get_hardware(in, got));
    CHECK(in.at_end());
    CHECK(got.name == info.name);
    CHECK(got.ordinal == 3);
    CHECK(got.compute_capability == 90);
    CHECK(got.multiprocessors == 132);
    CHECK(got.driver_version == 13000);
    check_truncations(record, [](const bytes& r) {
        decoder again(r);
        hardware_info h;
        return get_hardware(again, h);
    });
}

TEST_CASE("an error with the longest message fits into the ring")
{
    encoder out;
    out.put(message_type::ended);
    out.put(std::uint64_t{1});
    out.put_error(make_error_with_message(errc::backend_error, std::string(1 << 20, 'x')));
    CHECK(out.record().size() <= max_ring_record(ring_bytes));
}

TEST_CASE("the identity of a build is constant and not zero")
{
    CHECK(build_identity() == build_identity());
    CHECK(build_identity() != 0);
}

TEST_SUITE_END();

} // namespace test_worker_wire
