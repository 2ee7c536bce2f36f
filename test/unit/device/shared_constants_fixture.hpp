#ifndef COACCEL_TEST_UNIT_DEVICE_SHARED_CONSTANTS_FIXTURE_HPP
#define COACCEL_TEST_UNIT_DEVICE_SHARED_CONSTANTS_FIXTURE_HPP

#include "device/shared_constants.hpp"
#include "device/standby_plans.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

// Contexts that can share memory, and plans with large constants.
namespace test::sharing_constants {

using namespace coaccel;
using namespace coaccel::detail;

inline constexpr std::size_t large = shared_constants::least_bytes / sizeof(float);

inline plan_description plan_of(const std::vector<std::pair<float, std::size_t>>& constants)
{
    plan_builder b("p");
    for (const auto& [value, count] : constants)
        b.add(memory::copy<float>{b.constant<float>(std::vector<float>(count, value)).first(1), b.output<float>(1)});
    return b.finish().value();
}

/// Two large constants, one of them twice, and a small one.
inline const plan_description& mixed_plan()
{
    static const plan_description p = plan_of({{1, large}, {2, 8}, {3, large + 100}, {1, large}});
    return p;
}

/// A large constant, and small ones, one of them twice, that are large together.
inline const plan_description& packed_plan()
{
    static const plan_description p =
        plan_of({{1, large}, {2, large / 2}, {3, large / 4}, {2, large / 2}, {4, large / 4}});
    return p;
}

inline constexpr std::uint64_t packed_shared = 2 * large * sizeof(float);
/// The large one, and three small ones.
inline constexpr int packed_writes = 4;

/// What the memory that contexts share contains: for each place, the value there.
using memory_content = std::map<std::uint64_t, float>;
inline std::map<const exported_memory*, memory_content> exported_contents;

inline constexpr std::uint64_t mixed_shared = (large + large + 100) * sizeof(float);

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

} // namespace test::sharing_constants

#endif
