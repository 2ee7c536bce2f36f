#include "inventory.hpp"
#include "isolated.hpp"
#include "ready_workers.hpp"
#include "shared_mappings.hpp"
#include "support/sanitized.hpp"

#include <coaccel/device/load_progress.hpp>
#include <coaccel/ops/plugin.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sys/resource.h>

namespace test_integration_shared_constants {

// Constants of plans that exist once, however many workers use them.
namespace {

using namespace coaccel;
using namespace std::chrono_literals;
using test::held;
using test::mappings;
using test::numbers;

constexpr std::size_t n = 8;
constexpr std::size_t mib = std::size_t(1) << 20;
/// More than the staging area, so that it is filled in pieces.
constexpr std::size_t large = 40 * mib / sizeof(float);

std::shared_ptr<const std::vector<float>> weights(float value, std::size_t count = large)
{
    return std::make_shared<const std::vector<float>>(count, value);
}

/// y = x + the last elements of w
plan_description adding_plan(const std::shared_ptr<const std::vector<float>>& w)
{
    plan_builder b("adding");
    const auto c = b.constant<float>(std::span<const float>(*w), w);
    const auto x = b.input<float>(n);
    const auto y = b.output<float>(n);
    b.add(memory::copy<float>{x, y});
    b.add(blas::axpy<float>{.x = c.subspan(w->size() - n, n), .y = y, .n = n, .alpha = 1});
    return b.finish().value();
}

device_options options(int standby = 1)
{
    auto o = test::isolated_options();
    o.standby = standby;
    o.restart.initial_backoff = o.restart.max_backoff = 1ms;
    return o;
}

/// The messages of the library.
class sink {
public:
    sink()
    {
        set_log_sink(log_level::warning,
                     [lines = lines_](log_level, std::string_view line) { lines->emplace_back(line); });
    }
    sink(const sink&) = delete;
    sink& operator=(const sink&) = delete;
    ~sink() { set_log_sink(log_level::warning, {}); }

    bool has(const std::string& text) const
    {
        (void)flush_log();
        return std::ranges::any_of(*lines_,
                                   [&](const std::string& line) { return line.find(text) != std::string::npos; });
    }

private:
    std::shared_ptr<std::vector<std::string>> lines_ = std::make_shared<std::vector<std::string>>();
};

struct fixture : test::isolated_fixture {
    explicit fixture(const device_options& o = options()) : isolated_fixture(o) {}

    device_stats stats() { return test::await(io, gpu.async_stats()).value(); }

    plan load(const plan_description& d, plan_options how = {})
    {
        auto made = test::await(io, gpu.async_load(d, how));
        REQUIRE_MESSAGE(made, made.error().message());
        return std::move(made).value();
    }

    void wait_for_plans(std::uint64_t count)
    {
        test::run_until(io, [&] { return stats().standby_plans == count; });
    }

    int standby()
    {
        const auto all = test::ready_besides(process());
        REQUIRE(all.size() == 1);
        return all.front();
    }

    void check_run(const plan& p, float added)
    {
        const auto x = numbers(n);
        std::vector<float> y(n), right = x;
        for (float& v : right)
            v += added;
        const auto ended = test::await(io, p.with(exec_options{.retry = retry::idempotent}).async_run(from(x), to(y)));
        REQUIRE_MESSAGE(ended, ended.error().message());
        CHECK(y == right);
    }

    /// Kills the worker and its standbys at once.
    void kill_all()
    {
        const int first = process();
        for (const int other : test::ready_besides(first))
            REQUIRE(::kill(other, SIGKILL) == 0);
        REQUIRE(::kill(first, SIGKILL) == 0);
    }
};

} // namespace

TEST_SUITE_BEGIN("isolated shared constants");

TEST_CASE("a standby maps the constants that the first worker has filled")
{
    fixture f;
    const plan p = f.load(adding_plan(weights(3)));
    f.check_run(p, 3);
    CHECK(held() == 1);
    f.wait_for_plans(1);
    const auto first = mappings::of(f.process()), second = mappings::of(f.standby());
    CHECK(first.read_only == 1);
    CHECK(first.writable == 0);
    CHECK(second.read_only == 1);
    CHECK(second.writable == 0);
    // The same memory.
    CHECK(first.inodes == second.inodes);
    CHECK(mappings::of(::getpid()).inodes.empty());
    for (const generation g : {generation(2), generation(3), generation(4)}) {
        CAPTURE(g);
        f.wait_for_plans(1);
        f.send(SIGKILL);
        f.wait_for_generation(g);
        f.check_run(p, 3);
        CHECK(mappings::of(f.process()).inodes == first.inodes);
        CHECK(held() == 1);
    }
}

TEST_CASE("without a standby the next worker maps them too")
{
    fixture f(options(0));
    const plan p = f.load(adding_plan(weights(4)));
    const auto first = mappings::of(f.process());
    for (int i = 0; i < 5; ++i) {
        f.send(SIGKILL);
        f.check_run(p, 4);
        const auto next = mappings::of(f.process());
        CHECK(next.inodes == first.inodes);
        CHECK(next.writable == 0);
    }
}

TEST_CASE("small constants are uploaded to every worker")
{
    fixture f(options(0));
    const plan p = f.load(adding_plan(weights(5, 2 * mib / sizeof(float) - 1)));
    f.check_run(p, 5);
    CHECK(held() == 0);
    CHECK(mappings::of(f.process()).inodes.empty());
    const plan q = f.load(adding_plan(weights(6, 2 * mib / sizeof(float))));
    f.check_run(q, 6);
    CHECK(held() == 1);
    CHECK(f.stats().memory.shared == 2 * mib);
}

TEST_CASE("small constants that are large together are in one memory, which all workers map")
{
    fixture f;
    constexpr std::size_t each = mib / sizeof(float) - 3;
    plan_builder b("small");
    const auto x = b.input<float>(n);
    const auto y = b.output<float>(n);
    b.add(memory::copy<float>{x, y});
    for (const float value : {1.0f, 2.0f, 4.0f, 2.0f}) {
        const auto c = b.constant<float>(std::vector<float>(each, value));
        b.add(blas::axpy<float>{.x = c.subspan(each - n, n), .y = y, .n = n, .alpha = 1});
    }
    const plan p = f.load(b.finish().value());
    f.check_run(p, 9);
    CHECK(held() == 1);
    f.wait_for_plans(1);
    const auto first = mappings::of(f.process());
    CHECK(first.read_only == 1);
    CHECK(mappings::of(f.standby()).inodes == first.inodes);
    CHECK(f.stats().memory.shared == 3 * mib);
    f.kill_all();
    f.check_run(p, 9);
    CHECK(mappings::of(f.process()).inodes == first.inodes);
}

TEST_CASE("the memory is counted once, in the statistics of the device")
{
    fixture f;
    const auto empty = f.stats().memory;
    CHECK(empty.shared == 0);
    const plan p = f.load(adding_plan(weights(3)));
    f.wait_for_plans(1);
    const auto one = f.stats().memory;
    CHECK(one.shared == large * sizeof(float));
    CHECK(one.used >= one.shared);
    CHECK(one.used < one.shared + mib);
    CHECK(one.high_water >= one.used);
    CHECK(one.high_water < one.shared + mib);
    CHECK(one.reserved >= one.used);
    f.send(SIGKILL);
    f.wait_for_generation(2);
    f.wait_for_plans(1);
    const auto two = f.stats().memory;
    CHECK(two.shared == one.shared);
    CHECK(two.used == one.used);
    // Another plan with the same constant.
    const plan q = f.load(adding_plan(weights(3)));
    f.check_run(q, 3);
    CHECK(f.stats().memory.shared == one.shared);
}

TEST_CASE("a worker that is killed while it fills constants is followed by one that fills them anew")
{
    fixture f(options(0));
    // Long enough to be found in the middle.
    const auto w = weights(7, 256 * mib / sizeof(float));
    load_progress progress;
    std::optional<result<plan>> made;
    f.gpu.async_load(adding_plan(w), {.progress = &progress},
                     [&](error_code ec, plan p) { made = ec ? result<plan>(ec) : result<plan>(std::move(p)); });
    const int first = f.process();
    test::run_until(f.io, [&] { return progress.bytes() > 0; });
    CHECK(mappings::of(first).writable == 1);
    CHECK(held() == 0);
    REQUIRE(::kill(first, SIGKILL) == 0);
    test::run_until(f.io, [&] { return made.has_value(); });
    REQUIRE_MESSAGE(*made, made->error().message());
    CHECK(progress.bytes() == progress.total_bytes());
    CHECK(f.process() != first);
    f.check_run(made->value(), 7);
    CHECK(held() == 1);
    const auto found = mappings::of(f.process());
    CHECK(found.read_only == 1);
    CHECK(found.writable == 0);
}

TEST_CASE("constants outlive all workers")
{
    fixture f;
    const plan p = f.load(adding_plan(weights(8)));
    f.wait_for_plans(1);
    const auto before = mappings::of(f.process());
    for (int i = 0; i < 5; ++i) {
        f.kill_all();
        f.check_run(p, 8);
        f.wait_for_plans(1);
        CHECK(mappings::of(f.process()).inodes == before.inodes);
        CHECK(mappings::of(f.standby()).inodes == before.inodes);
        CHECK(held() == 1);
    }
}

TEST_CASE("a stray write to a constant ends the worker, and changes nothing")
{
    auto o = options();
    o.plugin = COACCEL_TEST_STRAY_WRITES;
    fixture f(o);
    const auto w = weights(9);
    plan_builder b("scribbling");
    const auto c = b.constant<float>(std::span<const float>(*w), w);
    const auto x = b.input<float>(n);
    const auto y = b.output<float>(n);
    b.add(plugin::call("copy_or_scribble", in(x), in(c), out(y)));
    const plan p = f.load(b.finish().value());
    f.check_run(p, 9);
    const std::vector<float> bad(n, -1);
    std::vector<float> result(n);
    // In the worker that has filled the constant, and in those that have mapped it.
    for (const generation g : {generation(2), generation(3), generation(4)}) {
        CAPTURE(g);
        f.wait_for_plans(1);
        const auto ended = test::await(f.io, p.async_run(from(bad), to(result)));
        REQUIRE_FALSE(ended);
        CHECK(ended.error() == errc::context_lost);
        f.wait_for_generation(g);
        f.check_run(p, 9);
    }
    CHECK(f.stats().memory.shared == large * sizeof(float));
}

TEST_CASE("an unloaded plan frees its constants, also when its handle stays and when no worker is left")
{
    {
        const fixture once;
    }
    const auto before = test::inventory::take();
    {
        fixture f;
        plan p = f.load(adding_plan(weights(3)));
        plan q = f.load(adding_plan(weights(4)));
        plan r = f.load(adding_plan(weights(3)));
        f.wait_for_plans(3);
        CHECK(held() == 2);
        REQUIRE(test::await(f.io, q.async_unload()));
        CHECK(held() == 1);
        f.wait_for_plans(2);
        test::run_until(f.io, [&] { return mappings::of(f.process()).read_only == 1; });
        test::run_until(f.io, [&] { return mappings::of(f.standby()).read_only == 1; });
        REQUIRE(test::await(f.io, p.async_unload()));
        CHECK(held() == 1);
        f.check_run(r, 3);
        f.kill_all();
        REQUIRE(test::await(f.io, r.async_unload()));
        CHECK(held() == 0);
        test::run_until(f.io, [&] { return f.stats().memory.shared == 0; });
    }
    CHECK(test::inventory::take_expecting(before) == before);
    CHECK(test::childless());
}

TEST_CASE("a failed device keeps the constants of its plans until they are unloaded")
{
    auto o = options(0);
    o.restart.max_restarts = 0;
    fixture f(o);
    plan p = f.load(adding_plan(weights(3)));
    plan q = f.load(adding_plan(weights(4)));
    f.send(SIGKILL);
    test::run_until(f.io, [&] { return f.gpu.status().state == device_state::failed; });
    CHECK(held() == 2);
    CHECK(f.stats().memory.shared == 2 * large * sizeof(float));
    REQUIRE(test::await(f.io, p.async_unload()));
    CHECK(held() == 1);
    CHECK(f.stats().memory.shared == large * sizeof(float));
    REQUIRE(test::await(f.io, f.gpu.async_revive()));
    f.check_run(q, 4);
}

TEST_CASE("a device that ends frees the constants of its plans, although their handles exist")
{
    {
        const fixture once;
    }
    const auto before = test::inventory::take();
    plan kept;
    {
        fixture f;
        kept = f.load(adding_plan(weights(3)));
        REQUIRE(test::await(f.io, f.gpu.async_shutdown(shutdown::drain)));
        CHECK(held() == 0);
        kept = {};
    }
    CHECK(test::inventory::take_expecting(before) == before);
}

TEST_CASE("a process without free descriptors has its constants in each worker" * doctest::skip(test::checks_objects))
{
    fixture f(options(0));
    const sink log;
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    rlimit none = limit;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    auto made = test::await(f.io, f.gpu.async_load(adding_plan(weights(3))));
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    REQUIRE_MESSAGE(made, made.error().message());
    const plan p = std::move(made).value();
    f.check_run(p, 3);
    CHECK(held() == 0);
    CHECK(f.stats().memory.shared == 0);
    CHECK(log.has("a constant is not shared between workers: a descriptor cannot be received"));
    // The next worker can pass its memory on.
    f.send(SIGKILL);
    f.check_run(p, 3);
    CHECK(held() == 1);
}

TEST_CASE("a limit of memory holds for shared constants")
{
    auto o = options(0);
    o.host.memory_limit = 50 * mib;
    fixture f(o);
    const plan p = f.load(adding_plan(weights(3)));
    CHECK(errc_of(test::await(f.io, f.gpu.async_load(adding_plan(weights(4)))).error()) == errc::out_of_memory);
    CHECK(held() == 1);
    f.send(SIGKILL);
    f.check_run(p, 3);
    CHECK(errc_of(test::await(f.io, f.gpu.async_load(adding_plan(weights(4)))).error()) == errc::out_of_memory);
    const auto m = f.stats().memory;
    CHECK(m.total == 50 * mib);
    CHECK(m.used + m.free == m.total);
}

TEST_SUITE_END();

} // namespace test_integration_shared_constants
