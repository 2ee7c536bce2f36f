#include "jit/image.hpp"
#include "plan/file/tree.hpp"
#include "support/plan_files.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/ops/jit.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <string>

namespace test_plan_file_damage {

namespace {

using namespace coaccel;
using namespace std::string_literals;
using test::file_bytes;
using test::number;
using test::read_file;

/// Every kind of value, and a kernel. It has constants, and is small.
plan_description small_plan()
{
    jit::compile_options options("scale");
    options.option("-O").include_folder("/i").add_header("h", "t");
    const auto k = jit::make_kernel(options, {.symbol = "_Z5scalePKfPff", .code = "code", .log = {}, .source = "s"});
    plan_builder b("p");
    const auto x = b.input<float>(2);
    const auto w = b.constant<float>(std::vector<float>{1, 2}, "w");
    const auto s = b.state<float>(std::vector<float>{3, 4}, "s");
    const auto y = b.output<float>(2);
    b.add(jit::launch(k.value(), {}, in(x), out(y), 2.0f));
    b.add(blas::axpy<float>{.x = w, .y = s, .n = 2});
    b.add(rand::uniform<float>{.dst = y, .from = rand::make_generator({.seed = 7})});
    b.add(memory::prefetch<float>{.target = s, .to = memory::place::host});
    return b.finish().value();
}

void check_refused(const file_bytes& file, errc what, const std::string& message)
{
    const auto made = read_file(file);
    REQUIRE_FALSE(made);
    CHECK(made.error() == what);
    CHECK(made.error().message() == message);
    CHECK(is_caller_error(made.error()));
}

TEST_SUITE_BEGIN("damaged plan file");

TEST_CASE("a file that is cut off anywhere is refused")
{
    for (const auto& plan : {small_plan(), test::varied_plan()}) {
        const auto file = test::file_of(plan);
        REQUIRE(read_file(file));
        for (std::size_t size = 0; size < file.size(); ++size) {
            const auto made = read_file(std::span(file).first(size), content_check::none);
            CAPTURE(size);
            REQUIRE_FALSE(made);
            REQUIRE(made.error() == errc::file_invalid);
        }
        auto longer = file;
        longer.emplace_back();
        CHECK(read_file(longer).error() == errc::file_invalid);
    }
}

TEST_CASE("a file with any changed byte is refused")
{
    for (const auto& plan : {small_plan(), test::varied_plan()}) {
        auto file = test::file_of(plan);
        for (std::size_t i = 0; i < file.size(); ++i)
            for (const int change : {0xff, 0x01}) {
                file[i] ^= std::byte(change);
                const auto made = read_file(file);
                CAPTURE(i);
                REQUIRE_FALSE(made);
                const bool version = i >= 8 && i < 12;
                REQUIRE(made.error() == (version ? errc::file_version : errc::file_invalid));
                file[i] ^= std::byte(change);
            }
        CHECK(read_file(file));
    }
}

TEST_CASE("contents that are not verified may be changed, and nothing else")
{
    auto file = test::file_of(small_plan());
    file.back() ^= std::byte(1);
    check_refused(file, errc::file_invalid,
                  "plan file test: slot 3: its content is damaged: it does not have the hash " +
                      to_string(detail::plan_access::data(small_plan())->state_contents[0].id));
    CHECK(read_file(file, content_check::none));
    for (std::size_t i = 0; i < sizeof(detail::plan_file_header) + test::description_of(file).size(); ++i) {
        file[i] ^= std::byte(0x10);
        REQUIRE_FALSE(read_file(file, content_check::none));
        file[i] ^= std::byte(0x10);
    }
}

TEST_CASE("a description that is cut off or changed on purpose is refused or is a valid plan")
{
    for (const auto& plan : {small_plan(), test::varied_plan()}) {
        const auto whole = test::file_of(plan);
        const auto size = test::header_of(whole).description_bytes;
        for (std::size_t n = 0; n < size; ++n) {
            file_bytes file(whole.begin(), whole.begin() + long(sizeof(detail::plan_file_header) + n));
            auto h = test::header_of(file);
            h.description_bytes = n;
            std::memcpy(file.data(), &h, sizeof(h));
            test::seal(file);
            CHECK_FALSE(read_file(file));
        }
        auto file = whole;
        int valid = 0;
        for (std::size_t i = 0; i < size; ++i)
            for (const int change : {0x01, 0x02, 0x10, 0x80, 0xff}) {
                auto& byte = test::description_of(file)[i];
                byte ^= std::byte(change);
                test::seal(file);
                const auto made = read_file(file, content_check::none);
                CAPTURE(i);
                if (made)
                    // What it computes can be written again.
                    valid += !test::file_of(made.value()).empty();
                else
                    REQUIRE(errc_of(made.error()) != errc{});
                test::description_of(file)[i] ^= std::byte(change);
            }
        // Such as the letters of names.
        CHECK(valid > 0);
    }
}

TEST_CASE("files that are no plans, and plans of another version, are refused as such")
{
    check_refused({}, errc::file_invalid, "plan file test: it is not a plan");
    check_refused(file_bytes(1000), errc::file_invalid, "plan file test: it is not a plan");
    auto file = test::file_of(small_plan());
    check_refused({file.begin(), file.begin() + 20}, errc::file_invalid,
                  "plan file test: it is cut off after 20 bytes");
    auto h = test::header_of(file);
    h.version = 2;
    std::memcpy(file.data(), &h, sizeof(h));
    check_refused(file, errc::file_version,
                  "plan file test: its format has the version 2, this version of the library reads 1");
}

TEST_CASE("sizes in the header that do not fit are refused")
{
    const auto whole = test::file_of(small_plan());
    for (const std::uint64_t size : {std::uint64_t(0), whole.size() + 1, ~std::uint64_t(0), std::uint64_t(1) << 63,
                                     ~std::uint64_t(0) - sizeof(detail::plan_file_header) + 1}) {
        CAPTURE(size);
        for (const bool of_file : {true, false}) {
            auto file = whole;
            auto h = test::header_of(file);
            (of_file ? h.file_bytes : h.description_bytes) = size;
            std::memcpy(file.data(), &h, sizeof(h));
            const auto made = read_file(file);
            REQUIRE_FALSE(made);
            CHECK(made.error() == errc::file_invalid);
        }
    }
}

struct replacement {
    const char* name;
    std::string what;
    std::string with;
    errc error;
    std::string message;
};

const replacement replacements[] = {
    {"an unknown op", "memory.prefetch<f32>", "memory.prefetsh<f32>", errc::unsupported_op,
     "plan file test: op 4 (memory.prefetsh<f32>): this version of the library does not know the operation"},
    {"an op of the device itself", "memory.prefetch<f32>", "memory.download<f32>", errc::unsupported_op,
     "plan file test: op 4 (memory.download<f32>): this version of the library does not know the operation"},
    {"an unknown field", "alpha", "alphb", errc::unsupported_op,
     "plan file test: op 2 (blas.axpy<f32>): this version of the library does not know its field alphb"},
    {"a field twice", "incy", "incx", errc::file_invalid, "plan file test: op 2 (blas.axpy<f32>): incx is there twice"},
    {"a field of another type", number("incx", std::int64_t(1)), number("incx", std::uint64_t(1)), errc::unsupported_op,
     "plan file test: op 2 (blas.axpy<f32>): incx is a number of type u64 in the file, and a number of type i64 in "
     "this library"},
    {"an operand of another type",
     "\x03\x00\x00\x00\x00\x00\x00\x00"
     "f32\x01\x04\x00slot"s,
     "\x03\x00\x00\x00\x00\x00\x00\x00"
     "f64\x01\x04\x00slot"s,
     errc::wrong_dtype, "plan p: op 1 (jit.launch): argument 1 takes f64, input1 holds f32"},
    {"an enumerator of another meaning", "\x04\x00host"s, "\x04\x00hots"s, errc::unsupported_op,
     "plan file test: op 4 (memory.prefetch<f32>): to is the enumerator hots in the file, whose number means host in "
     "this library"},
    {"an enumerator of another number", "\x09\x01\x04\x00host"s, "\x09\x07\x04\x00host"s, errc::unsupported_op,
     "plan file test: op 4 (memory.prefetch<f32>): to is the enumerator host in the file, whose number means nothing "
     "in this library"},
    {"an unknown kind of slot", "output\x03\x04\x00type"s, "outlet\x03\x04\x00type"s, errc::file_invalid,
     "plan file test: slot 4: its kind is outlet"},
    {"an input with content", "state\x03\x04\x00type"s, "input\x03\x04\x00type"s, errc::file_invalid,
     "plan file test: slot 3: its kind is input, but it has a content"},
    {"a constant whose content has another name", "content", "contend", errc::file_invalid,
     "plan file test: slot 2: contend is unknown or repeated"},
    {"an unknown element type",
     "f32\x01\x05\x00"s
     "count",
     "f33\x01\x05\x00"s
     "count",
     errc::file_invalid, "plan file test: slot 1: its type is f33"},
    {"no elements", number("count", std::uint64_t(2)), number("count", std::uint64_t(0)), errc::invalid_argument,
     "plan p: input1: count is 0"},
    {"more elements than memory", number("count", std::uint64_t(2)), number("count", ~std::uint64_t(0)),
     errc::size_overflow, "plan p: input1: count is 18446744073709551615, too many elements of 4 bytes"},
    {"another size of the content", number("bytes", std::uint64_t(8)), number("bytes", std::uint64_t(4)),
     errc::file_invalid, "plan file test: slot 2: its content has 4 bytes, the slot 8"},
    {"contents that overlap", number("offset", std::uint64_t(4096)), number("offset", std::uint64_t(4)),
     errc::file_invalid, "plan file test: slot 3: its content begins at byte 4 of the contents instead of 4096"},
    {"contents beyond the file", number("offset", std::uint64_t(0)), number("offset", ~std::uint64_t(0)),
     errc::file_invalid,
     "plan file test: slot 2: its content begins at byte 18446744073709551615 of the contents instead of 0"},
    {"a slot that does not exist", number("slot", std::uint32_t(0)), number("slot", std::uint32_t(4)),
     errc::file_invalid, "plan file test: op 1 (jit.launch): argument 1 names slot 4, the plan has 4"},
    {"a range beyond its slot", number("size", std::uint64_t(2)), number("size", std::uint64_t(3)), errc::out_of_bounds,
     "plan p: op 1 (jit.launch): argument 1 names 3 elements from 0 on, input1 has 2"},
    {"a write to a constant", number("slot", std::uint32_t(3)), number("slot", std::uint32_t(1)),
     errc::invalid_argument, "plan p: op 1 (jit.launch): argument 2 writes w, which is a constant"},
    {"an unknown kernel", number("kernel", std::uint32_t(0)), number("kernel", std::uint32_t(1)), errc::file_invalid,
     "plan file test: op 1 (jit.launch): its kernel is number 1, there are 1"},
    {"an empty grid", number("x", std::uint32_t(1)), number("x", std::uint32_t(0)), errc::invalid_launch,
     "plan p: op 1 (jit.launch): scale: the grid is 0 x 1 x 1"},
    {"an unknown type of parameter", number("form", std::uint8_t(2)), number("form", std::uint8_t(3)),
     errc::file_invalid, "plan file test: kernel 1: parameter 1 has an unknown type"},
    {"an unknown option of a kernel", "architecture", "architexture", errc::file_invalid,
     "plan file test: kernel 1: architecture is missing"},
    {"a list that is missing", "slots", "slits", errc::file_invalid, ""},
};

TEST_CASE("a file that was changed on purpose is refused, with the slot or the op and the field")
{
    for (const auto& r : replacements) {
        INFO(std::string(r.name));
        auto file = test::file_of(small_plan());
        REQUIRE(test::replace(file, r.what, r.with));
        const auto made = read_file(file);
        REQUIRE_FALSE(made);
        CHECK(made.error() == r.error);
        if (!r.message.empty())
            CHECK(made.error().message() == r.message);
    }
}

TEST_CASE("a constant without content is refused")
{
    detail::tree_writer out;
    out["plan"].begin_record();
    out["name"].text("p");
    out["library"].text("");
    out.end();
    out["kernels"].begin_list();
    out.end();
    out["slots"].begin_list();
    out.begin_record();
    out["name"].text("w");
    out["kind"].text("constant");
    out["type"].text("f32");
    out["count"].number(std::uint64_t(4));
    out.end();
    out.end();
    out["ops"].begin_list();
    out.end();
    check_refused(test::file_with(out.written()), errc::file_invalid,
                  "plan file test: slot 1: its kind is constant, but it has no content");
}

TEST_CASE("values that are nested too deeply, or too many, are refused")
{
    detail::tree_writer deep;
    deep["plan"].begin_record();
    for (int i = 0; i < 100000; ++i)
        deep["x"].begin_record();
    const auto made = read_file(test::file_with(deep.written()));
    REQUIRE_FALSE(made);
    CHECK(made.error().message().find("values are nested too deeply at byte") != std::string::npos);
    detail::tree_writer many;
    many["plan"].begin_record();
    for (int i = 0; i < 70000; ++i)
        many["x"].boolean(true);
    many.end();
    const auto refused = read_file(test::file_with(many.written()));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find("an item has too many values at byte") != std::string::npos);
}

TEST_CASE("a text that is longer than the file is refused")
{
    // The name of the plan: the length is before it.
    for (const std::uint64_t length : {std::uint64_t(2000), std::uint64_t(1) << 40, ~std::uint64_t(0)}) {
        auto file = test::file_of(small_plan());
        std::string what("\x04\x00name", 6), with = what;
        const std::uint64_t one = 1;
        what.append(reinterpret_cast<const char*>(&one), sizeof(one));
        with.append(reinterpret_cast<const char*>(&length), sizeof(length));
        REQUIRE(test::replace(file, what, with));
        const auto made = read_file(file);
        REQUIRE_FALSE(made);
        CHECK(made.error() == errc::file_invalid);
        CHECK(made.error().message().find("it is cut off at byte") != std::string::npos);
    }
}

TEST_CASE("a plan that a builder would refuse is refused with the same error")
{
    plan_builder good("p"), bad("p");
    for (auto* b : {&good, &bad}) {
        const auto x = b->input<float>(4);
        const auto y = b->output<float>(4);
        const auto n = b == &good ? 4 : 5;
        b->add(memory::fill<float>{.dst = y});
        b->add(blas::axpy<float>{.x = x, .y = y, .n = std::uint64_t(n)});
    }
    auto file = test::file_of(good.finish().value());
    REQUIRE(test::replace(file, number("n", std::uint64_t(4)), number("n", std::uint64_t(5))));
    const auto wanted = bad.finish().error();
    check_refused(file, errc_of(wanted), wanted.message());
}

TEST_CASE("a message shows no control characters of a file")
{
    auto file = test::file_of(small_plan());
    REQUIRE(test::replace(file, "memory.prefetch<f32>", "memory.pr\033[2Jch<f32>"));
    const auto text = read_file(file).error().message();
    CHECK(text.find('\033') == std::string::npos);
    CHECK(text.find("\\x1b") != std::string::npos);
}

TEST_CASE("a file is loaded by its path, and a damaged one is named")
{
    const test::temporary_folder folder;
    const auto path = folder / "a.plan";
    const auto bytes = test::file_of(small_plan());
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), long(bytes.size()));
    CHECK(plan_description::load(path).value() == small_plan());
    std::filesystem::resize_file(path, bytes.size() - 1);
    const auto made = plan_description::load(path);
    REQUIRE_FALSE(made);
    CHECK(made.error() == errc::file_invalid);
    CHECK(made.error().message() == "plan file " + path + ": it has " + std::to_string(bytes.size() - 1) +
                                        " bytes instead of " + std::to_string(bytes.size()));
    std::filesystem::resize_file(path, 0);
    CHECK(plan_description::load(path).error().message() == "plan file " + path + ": it is not a plan");
}

TEST_SUITE_END();

} // namespace

} // namespace test_plan_file_damage
