#include "support/every_op.hpp"

#include <coaccel/core/detail/adopt_op.hpp>
#include <coaccel/core/tune.hpp>
#include <coaccel/ops/interop.hpp>
#include <coaccel/ops/jit/launch.hpp>
#include <coaccel/ops/plugin.hpp>

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace test_core_op {

namespace {

using namespace coaccel;
// Not `access`: POSIX has a function of that name.
using usage = coaccel::access;

template <class F>
void each_op(F f)
{
    test::for_each_op(f);
    f.template operator()<detail::allocate_op>();
    f.template operator()<detail::adopt_op>();
    f.template operator()<interop::wait_event<float>>();
    f.template operator()<interop::record_event<float>>();
}

struct untyped {
    using reply = std::uint32_t;
    static constexpr std::string_view name = "test.untyped";
    static constexpr library lib = library::user;

    std::uint8_t small = 0;
    inout<half> last;
    in<float> first;
    std::uint64_t number = 0;

    error_code check() const noexcept { return number == 0 ? error_code() : make_error_code(errc::overlap); }

    BOOST_DESCRIBE_CLASS(untyped, (), (small, last, first, number), (), ())
};

struct same_name_other_layout {
    using reply = void;
    static constexpr std::string_view name = "test.untyped";
    static constexpr library lib = library::user;

    std::uint16_t small = 0;
    inout<half> last;
    in<float> first;
    std::uint64_t number = 0;

    error_code check() const noexcept { return {}; }

    BOOST_DESCRIBE_CLASS(same_name_other_layout, (), (small, last, first, number), (), ())
};

struct same_layout_other_fields {
    using reply = std::uint32_t;
    static constexpr std::string_view name = "test.untyped";
    static constexpr library lib = library::user;

    std::uint8_t smaller = 0;
    inout<half> last;
    in<float> first;
    std::uint64_t number = 0;

    error_code check() const noexcept { return {}; }

    BOOST_DESCRIBE_CLASS(same_layout_other_fields, (), (smaller, last, first, number), (), ())
};

struct not_described {
    using reply = void;
    [[maybe_unused]] static constexpr std::string_view name = "test.not_described";
    [[maybe_unused]] static constexpr library lib = library::user;
    error_code check() const noexcept { return {}; }
};

struct without_check {
    using reply = void;
    static constexpr std::string_view name = "test.without_check";
    static constexpr library lib = library::user;
    BOOST_DESCRIBE_CLASS(without_check, (), (), (), ())
};

struct without_reply {
    [[maybe_unused]] static constexpr std::string_view name = "test.without_reply";
    [[maybe_unused]] static constexpr library lib = library::user;
    error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(without_reply, (), (), (), ())
};

static_assert(op<untyped> && op<same_name_other_layout>);
static_assert(!op<not_described> && !op<without_check> && !op<without_reply> && !op<int> && !op<std::string>);

template <class T>
concept has_gemm = requires { typename blas::gemm<T>; };
template <class T>
concept has_dot = requires { typename blas::dot<T>; };
static_assert(has_gemm<half> && has_gemm<bfloat16> && has_gemm<std::complex<float>> && !has_gemm<int> &&
              !has_gemm<float8_e4m3>);
static_assert(has_dot<float> && has_dot<double> && !has_dot<half> && !has_dot<std::int32_t> &&
              !has_dot<std::complex<float>>);

// Not templates: compiled once, and not for each op.

struct all_names {
    std::map<std::uint64_t, std::string> ids;
    std::map<std::string, int> names;

    void check(const op_info& info, std::size_t size, std::size_t operands, const op_info& again)
    {
        CAPTURE(info.name);
        CHECK(info.id != 0);
        CHECK(ids.emplace(info.id, info.name).second);
        CHECK(++names[info.name] == 1);
        CHECK(info.size == size);
        CHECK(info.operands.size() == operands);
        CHECK(&info == &again);
    }
};

void check_refs(const op_info& info, const void* op)
{
    CAPTURE(info.name);
    for (const auto& f : info.operands) {
        CHECK(f.size == sizeof(any_ref));
        CHECK(std::size_t(f.offset) + f.size <= info.size);
        const auto* ref = reinterpret_cast<const any_ref*>(static_cast<const char*>(op) + f.offset);
        CHECK(ref->type == f.type);
        CHECK(ref->device == 0);
    }
}

struct row {
    const op_info* info;
    const char* name;
    library lib;
    std::size_t reply_size;
    bool may_overlap;
    std::vector<std::string> fields;
    std::vector<std::pair<std::string, usage>> operands;
};

} // namespace

TEST_SUITE_BEGIN("op");

TEST_CASE("the description of an op lists its fields and operands")
{
    const std::vector<std::string> xy = {"x", "y", "n", "incx", "incy"};
    const auto r = usage::read;
    const auto w = usage::write;
    const auto rw = usage::read_write;
    const std::vector<row> rows = {
        {&info_of<blas::gemm<float>>(),
         "blas.gemm<f32>",
         library::blas,
         0,
         false,
         {"a", "b", "c", "m", "n", "k", "alpha", "beta", "trans_a", "trans_b", "lda", "ldb", "ldc", "math"},
         {{"a", r}, {"b", r}, {"c", rw}}},
        {&info_of<blas::gemm<bfloat16>>(),
         "blas.gemm<bf16>",
         library::blas,
         0,
         false,
         {"a", "b", "c", "m", "n", "k", "alpha", "beta", "trans_a", "trans_b", "lda", "ldb", "ldc", "math"},
         {{"a", r}, {"b", r}, {"c", rw}}},
        {&info_of<blas::gemm_strided_batched<half>>(),
         "blas.gemm_strided_batched<f16>",
         library::blas,
         0,
         false,
         {"a", "b", "c", "m", "n", "k", "batch", "stride_a", "stride_b", "stride_c", "alpha", "beta", "trans_a",
          "trans_b", "lda", "ldb", "ldc", "math"},
         {{"a", r}, {"b", r}, {"c", rw}}},
        {&info_of<blas::gemv<double>>(),
         "blas.gemv<f64>",
         library::blas,
         0,
         false,
         {"a", "x", "y", "m", "n", "alpha", "beta", "trans", "lda", "incx", "incy"},
         {{"a", r}, {"x", r}, {"y", rw}}},
        {&info_of<blas::ger<float>>(),
         "blas.ger<f32>",
         library::blas,
         0,
         false,
         {"x", "y", "a", "m", "n", "alpha", "lda", "incx", "incy"},
         {{"x", r}, {"y", r}, {"a", rw}}},
        {&info_of<blas::axpy<float>>(),
         "blas.axpy<f32>",
         library::blas,
         0,
         true,
         {"x", "y", "n", "alpha", "incx", "incy"},
         {{"x", r}, {"y", rw}}},
        {&info_of<blas::scal<float>>(),
         "blas.scal<f32>",
         library::blas,
         0,
         false,
         {"x", "n", "alpha", "incx"},
         {{"x", rw}}},
        {&info_of<blas::copy<double>>(), "blas.copy<f64>", library::blas, 0, true, xy, {{"x", r}, {"y", rw}}},
        {&info_of<blas::swap<double>>(), "blas.swap<f64>", library::blas, 0, true, xy, {{"x", rw}, {"y", rw}}},
        {&info_of<blas::dot<double>>(), "blas.dot<f64>", library::blas, 8, false, xy, {{"x", r}, {"y", r}}},
        {&info_of<blas::nrm2<float>>(), "blas.nrm2<f32>", library::blas, 4, false, {"x", "n", "incx"}, {{"x", r}}},
        {&info_of<blas::asum<float>>(), "blas.asum<f32>", library::blas, 4, false, {"x", "n", "incx"}, {{"x", r}}},
        {&info_of<blas::iamax<float>>(), "blas.iamax<f32>", library::blas, 8, false, {"x", "n", "incx"}, {{"x", r}}},
        {&info_of<memory::fill<float8_e4m3>>(),
         "memory.fill<f8_e4m3>",
         library::memory,
         0,
         false,
         {"dst", "value"},
         {{"dst", w}}},
        {&info_of<memory::copy<std::complex<double>>>(),
         "memory.copy<c128>",
         library::memory,
         0,
         false,
         {"src", "dst"},
         {{"src", r}, {"dst", w}}},
        {&info_of<detail::write_op<std::uint8_t>>(),
         "memory.write<u8>",
         library::memory,
         0,
         false,
         {"dst", "src", "count"},
         {{"dst", w}}},
        {&info_of<detail::read_op<std::uint8_t>>(),
         "memory.read<u8>",
         library::memory,
         0,
         false,
         {"src", "dst", "count"},
         {{"src", r}}},
        {&info_of<detail::allocate_op>(),
         "memory.allocate",
         library::memory,
         sizeof(detail::allocation),
         false,
         {"count", "type", "kind"},
         {}},
    };
    for (const auto& c : rows) {
        CAPTURE(c.name);
        CHECK(c.info->name == c.name);
        CHECK(c.info->lib == c.lib);
        CHECK(c.info->reply_size == c.reply_size);
        CHECK(c.info->may_overlap == c.may_overlap);
        std::vector<std::string> fields;
        for (const auto& f : c.info->fields)
            fields.emplace_back(f.name);
        CHECK(fields == c.fields);
        std::vector<std::pair<std::string, usage>> operands;
        for (const auto& f : c.info->operands)
            operands.emplace_back(f.name, f.mode);
        CHECK(operands == c.operands);
    }
}

TEST_CASE("fields and operands carry their offset, size, kind and type")
{
    const untyped sample;
    const auto& info = info_of<untyped>();
    auto offset = [&](const auto& field) {
        return reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&sample);
    };
    REQUIRE(info.fields.size() == 4);
    REQUIRE(info.operands.size() == 2);
    CHECK(info.size == sizeof(untyped));
    CHECK(info.reply_size == 4);
    CHECK(info.name == "test.untyped");

    CHECK(info.fields[0].what == op_field::kind::value);
    CHECK(info.fields[0].offset == 0);
    CHECK(info.fields[0].size == 1);
    CHECK(info.fields[3].offset == offset(sample.number));
    CHECK(info.fields[3].size == 8);

    CHECK(info.operands[0].name == "last");
    CHECK(info.operands[0].what == op_field::kind::operand);
    CHECK(info.operands[0].offset == offset(sample.last));
    CHECK(info.operands[0].size == sizeof(inout<half>));
    CHECK(info.operands[0].mode == usage::read_write);
    CHECK(info.operands[0].type == dtype::f16);
    CHECK(info.operands[1].name == "first");
    CHECK(info.operands[1].offset == offset(sample.first));
    CHECK(info.operands[1].mode == usage::read);
    CHECK(info.operands[1].type == dtype::f32);
}

namespace {

struct with_optional_operands {
    using reply = void;
    static constexpr std::string_view name = "test.with_optional_operands";
    static constexpr library lib = library::user;

    in<float> needed;
    optional_in<half> read;
    optional_out<double> written;
    optional_inout<std::int8_t> changed;

    error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(with_optional_operands, (), (needed, read, written, changed), (), ())
};

struct with_lists {
    using reply = void;
    static constexpr std::string_view name = "test.with_lists";
    static constexpr library lib = library::user;

    std::array<optional_inout<float>, 12> list{};
    std::uint32_t count = 0;
    std::array<in<double>, 2> pair{};
    std::array<std::uint32_t, 3> numbers{};

    error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(with_lists, (), (list, count, pair, numbers), (), ())
};

ref<float> some_floats()
{
    return ref<float>::from_raw({1, 1, 7, 1, 0, 10, dtype::f32});
}

} // namespace

TEST_CASE("an operand is optional or not, and used as its type says")
{
    const auto& operands = info_of<with_optional_operands>().operands;
    REQUIRE(operands.size() == 4);
    CHECK_FALSE(operands[0].optional);
    const std::pair<usage, dtype> expected[] = {
        {usage::read, dtype::f16}, {usage::write, dtype::f64}, {usage::read_write, dtype::i8}};
    for (std::size_t i = 1; i < 4; ++i) {
        CHECK(operands[i].optional);
        CHECK(operands[i].what == op_field::kind::operand);
        CHECK(operands[i].mode == expected[i - 1].first);
        CHECK(operands[i].type == expected[i - 1].second);
        CHECK(operands[i].size == sizeof(any_ref));
    }
}

TEST_CASE("only a default-constructed optional operand has no buffer")
{
    const op_field& optional = info_of<with_optional_operands>().operands[1];
    const op_field& needed = info_of<with_optional_operands>().operands[0];
    const optional_in<float> none;
    CHECK_FALSE(none.has_value());
    CHECK(none.raw.is_none());
    CHECK(none.raw.type == dtype::f32);
    CHECK(none.size() == 0);
    CHECK(detail::has_none(optional, none.raw));
    // An operand that every op must have.
    CHECK_FALSE(detail::has_none(needed, none.raw));
    CHECK_FALSE(in<float>().raw.is_none());

    const optional_in<float> empty_ref = ref<float>();
    const optional_in<float> empty_buffer = buffer<float>();
    for (const auto* given : {&empty_ref, &empty_buffer}) {
        CHECK(given->has_value());
        CHECK_FALSE(detail::has_none(optional, given->raw));
    }
    optional_in<float> some = some_floats();
    CHECK(some.has_value());
    CHECK(some.size() == 10);
    some = {};
    CHECK_FALSE(some.has_value());
    CHECK_FALSE(optional_out<float>().has_value());
    CHECK_FALSE(optional_inout<float>().has_value());
    // A buffer of a device may have this slot.
    any_ref buffer_of_a_device = some_floats().raw();
    buffer_of_a_device.slot = any_ref::no_slot;
    CHECK_FALSE(buffer_of_a_device.is_none());
    static_assert(!with_optional_operands{}.read.has_value());
}

TEST_CASE("a list of operands is as many operands, in the order of the fields")
{
    const with_lists sample;
    const auto& info = info_of<with_lists>();
    const auto offset = [&](const auto& field) {
        return static_cast<std::uint32_t>(reinterpret_cast<const char*>(&field) -
                                          reinterpret_cast<const char*>(&sample));
    };
    static_assert(detail::count_operands<with_lists>() == 14);
    REQUIRE(info.operands.size() == 14);
    REQUIRE(info.fields.size() == 16);
    for (std::size_t i = 0; i < 12; ++i) {
        CHECK(info.operands[i].name == "list[" + std::to_string(i) + "]");
        CHECK(info.operands[i].offset == offset(sample.list[i]));
        CHECK(info.operands[i].size == sizeof(any_ref));
        CHECK(info.operands[i].optional);
        CHECK(info.operands[i].mode == usage::read_write);
        CHECK(info.operands[i].type == dtype::f32);
        CHECK(info.fields[i].name == info.operands[i].name);
    }
    CHECK(info.fields[12].name == "count");
    CHECK(info.operands[12].name == "pair[0]");
    CHECK(info.operands[13].name == "pair[1]");
    CHECK(info.operands[13].offset == offset(sample.pair[1]));
    CHECK_FALSE(info.operands[13].optional);
    CHECK(info.operands[13].type == dtype::f64);
    // An array of values is one field.
    CHECK(info.fields[15].name == "numbers");
    CHECK(info.fields[15].what == op_field::kind::value);
    CHECK(info.fields[15].size == sizeof(sample.numbers));
    CHECK(info.size == sizeof(with_lists));
}

TEST_CASE("the lists of products have 32 operands of each kind")
{
    const auto check = [](const op_info& info) {
        CAPTURE(info.name);
        REQUIRE(info.operands.size() == 96);
        CHECK(info.operands[0].name == "a[0]");
        CHECK(info.operands[31].name == "a[31]");
        CHECK(info.operands[32].name == "b[0]");
        CHECK(info.operands[64].name == "c[0]");
        CHECK(info.operands[95].name == "c[31]");
        CHECK(info.operands[63].mode == usage::read);
        CHECK(info.operands[95].mode == usage::read_write);
    };
    check(info_of<blas::gemm_batched<half>>());
    check(info_of<blas::gemm_grouped<double>>());
    const auto parameters = [](const op_info& info) {
        std::vector<std::string> names;
        for (const op_field& f : info.fields)
            if (f.variable != op_field::parameter::never)
                names.emplace_back(f.name);
        return names;
    };
    CHECK(parameters(info_of<blas::gemm_batched<float>>()) == std::vector<std::string>{"alpha", "beta"});
    CHECK(parameters(info_of<blas::gemm_grouped<float>>()).empty());
}

TEST_CASE("the name of an op has the types of its factors, if they differ both of them")
{
    CHECK(info_of<blas::matmul<float>>().name == "blas.matmul<f32 from f32>");
    CHECK(info_of<blas::matmul<half, float>>().name == "blas.matmul<f32 from f16>");
    CHECK(info_of<blas::matmul<std::int8_t>>().name == "blas.matmul<i32 from i8>");
    CHECK(info_of<blas::matmul<float8_e4m3>>().name == "blas.matmul<bf16 from f8_e4m3>");
    CHECK(info_of<blas::matmul<float8_e5m2>>().name == "blas.matmul<bf16 from f8_e5m2 and f8_e4m3>");
    CHECK(info_of<blas::matmul<float8_e4m3, bfloat16, float8_e5m2>>().name ==
          "blas.matmul<bf16 from f8_e4m3 and f8_e5m2>");
    CHECK(info_of<blas::matmul<float8_e5m2, float8_e5m2>>().name == "blas.matmul<f8_e5m2 from f8_e5m2 and f8_e4m3>");
    CHECK(info_of<blas::matmul<float8_e4m3>>().id != info_of<blas::matmul<float8_e4m3, bfloat16, float8_e5m2>>().id);
}

TEST_CASE("an op that is tuned has the fields and the check of its op, only reads its operands, and has a reply")
{
    using op_type = blas::matmul<half>;
    const op_info& own = info_of<op_type>();
    const op_info& tuned = info_of<tune<op_type>>();
    CHECK(tuned.name == "blas.matmul<f16 from f16> tuned");
    CHECK(tuned.id != own.id);
    CHECK(tuned.id != info_of<tune<blas::matmul<bfloat16>>>().id);
    CHECK(tuned.lib == library::blas);
    CHECK(tuned.size == sizeof(tune<op_type>));
    CHECK(tuned.reply_size == sizeof(tuning));
    CHECK(own.reply_size == 0);
    CHECK(tuned.obstacle == capture_obstacle::host_work);
    // It measures time.
    CHECK(own.pure);
    CHECK_FALSE(tuned.pure);
    REQUIRE(tuned.fields.size() == own.fields.size());
    REQUIRE(tuned.operands.size() == own.operands.size());
    for (std::size_t i = 0; i < own.operands.size(); ++i) {
        CHECK(tuned.operands[i].name == own.operands[i].name);
        CHECK(tuned.operands[i].offset == own.operands[i].offset);
        CHECK(tuned.operands[i].optional == own.operands[i].optional);
        CHECK(tuned.operands[i].mode == access::read);
    }
    const tune<op_type> bad{};
    CHECK(tuned.check(&bad) == errc::invalid_argument);
    CHECK(tuned.check(&bad).message() == "blas.matmul: m is 0");
    static_assert(tunable_op<op_type> && !tunable_op<blas::gemm<float>> && !tunable_op<tune<op_type>>);
}

TEST_CASE("the check of an op can be called without its type")
{
    const untyped good;
    untyped bad;
    bad.number = 1;
    CHECK(info_of<untyped>().check(&good) == error_code());
    CHECK(info_of<untyped>().check(&bad) == errc::overlap);
}

namespace {

struct with_state {
    using reply = std::uint32_t;
    static constexpr std::string_view name = "test.with_state";
    static constexpr library lib = library::user;
    std::uint64_t number = 0;
    std::uint64_t state() const noexcept { return number; }
    error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(with_state, (), (number), (), ())
};

struct with_own_obstacle {
    using reply = std::uint32_t;
    static constexpr std::string_view name = "test.with_own_obstacle";
    static constexpr library lib = library::user;
    static constexpr capture_obstacle obstacle = capture_obstacle::none;
    std::uint64_t number = 0;
    error_code check() const noexcept { return {}; }
    BOOST_DESCRIBE_CLASS(with_own_obstacle, (), (number), (), ())
};

template <op Op>
capture_obstacle obstacle_of(const Op& o = {})
{
    return info_of<Op>().find_obstacle(&o);
}

} // namespace

TEST_CASE("an op says why it cannot be part of a CUDA graph")
{
    using enum capture_obstacle;
    CHECK(obstacle_of<memory::fill<float>>() == none);
    CHECK(obstacle_of<blas::axpy<double>>() == none);
    CHECK(obstacle_of<prim::unary<float>>() == none);
    CHECK(obstacle_of<untyped>() == reply);
    CHECK(obstacle_of<blas::dot<float>>() == reply);
    CHECK(obstacle_of<stored_reply<blas::dot<float>>>() == none);
    CHECK(obstacle_of<with_state>() == state);
    CHECK(obstacle_of<with_own_obstacle>() == none);
    CHECK(obstacle_of<rand::uniform<float>>() == state);
    CHECK(obstacle_of<memory::prefetch<float>>() == host_work);
    CHECK(obstacle_of<memory::advise<float>>() == host_work);
    CHECK(obstacle_of<memory::trim>() == host_work);
    CHECK(obstacle_of<detail::write_op<float>>() == host_work);
    CHECK(obstacle_of<detail::allocate_op>() == host_work);
    CHECK(obstacle_of<interop::wait_event<float>>() == host_work);
    CHECK(obstacle_of<plugin::call_op<>>() == unknown_code);
    CHECK(obstacle_of<jit::launch_op<>>() == none);
    // About a description that is made by hand, nothing is known.
    CHECK(op_info{}.find_obstacle(nullptr) == unknown_code);
}

namespace {

struct sometimes_captured {
    using reply = void;
    static constexpr std::string_view name = "test.sometimes_captured";
    static constexpr library lib = library::user;
    bool host = false;

    error_code check() const noexcept { return {}; }
    capture_obstacle obstacle() const noexcept { return host ? capture_obstacle::host_work : capture_obstacle::none; }
    BOOST_DESCRIBE_CLASS(sometimes_captured, (), (host), (), ())
};

} // namespace

TEST_CASE("whether an op can be part of a CUDA graph may depend on its fields")
{
    CHECK(obstacle_of(sometimes_captured{}) == capture_obstacle::none);
    CHECK(obstacle_of(sometimes_captured{.host = true}) == capture_obstacle::host_work);
}

TEST_CASE("every obstacle has a text of its own")
{
    std::map<std::string, int> texts;
    for (int i = 0; i <= int(capture_obstacle::unknown_code); ++i)
        CHECK(++texts[std::string(to_string(capture_obstacle(i)))] == 1);
    CHECK(to_string(capture_obstacle(200)) == "unknown");
}

TEST_CASE("every op is plain data")
{
    each_op([]<class Op>() {
        static_assert(op<Op>);
        static_assert(std::is_trivially_copyable_v<Op>);
        static_assert(std::is_trivially_destructible_v<Op>);
        static_assert(std::is_aggregate_v<Op>);
        static_assert(std::is_default_constructible_v<Op>);
    });
}

TEST_CASE("every op and element type has its own id and name")
{
    all_names all;
    each_op([&]<class Op>() { all.check(info_of<Op>(), sizeof(Op), detail::count_operands<Op>(), info_of<Op>()); });
    CHECK(all.ids.size() > 100);
    CHECK(!all.ids.contains(detail::user_op_id));
}

TEST_CASE("ops that disagree about a layout, or a field's name, have different ids")
{
    CHECK(info_of<untyped>().name == info_of<same_name_other_layout>().name);
    CHECK(info_of<untyped>().id != info_of<same_name_other_layout>().id);
    CHECK(info_of<untyped>().id != info_of<same_layout_other_fields>().id);
}

TEST_CASE("the ref of each operand can be read without the type of the op")
{
    each_op([]<class Op>() {
        const Op op{};
        check_refs(info_of<Op>(), &op);
    });
}

TEST_CASE("a bound op finds the memory of each operand")
{
    const untyped op;
    half halves[1];
    float floats[1];
    void* addresses[] = {halves, floats};
    bound_op bound{.info = &info_of<untyped>(), .op = &op, .operands = addresses};
    CHECK(&bound.as<untyped>() == &op);
    CHECK(bound.data(bound.as<untyped>().last) == halves);
    CHECK(bound.data(bound.as<untyped>().first) == floats);
    static_assert(std::is_same_v<decltype(bound.data(op.first)), const float*>);
    static_assert(std::is_same_v<decltype(bound.data(op.last)), half*>);

    const memory::copy<float> copy;
    float target[1];
    void* both[] = {floats, target};
    bound = {.info = &info_of<memory::copy<float>>(), .op = &copy, .operands = both};
    CHECK(bound.data(copy.src) == floats);
    CHECK(bound.data(copy.dst) == target);
    static_assert(std::is_same_v<decltype(bound.data(copy.dst)), float*>);
}

TEST_CASE("a bound op has a null pointer for an operand without a buffer")
{
    with_optional_operands op;
    float floats[1];
    double doubles[1];
    void* addresses[] = {floats, nullptr, doubles, nullptr};
    const bound_op bound{.info = &info_of<with_optional_operands>(), .op = &op, .operands = addresses};
    CHECK(bound.data(op.needed) == floats);
    CHECK(bound.data(op.read) == nullptr);
    CHECK(bound.data(op.written) == doubles);
    CHECK(bound.data(op.changed) == nullptr);
    static_assert(std::is_same_v<decltype(bound.data(op.read)), const half*>);
    static_assert(std::is_same_v<decltype(bound.data(op.written)), double*>);
    static_assert(std::is_same_v<decltype(bound.data(op.changed)), std::int8_t*>);

    const with_lists lists;
    void* all[14]{};
    all[11] = floats;
    all[13] = doubles;
    const bound_op listed{.info = &info_of<with_lists>(), .op = &lists, .operands = all};
    CHECK(listed.data(lists.list[0]) == nullptr);
    CHECK(listed.data(lists.list[11]) == floats);
    CHECK(listed.data(lists.pair[1]) == doubles);
}

TEST_CASE("transfers are checked against the length of the caller's memory")
{
    const auto ten = ref<float>::from_raw({1, 1, 0, 1, 0, 10, dtype::f32});
    using write = detail::write_op<float>;
    using read = detail::read_op<float>;
    CHECK(write{.dst = ten, .count = 10}.check() == error_code());
    CHECK(write{.dst = ten, .count = 9}.check() == errc::length_mismatch);
    CHECK(write{.dst = ten, .count = 0}.check() == errc::invalid_argument);
    CHECK(read{.src = ten, .count = 11}.check() == errc::length_mismatch);
    CHECK(read{.src = ten, .count = 10}.check() == error_code());
    CHECK(read{}.check() == errc::invalid_argument);
    CHECK(detail::collect_op<float>{.src = ten, .sink = {}}.check() == error_code());
    CHECK(detail::collect_op<float>{}.check() == errc::invalid_argument);

    constexpr auto huge = ~std::uint64_t(0);
    using allocate = detail::allocate_op;
    CHECK(allocate{.count = 1, .type = dtype::f32}.check() == error_code());
    CHECK(allocate{.count = 0, .type = dtype::f32}.check() == errc::invalid_argument);
    CHECK(allocate{.count = huge, .type = dtype::u8}.check() == errc::size_overflow);
    CHECK(allocate{.count = huge, .type = dtype::f64}.check() == errc::size_overflow);
    CHECK(allocate{.count = huge / 2, .type = dtype::u8}.check() == error_code());
    CHECK(allocate{.count = huge / 2 + 1, .type = dtype::u8}.check() == errc::size_overflow);
    CHECK(allocate{.count = (huge >> 5) + 1, .type = dtype::c128}.check() == errc::size_overflow);
}

TEST_SUITE_END();

} // namespace test_core_op
