#include "plan/plan_parts.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace test_plan_layout {

namespace {

using namespace coaccel;
using detail::plan_data;
using detail::plan_slot;

std::shared_ptr<const plan_data> finish(const plan_builder& b)
{
    auto made = b.finish();
    REQUIRE_MESSAGE(made.has_value(), made.error().message());
    return detail::plan_access::data(made.value());
}

std::uint64_t round_up(std::uint64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/// The indices of the slots that each op uses.
std::vector<std::set<std::uint32_t>> slots_of_ops(const plan_data& p)
{
    std::vector<std::set<std::uint32_t>> made;
    for (const auto& o : p.ops) {
        auto& used = made.emplace_back();
        for (const auto& f : o.info->operands) {
            any_ref r;
            std::memcpy(&r, reinterpret_cast<const char*>(o.record.op.data()) + f.offset, sizeof(r));
            CHECK(r.device == detail::plan_device);
            CHECK(r.generation == 0);
            used.insert(r.slot);
        }
    }
    return made;
}

bool apart(const plan_slot& a, const plan_slot& b)
{
    return a.offset + a.bytes() <= b.offset || b.offset + b.bytes() <= a.offset;
}

/// Checks the layout without computing one: between its first and its last use, no other slot is used in the memory of
/// a slot.
void check_layout(const plan_data& p)
{
    const auto uses = slots_of_ops(p);
    std::uint64_t arguments = 0;
    std::uint64_t scratch = 0;
    for (const auto& s : p.slots) {
        if (!s.in_instance())
            continue;
        CHECK(s.offset % detail::slot_alignment == 0);
        CHECK(s.offset + s.bytes() <= p.instance_bytes);
        (s.kind == slot_kind::scratch ? scratch : arguments) += round_up(s.bytes());
    }
    CHECK(p.unshared_scratch_bytes == scratch);
    CHECK(p.instance_bytes <= arguments + scratch);

    std::uint64_t most = 0;
    for (std::size_t at = 0; at < p.ops.size(); ++at) {
        // A slot is alive here if an op at or before this one and an op at or after this one use it.
        std::vector<std::uint32_t> alive;
        std::uint64_t bytes = 0;
        for (std::uint32_t i = 0; i < p.slots.size(); ++i) {
            const auto uses_it = [i](const auto& used) { return used.contains(i); };
            const bool scratch_alive = std::any_of(uses.begin(), uses.begin() + std::ptrdiff_t(at) + 1, uses_it) &&
                                       std::any_of(uses.begin() + std::ptrdiff_t(at), uses.end(), uses_it);
            const plan_slot& s = p.slots[i];
            if (!s.in_instance() || (s.kind == slot_kind::scratch && !scratch_alive))
                continue;
            alive.push_back(i);
            bytes += round_up(s.bytes());
        }
        for (std::size_t i = 0; i < alive.size(); ++i)
            for (std::size_t j = i + 1; j < alive.size(); ++j)
                if (!apart(p.slots[alive[i]], p.slots[alive[j]]))
                    FAIL_CHECK("slots " << alive[i] << " and " << alive[j] << " share memory at op " << at);
        most = std::max(most, bytes);
    }
    CHECK(p.instance_bytes >= most);

    for (const auto& [slots, staged] : {std::pair(&p.inputs, p.staged_inputs), std::pair(&p.outputs, p.staged_outputs)})
        for (const std::uint32_t i : *slots) {
            const plan_slot& s = p.slots[i];
            const bool inside = s.offset >= staged.offset && s.offset + s.bytes() <= staged.offset + staged.bytes;
            CHECK(inside == detail::is_staged(p, s));
            if (inside)
                CHECK(s.bytes() <= detail::largest_staged_argument);
        }
    CHECK(p.staged_inputs.bytes <= detail::most_staged_bytes);
    CHECK(p.staged_outputs.bytes <= detail::most_staged_bytes);
}

} // namespace

TEST_SUITE_BEGIN("plan layout");

TEST_CASE("inputs come first, then outputs, then scratch; of the arguments those that a run copies are together")
{
    constexpr std::uint64_t most = detail::largest_staged_argument;
    plan_builder b;
    b.input<std::uint8_t>(most + 1, "large input");
    b.input<std::uint8_t>(1);
    const auto h = b.scratch<std::uint8_t>(300);
    const auto large = b.output<std::uint8_t>(most + 257, "large output");
    b.input<std::uint8_t>(257);
    const auto y = b.output<std::uint8_t>(5);
    b.input<std::uint8_t>(most, "largest staged input");
    for (const auto& dst : {h, large, y})
        b.add(memory::fill<std::uint8_t>{.dst = dst});
    const auto p = finish(b);
    const auto at = [&](std::size_t i) { return p->slots[i].offset; };
    CHECK(at(1) == 0);
    CHECK(at(4) == 256);
    CHECK(at(6) == 768);
    CHECK(at(0) == 768 + most);
    CHECK(at(5) == 1024 + 2 * most);
    CHECK(at(3) == 1280 + 2 * most);
    CHECK(at(2) == 1792 + 3 * most);
    CHECK(p->instance_bytes == 2304 + 3 * most);
    CHECK(p->staged_inputs.offset == 0);
    CHECK(p->staged_inputs.bytes == 768 + most);
    CHECK(p->staged_outputs.offset == 1024 + 2 * most);
    CHECK(p->staged_outputs.bytes == 5);
    CHECK(p->inputs == std::vector<std::uint32_t>{0, 1, 4, 6});
    CHECK(p->outputs == std::vector<std::uint32_t>{3, 5});
    CHECK(p->slots[6].index == 3);
    check_layout(*p);
}

TEST_CASE("of many arguments a run copies the smallest, up to a limit for each direction")
{
    constexpr std::uint64_t most = detail::largest_staged_argument;
    constexpr std::uint64_t limit = detail::most_staged_bytes;
    plan_builder b;
    // The first ones are the largest: only three of them fit beside the small ones.
    for (std::uint64_t i = 0; i < 6; ++i)
        b.input<std::uint8_t>(most - i, "x" + std::to_string(i));
    for (int i = 0; i < 8; ++i)
        b.input<std::uint8_t>(512, "small" + std::to_string(i));
    for (std::uint64_t i = 0; i < limit / most; ++i)
        b.add(memory::fill<std::uint8_t>{.dst = b.output<std::uint8_t>(most)});
    const auto p = finish(b);
    std::vector<std::string> large;
    for (const std::uint32_t i : p->inputs)
        if (!detail::is_staged(*p, p->slots[i]))
            large.push_back(p->slots[i].name);
    CHECK(large == std::vector<std::string>{"x0", "x1", "x2"});
    // Exactly the limit is allowed.
    for (const std::uint32_t i : p->outputs)
        CHECK(detail::is_staged(*p, p->slots[i]));
    CHECK(p->staged_outputs.bytes == limit);
    check_layout(*p);
}

TEST_CASE("without inputs and outputs to stage, both ranges are empty")
{
    plan_builder b;
    b.add(memory::fill<float>{.dst = b.state<float>(4)});
    const auto p = finish(b);
    CHECK(p->staged_inputs.bytes == 0);
    CHECK(p->staged_outputs.bytes == 0);
    CHECK(p->instance_bytes == 0);
}

TEST_CASE("scratch slots that are not used at the same time share memory")
{
    plan_builder b;
    const auto x = b.input<float>(256);
    const auto y = b.output<float>(256);
    ref<float> h[4];
    for (auto& s : h)
        s = b.scratch<float>(256);
    b.add(memory::copy<float>{.src = x, .dst = h[0]});
    for (int i = 0; i < 3; ++i)
        b.add(memory::copy<float>{.src = h[i], .dst = h[i + 1]});
    b.add(memory::copy<float>{.src = h[3], .dst = y});
    const auto p = finish(b);
    CHECK(p->unshared_scratch_bytes == 4096);
    CHECK(p->instance_bytes == 2048 + 2048);
    CHECK(p->slots[2].offset == p->slots[4].offset);
    CHECK(p->slots[3].offset == p->slots[5].offset);
    check_layout(*p);
}

TEST_CASE("a small slot takes the smallest gap that suffices")
{
    using u8 = std::uint8_t;
    plan_builder b;
    const auto slot = [&](std::uint64_t units) { return b.scratch<u8>(256 * units); };
    const auto a = slot(5);
    const auto large_gap = slot(4);
    const auto c = slot(3);
    const auto small_gap = slot(2);
    const auto d = slot(2);
    const auto small = slot(2);
    b.add(memory::fill<u8>{.dst = b.output<u8>(1)});
    for (const auto& dst : {a, c, d, large_gap, small_gap})
        b.add(memory::fill<u8>{.dst = dst});
    b.add(memory::copy<u8>{.src = small_gap, .dst = large_gap.first(512)});
    b.add(memory::fill<u8>{.dst = small});
    for (const auto& src : {a, c})
        b.add(memory::copy<u8>{.src = src.first(512), .dst = d});
    const auto p = finish(b);
    check_layout(*p);
    CHECK(p->instance_bytes == 256 + 16 * 256);
    CHECK(p->slots[small_gap.raw().slot].offset == 256 + 12 * 256);
    CHECK(p->slots[small.raw().slot].offset == 256 + 12 * 256);
}

TEST_CASE("constants and states have their own memory")
{
    plan_builder b;
    const auto c = b.constant<float>(std::vector<float>(100, 1));
    const auto s = b.state<float>(100);
    const auto begun = b.state<float>(std::vector<float>(50, 2));
    b.add(memory::copy<float>{.src = c, .dst = s});
    const auto p = finish(b);
    CHECK(p->instance_bytes == 0);
    CHECK(p->constants == std::vector<std::uint32_t>{0});
    CHECK(p->states == std::vector<std::uint32_t>{1, 2});
    REQUIRE(p->constant_contents.size() == 1);
    CHECK(p->constant_contents[0].bytes == 400);
    REQUIRE(p->state_contents.size() == 2);
    CHECK(p->state_contents[0].data == nullptr);
    REQUIRE(p->state_contents[1].bytes == 200);
    CHECK(reinterpret_cast<const float*>(p->state_contents[1].data.get())[49] == 2);
    CHECK(begun.size() == 50);
}

TEST_CASE("slots of random plans that are used at the same time do not share memory")
{
    std::mt19937 random(12);
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    std::uint64_t saved = 0;
    for (int round = 0; round < 150; ++round) {
        plan_builder b;
        std::vector<ref<float>> slots;
        std::vector<bool> written;
        const std::size_t count = 1 + below(24);
        for (std::size_t i = 0; i < count; ++i) {
            const auto elements = 1 + below(below(8) == 0 ? 200'000 : 700);
            const auto kind = below(8);
            slots.push_back(kind == 0   ? b.input<float>(elements)
                            : kind == 1 ? b.output<float>(elements)
                            : kind == 2 ? b.state<float>(elements)
                                        : b.scratch<float>(elements));
            if (kind == 1)
                b.add(memory::fill<float>{.dst = slots.back()});
            written.push_back(kind < 3);
            if (kind == 0)
                slots.back() = {};
        }
        b.add(memory::fill<float>{.dst = b.output<float>(1)});
        for (std::size_t n = below(60); n != 0; --n) {
            const auto i = below(count);
            const auto j = below(count);
            if (slots[i].empty() || slots[j].empty())
                continue;
            if (!written[i] || i == j) {
                b.add(memory::fill<float>{.dst = slots[i]});
                written[i] = true;
                continue;
            }
            const auto elements = std::min(slots[i].size(), slots[j].size());
            b.add(memory::copy<float>{.src = slots[i].first(elements), .dst = slots[j].first(elements)});
            written[j] = written[j] || elements == slots[j].size();
        }
        const auto p = finish(b);
        check_layout(*p);
        std::uint64_t all = 0;
        for (const auto& s : p->slots)
            all += s.in_instance() ? round_up(s.bytes()) : 0;
        saved += all - p->instance_bytes;
    }
    CHECK(saved > 0);
}

TEST_SUITE_END();

} // namespace test_plan_layout
