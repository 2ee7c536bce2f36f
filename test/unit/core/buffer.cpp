#include <coaccel/core/buffer.hpp>
#include <coaccel/core/operand.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace test_core_buffer {

namespace {

using namespace coaccel;

class fake_owner final : public detail::buffer_owner {
public:
    void release(const any_ref& ref) noexcept override { released.push_back(ref); }

    std::vector<any_ref> released;
};

constexpr any_ref raw{
    .device = 1, .generation = 2, .slot = 3, .version = 4, .offset = 0, .size = 10, .type = dtype::f64};

struct fixture {
    std::shared_ptr<fake_owner> owner = std::make_shared<fake_owner>();

    buffer<double> make() const { return buffer<double>(raw, owner); }
};

static_assert(!std::is_copy_constructible_v<buffer<float>> && !std::is_copy_assignable_v<buffer<float>>);
static_assert(std::is_nothrow_move_constructible_v<buffer<float>> && std::is_nothrow_move_assignable_v<buffer<float>>);
static_assert(std::is_nothrow_default_constructible_v<buffer<float>>);
static_assert(std::is_convertible_v<const buffer<float>&, ref<float>>);
static_assert(!std::is_convertible_v<const buffer<float>&, ref<double>>);
static_assert(std::is_convertible_v<const buffer<float>&, in<float>> && std::is_convertible_v<ref<float>, out<float>>);
static_assert(!std::is_convertible_v<const buffer<float>&, in<double>> &&
              !std::is_convertible_v<ref<half>, inout<float>>);
static_assert(!std::is_convertible_v<in<float>, out<float>>);
static_assert(!std::is_convertible_v<buffer<float>, bool> && std::is_constructible_v<bool, buffer<float>>);

static_assert(std::is_trivially_copyable_v<in<float>> && std::is_trivially_copyable_v<out<half>> &&
              std::is_trivially_copyable_v<inout<std::complex<double>>>);
static_assert(std::is_same_v<decltype(in(std::declval<const buffer<half>&>())), in<half>>);
static_assert(std::is_same_v<decltype(out(std::declval<ref<float>>())), out<float>>);
static_assert(std::is_same_v<decltype(inout(std::declval<buffer<double>&>())), inout<double>>);
static_assert(in<float>::mode == access::read && out<float>::mode == access::write &&
              inout<float>::mode == access::read_write);
static_assert(!writes(access::read) && writes(access::write) && writes(access::read_write));
static_assert(detail::is_operand<in<float>> && detail::is_operand<inout<half>> && detail::is_operand<out<double>>);
static_assert(!detail::is_operand<float> && !detail::is_operand<ref<float>>);

} // namespace

TEST_SUITE_BEGIN("buffer");

TEST_CASE("an empty buffer owns nothing")
{
    buffer<float> b;
    CHECK_FALSE(b);
    CHECK(b.size() == 0);
    CHECK(b.size_bytes() == 0);
    CHECK(b.ref().raw().type == dtype::f32);
    CHECK(b.ref().raw().device == 0);
    b.reset();
    CHECK_FALSE(b);
}

TEST_CASE_FIXTURE(fixture, "a buffer releases its memory once, at its destruction")
{
    {
        const auto b = make();
        CHECK(b);
        CHECK(b.size() == 10);
        CHECK(b.size_bytes() == 80);
        CHECK(b.ref().raw() == raw);
        CHECK(owner->released.empty());
    }
    REQUIRE(owner->released.size() == 1);
    CHECK(owner->released[0] == raw);
    CHECK(owner.use_count() == 1);
}

TEST_CASE_FIXTURE(fixture, "reset releases the memory at once and leaves the buffer empty")
{
    auto b = make();
    b.reset();
    CHECK(owner->released.size() == 1);
    CHECK_FALSE(b);
    CHECK(b.size() == 0);
    CHECK(b.ref().raw().device == 0);
    b.reset();
    CHECK(owner->released.size() == 1);
    CHECK(owner.use_count() == 1);
}

TEST_CASE_FIXTURE(fixture, "moving transfers the memory")
{
    auto a = make();
    auto b = std::move(a);
    CHECK_FALSE(a);
    CHECK(a.size() == 0);
    CHECK(b.size() == 10);
    a.reset();
    CHECK(owner->released.empty());

    buffer<double> c;
    c = std::move(b);
    CHECK_FALSE(b);
    CHECK(c.ref().raw() == raw);
    CHECK(owner->released.empty());
}

TEST_CASE_FIXTURE(fixture, "assignment releases the previous memory")
{
    auto a = make();
    any_ref second = raw;
    second.slot = 9;
    buffer<double> b(second, owner);
    b = std::move(a);
    REQUIRE(owner->released.size() == 1);
    CHECK(owner->released[0] == second);
    CHECK(b.ref().raw() == raw);

    auto& same = b;
    b = std::move(same);
    CHECK(b);
    CHECK(owner->released.size() == 1);
    b = buffer<double>();
    CHECK(owner->released.size() == 2);
}

TEST_CASE_FIXTURE(fixture, "a buffer keeps its owner alive")
{
    std::weak_ptr<fake_owner> weak = owner;
    auto b = make();
    owner.reset();
    CHECK_FALSE(weak.expired());
    b.reset();
    CHECK(weak.expired());
}

TEST_CASE_FIXTURE(fixture, "refs and operands made from a buffer do not extend its lifetime")
{
    const auto b = make();
    const ref<double> r = b;
    CHECK(r == b.ref());
    CHECK(b.subspan(2, 3) == r.subspan(2, 3));
    const in<double> i = b;
    const out<double> o = r;
    const inout<double> io(b.subspan(1, 4));
    CHECK(i.raw == raw);
    CHECK(o.raw == raw);
    CHECK(i.size() == 10);
    CHECK(io.size() == 4);
    CHECK(io.raw.offset == 1);
    CHECK(in<double>().raw.type == dtype::f64);
    CHECK(in<double>().raw.device == 0);
}

TEST_SUITE_END();

} // namespace test_core_buffer
