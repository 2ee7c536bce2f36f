#include "worker/parent/split_runs.hpp"

#include "large_run.hpp"

#include <coaccel/ops/memory.hpp>

#include <doctest/doctest.h>

namespace test_worker_split_runs {

namespace {

using namespace coaccel;
using namespace coaccel::worker;
using detail::request;
using test::large_run;

struct fixture {
    std::vector<request*> start(request& r)
    {
        std::vector<request*> parts;
        runs.start(r, [&](request& p) { parts.push_back(&p); });
        return parts;
    }

    split_runs runs;
};

} // namespace

TEST_SUITE_BEGIN("split_runs");

TEST_CASE("a run with copies has one part for each op, in order, with the options of the request")
{
    fixture f;
    large_run r(2, 1);
    r.options.priority = priority::high;
    CHECK(split_runs::has_copies(r));
    const auto parts = f.start(r);
    REQUIRE(parts.size() == 4);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        REQUIRE(parts[i]->ops.size() == 1);
        CHECK(&parts[i]->ops[0] == &r.ops[i]);
        CHECK(parts[i]->options.priority == priority::high);
        CHECK(f.runs.is_part(*parts[i]));
        CHECK(&f.runs.whole(*parts[i]) == &r);
        CHECK_FALSE(f.runs.failure(*parts[i]));
    }
    CHECK_FALSE(f.runs.is_part(r));
    CHECK(&f.runs.whole(r) == &r);
    CHECK_FALSE(f.runs.failure(r));
    // In any order.
    CHECK_FALSE(f.runs.ended(*parts[2], {}));
    CHECK_FALSE(f.runs.ended(*parts[0], {}));
    CHECK_FALSE(f.runs.ended(*parts[3], {}));
    CHECK_FALSE(f.runs.empty());
    const auto last = f.runs.ended(*parts[1], {});
    REQUIRE(last);
    CHECK(last->who == &r);
    CHECK_FALSE(last->ec);
    CHECK(f.runs.empty());
}

TEST_CASE("the request ends with the first error, which the later parts see")
{
    fixture f;
    large_run r(1, 1), other(1, 0);
    const auto parts = f.start(r), others = f.start(other);
    CHECK_FALSE(f.runs.ended(*parts[0], errc::out_of_memory));
    CHECK(f.runs.failure(*parts[1]) == errc::out_of_memory);
    CHECK_FALSE(f.runs.failure(*others[0]));
    CHECK_FALSE(f.runs.ended(*parts[1], errc::backend_error));
    const auto last = f.runs.ended(*parts[2], {});
    REQUIRE(last);
    CHECK(last->ec == errc::out_of_memory);
    CHECK_FALSE(f.runs.empty());
}

TEST_CASE("parts may end while they are started")
{
    fixture f;
    large_run r(2, 2);
    std::optional<split_runs::result> last;
    int n = 0;
    f.runs.start(r, [&](request& p) {
        ++n;
        CHECK_FALSE(last);
        last = f.runs.ended(p, {});
    });
    CHECK(n == 5);
    REQUIRE(last);
    CHECK(last->who == &r);
    CHECK(f.runs.empty());
}

TEST_CASE("all requests are taken once, whatever has ended")
{
    fixture f;
    large_run a(1, 1), b(2, 0);
    const auto parts = f.start(a);
    (void)f.start(b);
    CHECK_FALSE(f.runs.ended(*parts[0], {}));
    std::vector<request*> taken;
    f.runs.take_all([&](request& r) { taken.push_back(&r); });
    CHECK(taken == std::vector<request*>{&a, &b});
    CHECK(f.runs.empty());
}

TEST_CASE("only writes before a run and reads after it are accepted")
{
    large_run good(2, 2), alone(0, 0);
    CHECK_FALSE(split_runs::check(good));
    CHECK_FALSE(split_runs::check(alone));
    CHECK_FALSE(split_runs::has_copies(alone));
    std::swap(good.ops[0], good.ops[4]);
    CHECK(split_runs::check(good) == errc::invalid_argument);
    large_run twice(1, 0);
    twice.ops[0] = twice.ops[1];
    CHECK(split_runs::check(twice) == errc::invalid_argument);
    large_run no_run(1, 1);
    no_run.ops = no_run.ops.first(1);
    CHECK_FALSE(split_runs::check(no_run));
    CHECK_FALSE(split_runs::has_copies(no_run));
}

TEST_SUITE_END();

} // namespace test_worker_split_runs
