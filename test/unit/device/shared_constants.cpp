#include "device/shared_constants.hpp"

#include "device/standby_plans.hpp"

#include <coaccel/device/load_progress.hpp>
#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace test_device_shared_constants {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

constexpr std::size_t large = shared_constants::least_bytes / sizeof(float);

plan_description plan_of(const std::vector<std::pair<float, std::size_t>>& constants)
{
    plan_builder b("p");
    for (const auto& [value, count] : constants)
        b.add(memory::copy<float>{b.constant<float>(std::vector<float>(count, value)).first(1), b.output<float>(1)});
    return b.finish().value();
}

/// Two large constants, one of them twice, and a small one.
const plan_description& mixed_plan()
{
    static const plan_description p = plan_of({{1, large}, {2, 8}, {3, large + 100}, {1, large}});
    return p;
}

/// A large constant, and small ones, one of them twice, that are large together.
const plan_description& packed_plan()
{
    static const plan_description p =
        plan_of({{1, large}, {2, large / 2}, {3, large / 4}, {2, large / 2}, {4, large / 4}});
    return p;
}

constexpr std::uint64_t packed_shared = 2 * large * sizeof(float);
/// The large one, and three small ones.
constexpr int packed_writes = 4;

/// What the memory that contexts share contains: for each place, the value there.
using memory_content = std::map<std::uint64_t, float>;
std::map<const exported_memory*, memory_content> exported_contents;

constexpr std::uint64_t mixed_shared = (large + large + 100) * sizeof(float);

/// The memory of one context, which can share memory with others. Records what it is asked for.
class worker_memory {
public:
    explicit worker_memory(std::uint32_t generation) : generation_(generation) {}

    /// Does what a request asks for, or refuses it.
    void execute(load_part& part, const error_code& ec = {})
    {
        const bound_op& o = part.ops.front();
        ++asked[o.info->name + (is_exportable(o) ? " exportable" : "")];
        if (ec)
            return;
        if (o.info->role == op_role::allocate) {
            give(o, o.as<allocate_op>().count);
            exportable_[last_] = is_exportable(o);
        } else if (o.info->id == info_of<import_op>().id) {
            const auto& memory = **o.as<import_op>().from;
            give(o, memory.bytes);
            read_only.insert(last_);
            content_[last_] = exported_contents.at(&memory);
        } else if (o.info->id == info_of<export_op>().id) {
            const any_ref r = o.as<export_op>().buffer.raw;
            CHECK(exportable_[r.slot]);
            CHECK(filled[r.slot] == r.size);
            CHECK(read_only.insert(r.slot).second);
            auto made = std::make_shared<const exported_memory>(exported_memory{unique_fd(), r.size});
            exported_contents[made.get()] = content_[r.slot];
            *o.as<export_op>().to = std::move(made);
        } else if (o.info->id == info_of<write_op<std::uint8_t>>().id) {
            const any_ref to = o.as<write_op<std::uint8_t>>().dst.raw;
            CHECK_FALSE(read_only.contains(to.slot));
            filled[to.slot] += to.size;
            content_[to.slot][to.offset] = *reinterpret_cast<const float*>(o.as<write_op<std::uint8_t>>().src);
        } else if (o.info->id == plan_load_id) {
            const auto& head = o.as<plan_load_head>();
            const plan_load_operands at(*head.plan);
            for (std::size_t i = 0; i < at.count; ++i)
                CHECK(live.contains(head.refs()[i].slot));
            for (std::size_t i = 0; i < head.plan->constants.size(); ++i) {
                const any_ref& r = head.refs()[at.constants + i];
                const auto& content = head.plan->constant_contents[i];
                CHECK(r.size == content.bytes);
                CHECK(content_[r.slot].at(r.offset) == *reinterpret_cast<const float*>(content.data.get()));
            }
            ++loaded;
        } else if (o.info->id == info_of<plan_unload_op>().id) {
            loaded -= o.as<plan_unload_op>().instance != 0;
        }
    }

    void release(const std::vector<any_ref>& unused)
    {
        for (const any_ref& r : unused) {
            CHECK(r.generation == generation_);
            CHECK(live.erase(r.slot) == 1);
        }
    }

    /// How many requests were about memory that contexts share.
    int about_sharing()
    {
        return asked["memory.allocate exportable"] + asked["memory.export"] + asked["memory.import"];
    }

    std::map<std::string, int> asked;
    std::set<std::uint32_t> live, read_only;
    std::map<std::uint32_t, std::uint64_t> filled;
    int loaded = 0;

private:
    static bool is_exportable(const bound_op& o)
    {
        return o.info->role == op_role::allocate && o.as<allocate_op>().kind == memory_kind::exportable;
    }

    void give(const bound_op& o, std::uint64_t bytes)
    {
        static_cast<allocation*>(o.reply)->ref = {
            .device = 1, .generation = generation_, .slot = ++last_, .size = bytes};
        live.insert(last_);
    }

    std::uint32_t generation_;
    std::uint32_t last_ = 0;
    std::map<std::uint32_t, bool> exportable_;
    std::map<std::uint32_t, memory_content> content_;
};

/// A device with a context and a standby, reduced to their plans.
struct fixture {
    std::shared_ptr<loaded_plan> add(const plan_description& d)
    {
        auto p = std::make_shared<loaded_plan>(d, plan_options{});
        plans.add(p);
        return p;
    }

    bool step(const error_code& ec = {}, sharing can_share = sharing::yes)
    {
        load_part* part = plans.next(can_share);
        if (!part)
            return false;
        current.execute(*part, ec);
        const auto news = plans.finished(*part, ec);
        current.release(news.unused);
        if (news.unshared) {
            ++unshared;
            CHECK(news.unshared_error == ec);
        }
        if (news.extended)
            news.extended->pool.add(static_cast<std::uint32_t>(news.extended->instances.size() - 1));
        return true;
    }

    void run(sharing can_share = sharing::yes)
    {
        while (step({}, can_share)) {
        }
    }

    bool standby_step(const error_code& ec = {})
    {
        load_part* part = standby.next(plans, sharing::yes);
        if (!part)
            return false;
        ahead.execute(*part, ec);
        const auto news = standby.finished(*part, ec);
        ahead.release(news.unused);
        unshared += news.unshared ? 1 : 0;
        return true;
    }

    void run_standby()
    {
        while (standby_step()) {
        }
    }

    /// The worker of the device dies, and another one without plans follows.
    void lose()
    {
        for (const auto& p : plans.all())
            p->pool.clear();
        (void)plans.forget_context();
        current = worker_memory(++generations);
    }

    std::uint32_t generations = 2;
    worker_memory current{1};
    worker_memory ahead{2};
    plan_list plans;
    standby_plans standby;
    int unshared = 0;
};

} // namespace

TEST_SUITE_BEGIN("shared_constants");

TEST_CASE_FIXTURE(fixture, "the first context fills large constants, and every later one imports them")
{
    const auto p = add(mixed_plan());
    run();
    CHECK(current.asked["memory.allocate exportable"] == 2);
    CHECK(current.asked["memory.export"] == 2);
    CHECK(current.asked["memory.write<u8>"] == 3);
    CHECK(current.read_only.size() == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
    run_standby();
    // Only the small one is uploaded.
    CHECK(ahead.asked["memory.import"] == 2);
    CHECK(ahead.asked["memory.write<u8>"] == 1);
    CHECK(ahead.asked["memory.export"] == 0);
    CHECK(ahead.loaded == 1);
    for (int i = 0; i < 3; ++i) {
        lose();
        run();
        CHECK(current.asked["memory.import"] == 2);
        CHECK(current.asked["memory.write<u8>"] == 1);
        CHECK(current.loaded == 1);
        CHECK(plans.shared().bytes() == mixed_shared);
    }
    CHECK(unshared == 0);
}

TEST_CASE_FIXTURE(fixture, "small constants that are large together are shared as one")
{
    const auto p = add(packed_plan());
    run();
    CHECK(current.asked["memory.allocate exportable"] == 2);
    CHECK(current.asked["memory.export"] == 2);
    CHECK(current.asked["memory.write<u8>"] == packed_writes);
    CHECK(plans.shared().bytes() == packed_shared);
    run_standby();
    CHECK(ahead.asked["memory.import"] == 2);
    CHECK(ahead.asked["memory.write<u8>"] == 0);
    // An equal plan, and one with other small constants.
    const auto q = add(packed_plan());
    const auto r = add(plan_of({{2, large / 2}, {3, large / 2}}));
    run();
    CHECK(current.asked["memory.export"] == 3);
    CHECK(current.loaded == 3);
    lose();
    run();
    CHECK(current.asked["memory.import"] == 3);
    CHECK(current.asked["memory.write<u8>"] == 0);
    p->closing = q->closing = r->closing = true;
    run();
    run_standby();
    CHECK(current.live.empty());
    CHECK(ahead.live.empty());
    CHECK(plans.shared().bytes() == 0);
    CHECK(unshared == 0);
}

TEST_CASE_FIXTURE(fixture, "without sharing each small constant has its own buffer")
{
    const auto p = add(packed_plan());
    run(sharing::no);
    CHECK(current.asked["memory.allocate exportable"] == 0);
    // The constants, and the instance.
    CHECK(current.asked["memory.allocate"] == packed_writes + 1);
    p->closing = true;
    run(sharing::no);
    CHECK(current.live.empty());
}

TEST_CASE("whatever happens at any step of a load of packed constants, the plan runs, and nothing remains of it")
{
    for (const auto what : {errc::context_lost, errc::out_of_memory, errc::invalid_argument})
        for (const bool imports : {false, true})
            for (int steps = 0;; ++steps) {
                CAPTURE(int(what));
                CAPTURE(imports);
                CAPTURE(steps);
                fixture f;
                const auto p = f.add(packed_plan());
                if (imports) {
                    f.run();
                    f.lose();
                }
                bool more = true;
                for (int n = 0; n < steps && more; ++n)
                    more = f.step();
                const int before = f.current.about_sharing();
                if (!more || !f.step(what))
                    break;
                if (what == errc::context_lost)
                    f.lose();
                else if (f.current.about_sharing() == before)
                    continue;
                f.run();
                CHECK(f.current.loaded == 1);
                CHECK_FALSE(p->broken);
                // The next context has it too.
                f.lose();
                f.run();
                CHECK(f.current.loaded == 1);
                CHECK(f.plans.shared().bytes() == packed_shared);
                p->closing = true;
                f.run();
                CHECK(f.current.live.empty());
                CHECK(f.plans.shared().bytes() == 0);
            }
}

TEST_CASE_FIXTURE(fixture, "a context that cannot share has all constants for itself")
{
    const auto p = add(mixed_plan());
    run(sharing::no);
    CHECK(current.asked["memory.allocate exportable"] == 0);
    CHECK(current.asked["memory.export"] == 0);
    CHECK(current.asked["memory.write<u8>"] == 3);
    CHECK(plans.shared().bytes() == 0);
}

TEST_CASE_FIXTURE(fixture, "plans with equal constants share them, until the last one leaves the device")
{
    const auto a = add(mixed_plan());
    const auto b = add(plan_of({{1, large}}));
    run();
    run_standby();
    CHECK(current.asked["memory.export"] == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
    a->closing = true;
    run();
    CHECK(a->gone);
    // The handle of the plan still exists.
    CHECK(plans.shared().bytes() == large * sizeof(float));
    lose();
    run();
    CHECK(current.asked["memory.import"] == 1);
    CHECK(current.asked["memory.write<u8>"] == 0);
    b->closing = true;
    run();
    CHECK(plans.shared().bytes() == 0);
    run_standby();
    CHECK(ahead.live.empty());
    CHECK(current.live.empty());
}

TEST_CASE("memory is given up when its plan leaves, whatever contexts there are")
{
    for (const int how : {0, 1, 2}) {
        CAPTURE(how);
        fixture f;
        const auto p = f.add(mixed_plan());
        f.run();
        f.run_standby();
        if (how == 0) {
            (void)f.plans.take_all();
        } else {
            p->closing = true;
            // All workers are dead.
            f.lose();
            if (how == 2)
                f.standby.forget_context();
        }
        CHECK(p->gone);
        CHECK(f.plans.shared().bytes() == 0);
    }
}

TEST_CASE("a worker that dies at any step of a load costs the constants that it had not passed on")
{
    for (int steps = 0;; ++steps) {
        CAPTURE(steps);
        fixture f;
        const auto p = f.add(mixed_plan());
        bool more = true;
        for (int n = 0; n < steps && more; ++n)
            more = f.step();
        if (!more)
            break;
        const int passed_on = f.current.asked["memory.export"];
        // A request is on its way when the context is lost.
        load_part* part = f.plans.next(sharing::yes);
        if (part) {
            f.current.execute(*part, errc::context_lost);
            CHECK_FALSE(f.plans.finished(*part, errc::context_lost).unshared);
        }
        f.lose();
        f.run();
        CHECK(f.current.asked["memory.import"] == passed_on);
        CHECK(f.current.asked["memory.export"] == 2 - passed_on);
        CHECK(f.current.asked["memory.write<u8>"] == 3 - passed_on);
        CHECK(f.current.loaded == 1);
        CHECK(f.plans.shared().bytes() == mixed_shared);
        CHECK(f.unshared == 0);
        p->closing = true;
        f.run();
        CHECK(f.current.live.empty());
        CHECK(f.plans.shared().bytes() == 0);
    }
}

TEST_CASE("whichever request to share is refused, the context has the constant for itself")
{
    for (const bool imports : {false, true})
        for (int steps = 0;; ++steps) {
            CAPTURE(imports);
            CAPTURE(steps);
            fixture f;
            const auto p = f.add(mixed_plan());
            if (imports) {
                f.run();
                f.lose();
            }
            bool more = true;
            for (int n = 0; n < steps && more; ++n)
                more = f.step();
            const int before = f.current.about_sharing();
            if (!more || !f.step(errc::out_of_memory))
                break;
            const bool about_sharing = f.current.about_sharing() > before;
            CHECK(f.unshared == (about_sharing ? 1 : 0));
            if (!about_sharing)
                continue;
            f.run();
            CHECK(p->instances.size() == 1);
            CHECK(f.current.loaded == 1);
            CHECK_FALSE(p->broken);
            p->closing = true;
            f.run();
            CHECK(f.current.live.empty());
            CHECK(f.plans.shared().bytes() == 0);
        }
}

TEST_CASE_FIXTURE(fixture, "memory that a context cannot map because it is something else is made anew, once")
{
    const auto a = add(mixed_plan());
    const auto b = add(plan_of({{1, large}}));
    run();
    lose();
    while (current.asked["memory.import"] == 0)
        REQUIRE(step(errc::invalid_argument));
    CHECK(unshared == 1);
    CHECK(plans.shared().bytes() == mixed_shared - large * sizeof(float));
    run();
    CHECK(current.asked["memory.import"] == 2);
    CHECK(current.asked["memory.export"] == 1);
    CHECK(current.loaded == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
    // The next context can map it.
    lose();
    run();
    CHECK(current.asked["memory.import"] == 2);
    CHECK(current.asked["memory.export"] == 0);
    CHECK(unshared == 1);
    a->closing = b->closing = true;
    run();
    CHECK(plans.shared().bytes() == 0);
    CHECK(current.live.empty());
}

TEST_CASE_FIXTURE(fixture, "after a failure of the hardware the constants are filled again, once")
{
    const auto p = add(mixed_plan());
    run();
    const std::weak_ptr<const shared_constant> old = p->kept_constants.front();
    lose();
    plans.distrust_shared();
    CHECK(old.expired());
    CHECK(plans.shared().bytes() == 0);
    run();
    CHECK(current.asked["memory.import"] == 0);
    CHECK(current.asked["memory.export"] == 2);
    CHECK(current.asked["memory.write<u8>"] == 3);
    CHECK(plans.shared().bytes() == mixed_shared);
    lose();
    run();
    CHECK(current.asked["memory.import"] == 2);
}

TEST_CASE_FIXTURE(fixture, "a standby that is lost with the hardware leaves the context its constants, and nobody else")
{
    const auto p = add(mixed_plan());
    run();
    run_standby();
    standby.forget_context();
    plans.distrust_shared();
    ahead = worker_memory(++generations);
    run_standby();
    CHECK(ahead.asked["memory.import"] == 0);
    CHECK(ahead.asked["memory.export"] == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
    p->closing = true;
    run();
    run_standby();
    CHECK(current.live.empty());
    CHECK(ahead.live.empty());
    CHECK(plans.shared().bytes() == 0);
}

TEST_CASE("a load that fails leaves no memory behind")
{
    for (int steps = 0;; ++steps) {
        CAPTURE(steps);
        fixture f;
        const auto p = f.add(mixed_plan());
        // Only compared with null.
        alignas(load_call) std::byte call[sizeof(load_call)];
        p->call = reinterpret_cast<load_call*>(&call);
        bool more = true;
        for (int n = 0; n < steps && more; ++n)
            more = f.step();
        if (!more || !f.step(errc::out_of_memory))
            break;
        if (f.unshared > 0)
            continue;
        CHECK(p->gone);
        CHECK(f.current.live.empty());
        CHECK(f.plans.shared().bytes() == 0);
    }
}

TEST_CASE_FIXTURE(fixture, "the standby waits until the device has filled the constants")
{
    const auto p = add(mixed_plan());
    CHECK_FALSE(standby_step());
    run();
    REQUIRE(standby_step());
    run_standby();
    CHECK(ahead.asked["memory.export"] == 0);
    // Both workers die: again only one of them would fill what is missing, and nothing is.
    standby.forget_context();
    ahead = worker_memory(9);
    lose();
    run_standby();
    CHECK(ahead.loaded == 1);
    CHECK(ahead.asked["memory.import"] == 2);
    CHECK(ahead.asked["memory.export"] == 0);
}

TEST_CASE_FIXTURE(fixture, "a standby that takes over in the middle of a load continues with it")
{
    const auto p = add(mixed_plan());
    run();
    REQUIRE(standby_step());
    REQUIRE(standby_step());
    for (const auto& q : plans.all())
        q->pool.clear();
    (void)plans.forget_context();
    (void)plans.adopt(standby);
    current = std::exchange(ahead, worker_memory(9));
    run();
    CHECK(current.loaded == 1);
    CHECK(current.asked["memory.export"] == 0);
    CHECK(plans.shared().bytes() == mixed_shared);
}

TEST_CASE_FIXTURE(fixture, "a plan that the device cannot load is filled by the standby")
{
    const auto p = add(mixed_plan());
    p->broken = make_error_code(errc::out_of_memory);
    run_standby();
    CHECK(ahead.asked["memory.export"] == 2);
    CHECK(plans.shared().bytes() == mixed_shared);
}

TEST_CASE_FIXTURE(fixture, "a plan that has left while the standby fills its constants keeps none")
{
    const auto p = add(mixed_plan());
    p->broken = make_error_code(errc::out_of_memory);
    while (ahead.asked["memory.export"] == 0) {
        REQUIRE(standby_step());
        if (ahead.asked["memory.write<u8>"] == 1)
            (void)plans.take_all();
        if (p->gone)
            break;
    }
    run_standby();
    CHECK(p->kept_constants.empty());
    CHECK(plans.shared().bytes() == 0);
    CHECK(ahead.live.empty());
}

TEST_CASE_FIXTURE(fixture, "the progress of a load is complete whether constants are filled or imported")
{
    constexpr std::uint64_t all = (2 * large + large + 100 + 8) * sizeof(float);
    for (int i = 0; i < 2; ++i) {
        CAPTURE(i);
        const auto p = add(mixed_plan());
        load_progress progress;
        load_progress_access::begin(progress, all, 1);
        p->progress = &progress;
        if (i == 1)
            lose();
        std::uint64_t last = 0;
        while (step()) {
            CHECK(progress.bytes() >= last);
            CHECK(progress.bytes() <= all);
            last = progress.bytes();
        }
        CHECK(progress.bytes() == all);
        p->progress = nullptr;
    }
    CHECK(current.asked["memory.import"] == 2);
}

TEST_CASE("constants are found by their content, as long as a plan owns them")
{
    const auto content = [](float value) {
        static const auto a = plan_of({{1, 8}}), b = plan_of({{2, 8}});
        return group_constants(plan_access::data(value == 1 ? a : b)->constant_contents, packing::none).all.at(0);
    };
    shared_constants all;
    const auto memory = [](std::uint64_t bytes) {
        return std::make_shared<const exported_memory>(exported_memory{unique_fd(), bytes});
    };
    CHECK_FALSE(all.find(content(1)));
    auto one = all.add(content(1), memory(10));
    CHECK(all.find(content(1)) == one);
    CHECK_FALSE(all.find(content(2)));
    // Another context was faster.
    CHECK(all.add(content(1), memory(11)) == one);
    auto two = all.add(content(2), memory(20));
    CHECK(all.bytes() == 30);
    one.reset();
    CHECK(all.bytes() == 20);
    CHECK_FALSE(all.find(content(1)));
    CHECK(all.find(content(2)) == two);
}

TEST_SUITE_END();

} // namespace test_device_shared_constants
