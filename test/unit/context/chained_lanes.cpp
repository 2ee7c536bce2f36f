#include "context/engine.hpp"
#include "host/backend.hpp"
#include "support/context_driver.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/ops/rand.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace test_context_chained_lanes {

// The lanes that the engine selects with lane_policy::chained.
namespace {

using namespace coaccel;
using test::context_driver;
using test::exec;

/// What the engine does with its streams.
struct recording {
    /// The stream of each op that was enqueued, in order.
    std::vector<const void*> lanes;
    int waits = 0;
    int queries = 0;
    /// The next query finds its event pending.
    bool late = false;
    int entries = 0;
};

/// The host backend, which also records the streams. All ops end at once, but the engine sees it only in a turn.
class recording_backend : public host::backend {
public:
    struct options : host::backend::options {
        options(const host_options& o, recording& r) : host::backend::options(o), seen(&r) {}

        recording* seen;
    };

    explicit recording_backend(const options& o) : host::backend(o), seen_(*o.seen) {}

    static result<std::unique_ptr<recording_backend>> create(const options& o)
    {
        return std::make_unique<recording_backend>(o);
    }

    error_code wait(stream& s, event& e)
    {
        ++seen_.waits;
        return host::backend::wait(s, e);
    }

    result<progress> query(event& e) noexcept
    {
        ++seen_.queries;
        return std::exchange(seen_.late, false) ? progress::pending : host::backend::query(e);
    }

    scope enter() noexcept
    {
        ++seen_.entries;
        return {};
    }

    error_code enqueue(stream& s, bound_op& op)
    {
        seen_.lanes.push_back(&s);
        return host::backend::enqueue(s, op);
    }

private:
    recording& seen_;
};

class recording_world final : public test::context_world {
public:
    detail::context_factory factory() override
    {
        host_options o;
        o.mode = host_mode::inline_;
        return [this, o](detail::context_identity identity, detail::context_events& events,
                         const context_options& how) -> result<std::unique_ptr<detail::context>> {
            BOOST_OUTCOME_TRY(auto made, recording_backend::create({o, seen}));
            return std::make_unique<detail::engine<recording_backend>>(std::move(made), identity, events, how);
        };
    }

    void poison() override {}
    bool can_poison() const noexcept override { return false; }

    recording seen;
};

/// A context whose requests remain in flight until finish(), because it gets no turn before.
class fixture {
public:
    static constexpr int lane_count = 4;

    explicit fixture(lane_policy lanes = lane_policy::chained(lane_count))
    {
        world_.context.lanes = lanes;
        driver.emplace(world_);
    }

    ref<float> make() { return driver->floats(8); }

    /// A buffer whose allocation and first write have completed.
    ref<float> written()
    {
        const auto x = make();
        fill(x);
        finish();
        return x;
    }

    /// Starts an op and returns its lane: the number of lanes that were used before it was.
    template <class Op>
    std::size_t start(const Op& op, const exec_options& how = {})
    {
        requests_.push_back(std::make_shared<exec<Op>>(op, how));
        const auto before = world_.seen.lanes.size();
        waits_before_ = world_.seen.waits;
        driver->submit(*requests_.back());
        REQUIRE(world_.seen.lanes.size() == before + 1);
        return number_of(world_.seen.lanes.back());
    }

    std::size_t fill(const ref<float>& x, const exec_options& how = {})
    {
        return start(memory::fill<float>{.dst = x, .value = 1}, how);
    }

    std::size_t copy(const ref<float>& from, const ref<float>& to, const exec_options& how = {})
    {
        return start(memory::copy<float>{.src = from, .dst = to}, how);
    }

    /// The event waits that the last op needed.
    int waits() const { return world_.seen.waits - waits_before_; }

    /// One turn; returns how many requests have ended so far.
    std::size_t turn()
    {
        (void)driver->context->turn(context_driver::clock::now());
        return driver->ended.size();
    }

    recording& seen() noexcept { return world_.seen; }

    void finish()
    {
        driver->run_until([this] { return driver->ended.size() == requests_.size(); });
        for (const auto& r : requests_)
            CHECK_FALSE(driver->outcome(*r));
        driver->ended.clear();
        requests_.clear();
    }

private:
    std::size_t number_of(const void* lane)
    {
        const auto found = std::ranges::find(known_, lane);
        const auto number = static_cast<std::size_t>(found - known_.begin());
        if (found == known_.end())
            known_.push_back(lane);
        return number;
    }

    recording_world world_;
    std::vector<std::shared_ptr<detail::request>> requests_;
    std::vector<const void*> known_;
    int waits_before_ = 0;

public:
    std::optional<context_driver> driver;
};

TEST_SUITE_BEGIN("chained lanes");

TEST_CASE_FIXTURE(fixture, "64 readers of one weight buffer use all lanes equally")
{
    const auto weights = written();
    std::vector<ref<float>> outputs;
    for (int i = 0; i < 64; ++i)
        outputs.push_back(written());
    std::multiset<std::size_t> used;
    for (const auto& out : outputs) {
        used.insert(copy(weights, out));
        CHECK(waits() == 0);
    }
    for (std::size_t lane = 0; lane < lane_count; ++lane)
        CHECK(used.count(lane) == 64 / lane_count);
    finish();
}

TEST_CASE_FIXTURE(fixture, "64 readers of one unfinished write use all lanes, and each other lane waits for it once")
{
    const auto shared = written();
    std::vector<ref<float>> outputs;
    for (int i = 0; i < 64; ++i)
        outputs.push_back(written());
    const auto writer = fill(shared);
    std::multiset<std::size_t> used;
    int all_waits = 0;
    for (const auto& out : outputs) {
        used.insert(copy(shared, out));
        all_waits += waits();
    }
    CHECK(all_waits == lane_count - 1);
    for (std::size_t lane = 0; lane < lane_count; ++lane) {
        CAPTURE(lane);
        CHECK(used.count(lane) >= 64 / lane_count - 1);
        CHECK(used.count(lane) <= 64 / lane_count + (lane == writer ? 0 : 1));
    }
    finish();
}

TEST_CASE_FIXTURE(fixture, "the ops of one hot buffer stay on one lane, without waits")
{
    const auto hot = written();
    const auto other = written();
    std::vector<ref<float>> outputs;
    for (int i = 0; i < 30; ++i)
        outputs.push_back(written());
    const auto lane = fill(hot);
    for (const auto& out : outputs) {
        CHECK(fill(hot) == lane);
        CHECK(waits() == 0);
        CHECK(fill(hot) == lane);
        CHECK(copy(other, out) != lane);
    }
    finish();
}

TEST_CASE_FIXTURE(fixture, "independent chains have a lane each")
{
    std::vector<ref<float>> x;
    for (int i = 0; i < lane_count; ++i)
        x.push_back(written());
    std::vector<std::size_t> lanes;
    for (const auto& r : x)
        lanes.push_back(fill(r));
    CHECK(std::set<std::size_t>(lanes.begin(), lanes.end()).size() == lane_count);
    for (int round = 0; round < 5; ++round)
        for (std::size_t i = 0; i < x.size(); ++i) {
            CHECK(fill(x[i]) == lanes[i]);
            CHECK(waits() == 0);
        }
    finish();
}

TEST_CASE_FIXTURE(fixture, "fan-in: an op goes to the least loaded lane of its predecessors and waits for the others")
{
    const auto a = written();
    const auto b = written();
    const auto c = written();
    const auto busy = fill(a);
    fill(a);
    fill(a);
    const auto quiet = fill(b);
    CHECK(busy != quiet);
    // Both writers are the last ops of their lanes; two other lanes are idle.
    CHECK(copy(a, b) == quiet);
    CHECK(waits() == 1);
    // The wait covers the earlier ops, so the next one needs none.
    CHECK(copy(a, b) == quiet);
    CHECK(waits() == 0);
    // A writer has all unfinished readers as predecessors.
    const auto d = written();
    const auto e = written();
    fill(c);
    std::set<std::size_t> readers{copy(c, d), copy(c, e)};
    CHECK(readers.size() == 2);
    CHECK(readers.contains(fill(c)));
    CHECK(waits() == 1);
    finish();
}

TEST_CASE_FIXTURE(fixture, "fan-out: one op continues on the lane, the others go elsewhere with one wait each")
{
    const auto a = written();
    const auto b = written();
    const auto c = written();
    const auto d = written();
    const auto lane = fill(a);
    CHECK(copy(a, b) == lane);
    CHECK(waits() == 0);
    const auto second = copy(a, c);
    CHECK(second != lane);
    CHECK(waits() == 1);
    const auto third = copy(a, d);
    CHECK(third != lane);
    CHECK(third != second);
    CHECK(waits() == 1);
    // Each branch goes on where it is.
    CHECK(fill(b) == lane);
    CHECK(fill(c) == second);
    CHECK(fill(d) == third);
    finish();
}

TEST_CASE_FIXTURE(fixture, "ops that are awaited one after another use one lane")
{
    const auto x = written();
    const auto y = written();
    std::set<std::size_t> lanes;
    for (int i = 0; i < 2 * lane_count; ++i) {
        lanes.insert(fill(i % 2 == 0 ? x : y));
        CHECK(waits() == 0);
        finish();
    }
    CHECK(lanes.size() == 1);
}

TEST_CASE_FIXTURE(fixture, "ops with the same state stay on one lane")
{
    const auto g = rand::make_generator({});
    const auto other = rand::make_generator({});
    const auto x = written();
    const auto y = written();
    const auto z = written();
    const auto lane = start(rand::uniform<float>{.dst = x, .from = g});
    CHECK(start(rand::uniform<float>{.dst = y, .from = g}) == lane);
    CHECK(start(rand::uniform<float>{.dst = z, .from = other}) != lane);
    finish();
}

TEST_CASE_FIXTURE(fixture, "predecessors on lanes of the caller or of another priority give no preference")
{
    for (const exec_options& elsewhere : {exec_options{.lane = 2}, exec_options{.priority = priority::high}}) {
        const auto x = written();
        const auto first = fill(x, elsewhere);
        const auto second = fill(x);
        CHECK(second != first);
        CHECK(waits() == 1);
        CHECK(fill(x) == second);
        // Back to the lane of the caller, or to one of that priority.
        const auto third = fill(x, elsewhere);
        CHECK(third != second);
        CHECK(waits() == 1);
        finish();
    }
}

TEST_CASE_FIXTURE(fixture, "an op on a part follows the unfinished ops on that part")
{
    const auto x = written();
    const auto lower = fill(x.subspan(0, 4));
    const auto upper = fill(x.subspan(4, 4));
    CHECK(lower != upper);
    CHECK(fill(x.subspan(0, 4)) == lower);
    CHECK(fill(x.subspan(4, 4)) == upper);
    finish();
}

TEST_CASE_FIXTURE(fixture, "ops that ended on several lanes are found with one query for each lane")
{
    const std::vector<ref<float>> data{written(), written(), written(), written()};
    for (const auto& x : data)
        fill(x);
    seen().queries = 0;
    CHECK(turn() == 4);
    CHECK(seen().queries == 4);
    finish();
}

TEST_CASE_FIXTURE(fixture, "an op ends no earlier than one on another lane for which it waited")
{
    const auto a = written();
    const auto b = written();
    fill(a, {.lane = 0});
    copy(a, b, {.lane = 1});
    CHECK(waits() == 1);
    // As if the first op ended after its lane was checked, and before the lane of the second.
    seen().late = true;
    CHECK(turn() == 2);
    finish();
}

TEST_CASE_FIXTURE(fixture, "calls inside a scope enter the backend once")
{
    const auto a = written();
    seen().entries = 0;
    {
        const detail::context::scope here(*driver->context);
        fill(a);
        fill(a);
        CHECK(turn() == 2);
        CHECK(seen().entries == 1);
    }
    fill(a);
    CHECK(seen().entries == 2);
    finish();
}

TEST_CASE("a bad lane or priority is refused before anything is allocated")
{
    for (const auto policy : {lane_policy::chained(4), lane_policy::per_library(), lane_policy::pooled(2)}) {
        fixture f(policy);
        for (const exec_options& bad : {exec_options{.lane = 4}, exec_options{.priority = static_cast<priority>(3)}}) {
            test::allocate_request r(16);
            r.options = bad;
            CHECK(f.driver->outcome_of(r) == errc::invalid_argument);
            CHECK(f.driver->context->live_buffers() == 0);
            exec<memory::fill<float>> on_stale(memory::fill<float>{.dst = {}, .value = 1}, bad);
            f.driver->submit(on_stale);
            CHECK(f.driver->outcome(on_stale) == errc::invalid_argument);
            f.driver->ended.clear();
        }
    }
}

TEST_CASE("one chained lane orders everything without waits")
{
    fixture f(lane_policy::chained(1));
    const auto x = f.written();
    const auto y = f.written();
    const auto lane = f.fill(x);
    CHECK(f.fill(y) == lane);
    CHECK(f.copy(x, y) == lane);
    CHECK(f.waits() == 0);
    f.finish();
}

TEST_SUITE_END();

} // namespace

} // namespace test_context_chained_lanes
