#ifndef COACCEL_TEST_UNIT_DEVICE_DURABLE_FIXTURE_HPP
#define COACCEL_TEST_UNIT_DEVICE_DURABLE_FIXTURE_HPP

#include "device/durable_buffers.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

// Durable buffers without a device.
namespace test::durable {

using namespace coaccel;
using namespace coaccel::detail;
using scope = durable_buffers::scope;

inline constexpr std::uint32_t device_id = 7;
inline constexpr std::size_t n = 16;

/// A call without a device, which only keeps its result.
class call final : public durable_call {
public:
    explicit call(std::uint64_t count = n, std::shared_ptr<const std::byte> elements = nullptr)
        : durable_call(nullptr, count, dtype::f32, std::move(elements))
    {}
    ~call() { lease.made.ref = {}; }

    ref<float> made() const { return ref<float>::from_raw(lease.made.ref); }

    void post() override {}
    void destroy() noexcept override {}
};

/// A request of one op.
template <class Op>
class one final : public request {
public:
    explicit one(const Op& o) : op(o)
    {
        bound_ = {.info = &info_of<Op>(), .op = &op};
        ops = {&bound_, 1};
    }
    ~one() = default;

    void post() override {}
    void destroy() noexcept override {}

    Op op;

private:
    bound_op bound_;
};

using fill = memory::fill<float>;
using copy = memory::copy<float>;

/// A device reduced to its durable buffers and a context that does everything at once.
struct fixture {
    /// Does the next request, or refuses it. Returns its name; empty if there is none.
    std::string step(const error_code& ec = {}, scope what = scope::all)
    {
        load_part* const part = all.next(what);
        if (!part)
            return {};
        const bound_op& o = part->ops.front();
        const std::string name = o.info->name;
        if (!ec && o.info->role == op_role::allocate) {
            CHECK(o.as<allocate_op>().kind == memory_kind::exportable);
            give(o, o.as<allocate_op>().count, dtype::u8);
        } else if (!ec && o.info->id == info_of<export_op>().id) {
            CHECK(o.as<export_op>().access == access);
            const std::uint64_t bytes = o.as<export_op>().buffer.size();
            *o.as<export_op>().to =
                std::make_shared<const exported_memory>(exported_memory{unique_fd(), bytes, access});
        } else if (!ec && o.info->id == info_of<import_op>().id) {
            const auto wanted = o.as<import_op>().wanted();
            CHECK(wanted.access == access);
            give(o, wanted.count, wanted.type);
        } else if (!ec && o.info->id == info_of<write_op<std::uint8_t>>().id) {
            written += o.as<write_op<std::uint8_t>>().count;
        }
        const auto news = all.finished(*part, ec);
        release(news.unused);
        answered = news.call;
        error = news.error;
        unmapped = news.unmapped;
        return name;
    }

    void run()
    {
        while (!step().empty()) {
        }
    }

    /// Makes a buffer.
    ref<float> make(call& c)
    {
        all.add(c);
        run();
        REQUIRE(answered == &c);
        REQUIRE_FALSE(error);
        return c.made();
    }

    void release(const any_ref& r)
    {
        if (r.device != 0 && r.generation == generation)
            CHECK(live.erase(r.slot) == 1);
    }

    void lose(loss_cause cause)
    {
        all.context_lost(cause);
        ++generation;
        live.clear();
    }

    /// For which the buffers are exported.
    memory_access access = memory_access::read_write;
    /// The bytes of contents that were uploaded.
    std::uint64_t written = 0;
    durable_buffers all{device_id};
    std::uint32_t generation = 1;
    std::set<std::uint32_t> live;
    durable_call* answered = nullptr;
    error_code error, unmapped;

private:
    void give(const bound_op& o, std::uint64_t count, dtype type)
    {
        static_cast<allocation*>(o.reply)->ref = {
            .device = device_id, .generation = generation, .slot = ++last_, .version = 1, .size = count, .type = type};
        live.insert(last_);
    }

    std::uint32_t last_ = 0;
};

} // namespace test::durable

#endif
