#include "worker/child/remote_request.hpp"

#include "jit/registry.hpp"
#include "support/host_world.hpp"
#include "support/op_frames.hpp"
#include "worker/child/received_kernels.hpp"

#include <coaccel/core/tune.hpp>
#include <coaccel/ops/blas.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/jit/occupancy.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/plugin.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <vector>

namespace test_worker_remote_request {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using test::plain;
using test::transfer;

any_ref made_by(std::uint32_t op, std::uint64_t size, dtype type = dtype::f32)
{
    return {.device = made_here, .slot = op, .size = size, .type = type};
}

template <class T>
struct alignas(64) area {
    T elements[1024] = {};

    std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(elements)); }
};

struct fixture {
    error_code load(std::vector<op_frame> ops)
    {
        frame.id = 42;
        frame.size = ops.size();
        frame.ops = std::move(ops);
        return request.load(frame, *driver.context, images, memory.bytes());
    }

    error_code run(std::vector<op_frame> ops)
    {
        if (auto ec = load(std::move(ops)))
            return ec;
        return driver.outcome_of(request);
    }

    std::vector<std::byte> replies(bool succeeded)
    {
        encoder out;
        request.put_replies(out, succeeded);
        return {out.record().begin(), out.record().end()};
    }

    test::host_world world{host_options{.mode = host_mode::inline_}};
    test::context_driver driver{world};
    received_kernels images;
    area<float> memory;
    submit_frame frame;
    remote_request request;
};

// A kernel that takes a number and two buffers, as the parent sends it.
using launch_of = jit::launch_op<in<float>, out<float>, float>;

struct launch_fixture : fixture {
    launch_fixture()
    {
        image_frame i;
        i.id = parents_number;
        i.name = "scale";
        i.symbol = "_Z5scalePKfPff";
        const std::string code = "code";
        i.total = code.size();
        i.part = std::as_bytes(std::span(code));
        REQUIRE(images.add(i));
        op = launch_of({}, {{2}, {3}}, in<float>(ref<float>()), out<float>(ref<float>()), 1.5f);
        std::memcpy(data, &op, sizeof(op));
        head().kernel = parents_number;
    }

    jit::launch_head& head() { return *reinterpret_cast<jit::launch_head*>(data); }
    jit::launch_argument& argument(std::size_t i) { return const_cast<jit::launch_argument*>(head().arguments())[i]; }

    op_frame launch()
    {
        op_frame f;
        f.what = op_kind::launch;
        f.id = jit::launch_op_id;
        f.data = std::span(data, sizeof(op));
        f.operands = info_of<launch_of>().operands;
        return f;
    }

    static constexpr std::uint64_t parents_number = 0x123456789;
    launch_of op;
    alignas(16) std::byte data[sizeof(launch_of)];
};

} // namespace

TEST_SUITE_BEGIN("remote_request");

TEST_CASE("a request allocates a buffer, uses it and reports it")
{
    fixture f;
    f.memory.elements[3] = 7;
    const memory::fill<float> fill{ref<float>::from_raw(made_by(0, 8)).subspan(2, 4), 2.5f};
    REQUIRE_FALSE(f.run({test::allocation(8), transfer(op_kind::write, made_by(0, 8), 0, 8), plain(fill),
                         transfer(op_kind::read, made_by(0, 8), 128, 8)}));
    const float* got = f.memory.elements + 32;
    CHECK(std::vector<float>(got, got + 8) == std::vector<float>{0, 0, 2.5f, 2.5f, 2.5f, 2.5f, 0, 0});
    const auto replies = f.replies(true);
    decoder in(replies);
    any_ref made;
    REQUIRE(in.get_ref(made));
    CHECK(in.at_end());
    CHECK(made == f.request.made(0));
    CHECK(made.device == test::context_driver::device);
    CHECK(made.size == 8);
    CHECK(f.driver.read(ref<float>::from_raw(made)) == std::vector<float>{0, 0, 2.5f, 2.5f, 2.5f, 2.5f, 0, 0});
    CHECK(f.request.id() == 42);
    CHECK(f.request.bytes == 64);
}

TEST_CASE("a failed request reports only its allocations")
{
    fixture f;
    const memory::fill<float> fill{ref<float>::from_raw(made_by(0, 9)), 1};
    CHECK(f.run({test::allocation(8), plain(fill)}) == errc::out_of_bounds);
    const auto replies = f.replies(false);
    decoder in(replies);
    any_ref made;
    REQUIRE(in.get_ref(made));
    CHECK(in.at_end());
    CHECK(made.size == 8);
    f.driver.context->release(made);
    CHECK(f.driver.context->live_buffers() == 0);
}

TEST_CASE("replies are the bytes of the op's reply")
{
    fixture f;
    const auto k = f.images.find(1);
    CHECK(k == nullptr);
    const memory::trim trim;
    CHECK_FALSE(f.run({plain(trim)}));
    CHECK(f.replies(true).empty());
}

TEST_CASE("a reused request keeps nothing of its previous use")
{
    fixture f;
    REQUIRE_FALSE(f.run({test::allocation(8), test::allocation(4), test::allocation(2)}));
    const memory::fill<float> fill{ref<float>::from_raw(f.request.made(0)), 1};
    REQUIRE_FALSE(f.run({plain(fill)}));
    CHECK(f.request.ops.size() == 1);
    CHECK(f.replies(true).empty());
    CHECK(f.load({plain(memory::fill<float>{ref<float>::from_raw(made_by(0, 8)), 1})}) == errc::worker_corrupted);
}

TEST_CASE("a ref to a buffer of the same request must refer to an earlier allocation")
{
    fixture f;
    const auto fill_of = [](std::uint32_t slot) {
        return memory::fill<float>{ref<float>::from_raw(made_by(slot, 8)), 1};
    };
    const auto first = fill_of(0), itself = fill_of(1), far = fill_of(0xffffffff), later = fill_of(2);
    CHECK_FALSE(f.load({test::allocation(8), plain(first)}));
    CHECK(f.load({test::allocation(8), plain(itself)}) == errc::worker_corrupted);
    CHECK(f.load({test::allocation(8), plain(far)}) == errc::worker_corrupted);
    CHECK(f.load({test::allocation(8), plain(later), test::allocation(8)}) == errc::worker_corrupted);
    CHECK(f.load({test::allocation(8), plain(first), plain(itself)}) == errc::worker_corrupted);
    CHECK(f.load({plain(first)}) == errc::worker_corrupted);
    CHECK(f.load({transfer(op_kind::read, made_by(0, 8), 0, 8)}) == errc::worker_corrupted);
    CHECK(f.load({test::allocation(8), transfer(op_kind::read, made_by(1, 8), 0, 8)}) == errc::worker_corrupted);
}

TEST_CASE("unknown ops are unsupported, and ops with a wrong size or reply size are refused")
{
    fixture f;
    const memory::fill<float> fill{};
    auto op = plain(fill);
    op.id ^= 1;
    CHECK(f.load({op}) == errc::unsupported_op);
    CHECK(f.request.unsupported() == 0);
    CHECK(f.load({test::allocation(8), op}) == errc::unsupported_op);
    CHECK(f.request.unsupported() == 1);
    op = plain(fill);
    op.data = op.data.first(op.data.size() - 1);
    CHECK(f.load({op}) == errc::worker_corrupted);
    op = plain(fill);
    ++op.reply_size;
    CHECK(f.load({op}) == errc::worker_corrupted);
    op.id = jit::launch_op_id;
    CHECK(f.load({op}) == errc::unsupported_op);
    op.id = detail::user_op_id;
    CHECK(f.load({op}) == errc::unsupported_op);
}

TEST_CASE("ops that contain addresses are refused")
{
    fixture f;
    float memory[4] = {};
    const auto made = ref<float>::from_raw(made_by(0, 4));
    const auto append = [](void*, const void*, std::size_t) noexcept {};
    CHECK(f.load({test::allocation(4), plain(detail::write_op<float>{made, memory, 4})}) == errc::worker_corrupted);
    CHECK(f.load({test::allocation(4), plain(detail::read_op<float>{made, memory, 4})}) == errc::worker_corrupted);
    CHECK(f.load({test::allocation(4), plain(detail::collect_op<float>{made, {nullptr, append, nullptr}})}) ==
          errc::worker_corrupted);
}

TEST_CASE("refs of an invalid element type are refused on load, and other invalid refs by the context")
{
    fixture f;
    REQUIRE_FALSE(f.run({test::allocation(8)}));
    const any_ref good = f.request.made(0);
    const auto outcome = [&](auto change) {
        any_ref r = good;
        change(r);
        const memory::fill<float> fill{ref<float>::from_raw(r), 1};
        return f.run({plain(fill)});
    };
    CHECK_FALSE(outcome([](any_ref&) {}));
    CHECK(outcome([](any_ref& r) { r.type = dtype(0); }) == errc::worker_corrupted);
    CHECK(outcome([](any_ref& r) { r.type = dtype(17); }) == errc::worker_corrupted);
    CHECK(outcome([](any_ref& r) { r.type = dtype::f64; }) == errc::wrong_dtype);
    CHECK(outcome([](any_ref& r) { ++r.device; }) == errc::wrong_device);
    CHECK(outcome([](any_ref& r) { ++r.generation; }) == errc::stale_ref);
    CHECK(outcome([](any_ref& r) { ++r.version; }) == errc::released_ref);
    CHECK(outcome([](any_ref& r) { r.slot = 1000; }) == errc::out_of_bounds);
    CHECK(outcome([](any_ref& r) { r.offset = any_ref::invalid_offset; }) == errc::out_of_bounds);
    CHECK(outcome([](any_ref& r) { r.size = ~std::uint64_t(0); }) == errc::out_of_bounds);
}

TEST_CASE("an op whose optional operands have no buffer runs without them")
{
    fixture f;
    const auto matrix = [](std::uint32_t op) { return ref<float>::from_raw(made_by(op, 4)); };
    const auto load_all = [&](const blas::matmul<float>& op) {
        std::copy_n(std::begin({1.0f, 2.0f, 3.0f, 4.0f}), 4, f.memory.elements);
        return f.run({test::allocation(4), test::allocation(4), transfer(op_kind::write, made_by(0, 4), 0, 4),
                      plain(op), transfer(op_kind::read, made_by(1, 4), 128, 4)});
    };
    const auto result = [&] { return std::vector<float>(f.memory.elements + 32, f.memory.elements + 36); };
    blas::matmul<float> op{.a = matrix(0), .b = matrix(0), .d = matrix(1), .m = 2, .n = 2, .k = 2};
    REQUIRE_FALSE(load_all(op));
    CHECK(result() == std::vector<float>{7, 10, 15, 22});
    op.bias = ref<float>::from_raw(made_by(0, 2));
    op.c = matrix(0);
    op.beta = 1;
    REQUIRE_FALSE(load_all(op));
    CHECK(result() == std::vector<float>{7 + 1 + 1, 10 + 2 + 2, 15 + 3 + 1, 22 + 4 + 2});
}

TEST_CASE("an optional operand without a buffer is well-formed, and an invalid one is refused as any other")
{
    fixture f;
    REQUIRE_FALSE(f.run({test::allocation(4), test::allocation(4)}));
    const auto a = ref<float>::from_raw(f.request.made(0)), d = ref<float>::from_raw(f.request.made(1));
    const blas::matmul<float> good{.a = a, .b = a, .d = d, .m = 2, .n = 2, .k = 2};
    REQUIRE_FALSE(f.run({plain(good)}));
    const auto outcome = [&](auto change) {
        auto op = good;
        change(op);
        return f.run({plain(op)});
    };
    using op = blas::matmul<float>;
    CHECK(outcome([](op& o) { o.bias.raw.type = dtype(0); }) == errc::worker_corrupted);
    CHECK(outcome([](op& o) { o.scale_a.raw.type = dtype(99); }) == errc::worker_corrupted);
    // An op of which only one slot was made in the same request.
    CHECK(outcome([](op& o) { o.bias.raw.device = made_here; }) == errc::worker_corrupted);
    // A ref that is empty names no buffer, but is not absent.
    CHECK(outcome([](op& o) { o.bias = ref<float>(); }) == errc::out_of_bounds);
    CHECK(outcome([](op& o) { o.bias.raw = {.size = 2, .type = dtype::f32}; }) == errc::invalid_argument);
    CHECK(outcome([](op& o) { o.bias.raw.device = 1000; }) == errc::out_of_bounds);
    CHECK(outcome([&](op& o) { o.bias = a.first(2), ++o.bias.raw.generation; }) == errc::stale_ref);
    CHECK(outcome([&](op& o) { o.bias = a.first(2), ++o.bias.raw.version; }) == errc::released_ref);
    CHECK(outcome([&](op& o) { o.bias = a.first(2), o.bias.raw.type = dtype::i32; }) == errc::wrong_dtype);
    // An operand that is not optional.
    CHECK(outcome([](op& o) { o.a.raw = {.slot = any_ref::no_slot, .size = 4, .type = dtype::f32}; }) ==
          errc::invalid_argument);
    CHECK(outcome([](op& o) { o.d.raw = {.slot = any_ref::no_slot, .size = 4, .type = dtype::f32}; }) ==
          errc::invalid_argument);
    REQUIRE_FALSE(f.run({plain(good)}));
}

TEST_CASE("an op on a list of operands is sent with all of them, and fits into a message")
{
    static_assert(sizeof(blas::gemm_grouped<std::complex<double>>) <= largest_op);
    static_assert(sizeof(tune<blas::matmul<float8_e4m3, float8_e5m2, float8_e5m2>>) <= largest_op);
    fixture f;
    std::fill_n(f.memory.elements, 4, 2.0f);
    blas::gemm_batched<float> op{.m = 2, .n = 2, .k = 2};
    const auto a = ref<float>::from_raw(made_by(0, 4)), c = ref<float>::from_raw(made_by(1, 128));
    for (std::uint64_t i = 0; i < blas::most_products; ++i)
        op.add(a, a, c.subspan(4 * i, 4));
    REQUIRE_FALSE(f.run({test::allocation(4), test::allocation(128), transfer(op_kind::write, made_by(0, 4), 0, 4),
                         plain(op), transfer(op_kind::read, made_by(1, 128), 128, 128)}));
    CHECK(std::vector<float>(f.memory.elements + 32, f.memory.elements + 160) == std::vector<float>(128, 8));
    op.c[7] = {};
    CHECK(f.run({test::allocation(4), test::allocation(128), plain(op)}) == errc::invalid_argument);
}

TEST_CASE("an op that is tuned has its reply in the message")
{
    fixture f;
    REQUIRE_FALSE(f.run({test::allocation(4), test::allocation(4)}));
    const auto a = ref<float>::from_raw(f.request.made(0)), d = ref<float>::from_raw(f.request.made(1));
    const tune<blas::matmul<float>> op{{.a = a, .b = a, .d = d, .m = 2, .n = 2, .k = 2}};
    REQUIRE_FALSE(f.run({plain(op)}));
    const auto replies = f.replies(true);
    decoder in(replies);
    std::span<const std::byte> got;
    REQUIRE(in.get_bytes(sizeof(tuning), got));
    CHECK(in.at_end());
    tuning measured;
    std::memcpy(&measured, got.data(), sizeof(measured));
    CHECK(measured.candidates == 0);
    auto short_reply = plain(op);
    --short_reply.reply_size;
    CHECK(f.load({short_reply}) == errc::worker_corrupted);
}

TEST_CASE("transfers must lie within the staging area and be aligned")
{
    fixture f;
    const std::uint64_t bytes = sizeof(f.memory.elements);
    constexpr std::uint64_t huge = ~std::uint64_t(0);
    for (const auto what : {op_kind::write, op_kind::read}) {
        const auto load = [&](std::uint64_t offset, std::uint64_t count, dtype type) {
            return f.load({test::allocation(8, type), transfer(what, made_by(0, count, type), offset, count)});
        };
        CHECK_FALSE(load(0, 1024, dtype::f32));
        CHECK_FALSE(load(bytes - 4, 1, dtype::f32));
        CHECK_FALSE(load(bytes, 0, dtype::f32));
        CHECK_FALSE(load(bytes - 1, 1, dtype::u8));
        CHECK(load(0, 1025, dtype::f32) == errc::worker_corrupted);
        CHECK(load(4, 1024, dtype::f32) == errc::worker_corrupted);
        CHECK(load(bytes, 1, dtype::u8) == errc::worker_corrupted);
        CHECK(load(bytes + 1, 0, dtype::u8) == errc::worker_corrupted);
        CHECK(load(huge, 1, dtype::u8) == errc::worker_corrupted);
        CHECK(load(0, huge, dtype::f32) == errc::worker_corrupted);
        CHECK(load(0, huge / 4 + 2, dtype::f32) == errc::worker_corrupted);
        CHECK(load(huge - 3, 4, dtype::f32) == errc::worker_corrupted);
        CHECK(load(2, 1, dtype::f32) == errc::worker_corrupted);
        CHECK(load(4, 1, dtype::f64) == errc::worker_corrupted);
        CHECK(load(1, 1, dtype::f16) == errc::worker_corrupted);
        for (int type = 1; type <= 16; ++type)
            CHECK_FALSE(load(64, 2, static_cast<dtype>(type)));
    }
}

TEST_CASE("an impossible allocation is refused by the context")
{
    fixture f;
    CHECK(f.run({test::allocation(0)}) == errc::invalid_argument);
    CHECK(f.run({test::allocation(~std::uint64_t(0), dtype::c128)}) == errc::size_overflow);
    CHECK(f.run({test::allocation(std::uint64_t(1) << 50)}) == errc::out_of_memory);
    CHECK(f.driver.context->live_buffers() == 0);
}

TEST_CASE("a launch refers to the worker's image and keeps it alive")
{
    launch_fixture f;
    REQUIRE_FALSE(f.load({f.launch()}));
    const auto& head = f.request.ops[0].as<jit::launch_head>();
    const auto image = f.images.find(f.parents_number);
    REQUIRE(image);
    CHECK(head.kernel == image->id);
    CHECK(head.host == 0);
    CHECK(head.count == 3);
    CHECK_FALSE(f.request.ops[0].info->check(f.request.ops[0].op));
    const auto users = image.use_count();
    REQUIRE_FALSE(f.load({test::allocation(1)}));
    CHECK(image.use_count() == users - 1);
    // This backend cannot run it.
    const auto shape = f.head().shape;
    CHECK(shape.grid.x == 2);
    CHECK(f.run({f.launch()}).failed());
}

TEST_CASE("a launch of an image that was never sent is refused")
{
    launch_fixture f;
    f.head().kernel = 1;
    CHECK(f.load({f.launch()}) == errc::invalid_argument);
    image_frame half;
    half.id = 1;
    half.symbol = "k";
    half.total = 100;
    const std::vector<std::byte> part(50);
    half.part = part;
    REQUIRE(f.images.add(half));
    CHECK(f.load({f.launch()}) == errc::invalid_argument);
    // The same part again does not match the parts before it.
    CHECK_FALSE(f.images.add(half));
    half.offset = 50;
    CHECK(f.images.add(half));
    CHECK_FALSE(f.load({f.launch()}));
    CHECK_FALSE(f.images.add(half));
}

TEST_CASE("a host function of the parent is never called")
{
    launch_fixture f;
    f.head().host = 1;
    REQUIRE_FALSE(f.load({f.launch()}));
    CHECK(f.request.ops[0].as<jit::launch_head>().host == 0);
}

TEST_CASE("malformed launches are refused")
{
    struct wrong {
        const char* what;
        void (*change)(launch_fixture&, op_frame&);
    };
    static constexpr wrong all[] = {
        {"another number", [](launch_fixture&, op_frame& o) { ++o.id; }},
        {"a reply", [](launch_fixture&, op_frame& o) { o.reply_size = 4; }},
        {"no room for the head",
         [](launch_fixture&, op_frame& o) { o.data = o.data.first(sizeof(jit::launch_head) - 1); }},
        {"no room for the arguments",
         [](launch_fixture&, op_frame& o) { o.data = o.data.first(sizeof(jit::launch_head) + 8); }},
        {"too many arguments", [](launch_fixture& f, op_frame&) { f.head().count = jit::max_arguments + 1; }},
        {"far too many arguments", [](launch_fixture& f, op_frame&) { f.head().count = 0xffffffff; }},
        {"more arguments than there is room for", [](launch_fixture& f, op_frame&) { f.head().count = 16; }},
        {"an operand that there is not", [](launch_fixture& f, op_frame&) { f.argument(0).operand = 2; }},
        {"an operand elsewhere", [](launch_fixture& f, op_frame&) { f.argument(0).offset += 8; }},
        {"a value behind the end", [](launch_fixture& f, op_frame&) { f.argument(2).offset = sizeof(launch_of); }},
        {"a value across the end", [](launch_fixture& f, op_frame&) { f.argument(2).offset = sizeof(launch_of) - 2; }},
        {"a value far away", [](launch_fixture& f, op_frame&) { f.argument(2).offset = 0xffff; }},
        {"a value that is too large", [](launch_fixture& f, op_frame&) { f.argument(2).type.size = 255; }},
        {"an operand of another type",
         [](launch_fixture& f, op_frame&) { f.argument(0).type.code = jit::type_code(dtype::f64); }},
        {"a form that there is not", [](launch_fixture& f, op_frame&) { f.argument(1).type.form = jit::type_form(3); }},
        {"a code that there is not",
         [](launch_fixture& f, op_frame&) { f.argument(1).type.code = jit::type_code(35); }},
        {"a bool that is none",
         [](launch_fixture& f, op_frame&) { std::memset(&f.argument(2).type.enumeration, 2, 1); }},
        {"a ref of no type",
         [](launch_fixture& f, op_frame& o) {
             reinterpret_cast<any_ref*>(f.data + o.operands[0].offset)->type = dtype(99);
         }},
        {"a ref that nobody made",
         [](launch_fixture& f, op_frame& o) {
             reinterpret_cast<any_ref*>(f.data + o.operands[0].offset)->device = made_here;
         }},
        {"a ref in the head",
         [](launch_fixture& f, op_frame& o) {
             // The argument is moved too, so that only the position is wrong.
             o.operands[0].offset = f.argument(0).offset = 0;
             f.head().shape.block.y = static_cast<std::uint32_t>(dtype::f32);
         }},
        {"refs that overlap",
         [](launch_fixture& f, op_frame& o) {
             o.operands[1].offset = f.argument(1).offset = static_cast<std::uint16_t>(o.operands[0].offset + 8);
             f.data[o.operands[1].offset + offsetof(any_ref, type)] = static_cast<std::byte>(dtype::f32);
         }},
    };
    for (const auto& w : all) {
        INFO(std::string(w.what));
        launch_fixture f;
        REQUIRE_FALSE(f.load({f.launch()}));
        op_frame o = f.launch();
        w.change(f, o);
        CHECK(f.load({o}) == errc::worker_corrupted);
    }
}

TEST_CASE("a plug-in call is validated like a launch, and its name is checked by the context")
{
    fixture f;
    const auto op = plugin::call("no such function", false);
    using call_of = std::remove_const_t<decltype(op)>;
    alignas(16) std::byte data[sizeof(op)];
    const auto call = [&] {
        op_frame made;
        made.what = op_kind::launch;
        made.id = plugin::call_op_id;
        made.data = data;
        made.operands = info_of<call_of>().operands;
        return made;
    };
    std::memcpy(data, &op, sizeof(op));
    CHECK(f.run({call()}) == errc::function_missing);
    std::byte& value = data[info_of<call_of>().fields[0].offset];
    value = std::byte{1};
    CHECK(f.run({call()}) == errc::function_missing);
    value = std::byte{2};
    CHECK(f.load({call()}) == errc::worker_corrupted);
    value = std::byte{0};

    auto cut = call();
    cut.data = cut.data.first(sizeof(plugin::call_head) - 1);
    CHECK(f.load({cut}) == errc::worker_corrupted);
    auto& head = *reinterpret_cast<plugin::call_head*>(data);
    head.count = 2;
    CHECK(f.load({call()}) == errc::worker_corrupted);
    head.count = 1;
    std::memset(head.function, 'x', sizeof(head.function));
    CHECK(f.run({call()}) == errc::invalid_argument);
    head.function[0] = 0;
    CHECK(f.run({call()}) == errc::invalid_argument);
}

TEST_SUITE_END();

} // namespace test_worker_remote_request
