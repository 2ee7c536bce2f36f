#include "worker/parent/context_end.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

namespace test_worker_context_end {

namespace {

using namespace coaccel;
using coaccel::worker::context_end;
using process = context_end::process;

constexpr auto both = {false, true};
constexpr auto by_fault = detail::loss_cause::fault;

} // namespace

TEST_SUITE_BEGIN("context_end");

TEST_CASE("a context that has not begun to end has no reason")
{
    const context_end end;
    CHECK_FALSE(end.dying());
    CHECK_FALSE(end.dead());
    CHECK_FALSE(end.reason());
}

TEST_CASE("only the first end counts, and its worker is ended once")
{
    context_end end;
    CHECK(end.begin(errc::worker_hung, process::own, by_fault));
    CHECK(end.dying());
    CHECK_FALSE(end.dead());
    CHECK_FALSE(end.begin(errc::worker_corrupted, process::own, by_fault));
    // The second end does not make it a worker that sent invalid data.
    CHECK_FALSE(end.must_wait({.worker = true}, process::own));
    end.finish();
    CHECK(end.dying());
    CHECK(end.dead());
    CHECK_FALSE(end.begin(errc::worker_hung, process::own, by_fault));
}

TEST_CASE("the first reason counts, whether it is given before or after the end begins")
{
    context_end before;
    before.explain(errc::device_lost);
    CHECK(before.begin(errc::context_lost, process::own, by_fault));
    before.explain(errc::worker_exited);
    CHECK(before.reason() == errc::device_lost);

    context_end after;
    CHECK(after.begin({}, process::own, by_fault));
    CHECK_FALSE(after.reason());
    after.explain(errc::worker_exited);
    after.explain(errc::worker_killed);
    CHECK(after.reason() == errc::worker_exited);
}

TEST_CASE("a forked child loses its context without ending the worker")
{
    context_end end;
    end.explain(errc::worker_hung);
    CHECK_FALSE(end.begin(errc::worker_corrupted, process::forked_child, by_fault));
    CHECK(end.dying());
    CHECK(end.reason() == errc::context_lost);
}

TEST_CASE("requests fail when nothing can write to their memory any more")
{
    for (const auto why : {errc{}, errc::worker_hung, errc::worker_corrupted})
        for (const bool copying : both)
            for (const bool into_shared : both)
                for (const bool worker : both)
                    for (const auto where : {process::own, process::forked_child}) {
                        CAPTURE(static_cast<int>(why));
                        CAPTURE(copying);
                        CAPTURE(into_shared);
                        CAPTURE(worker);
                        context_end end;
                        CHECK(end.begin(why, process::own, by_fault));
                        bool expected = false;
                        if (where == process::own) {
                            if (copying)
                                expected = true;
                            if (worker && (into_shared || why == errc::worker_corrupted))
                                expected = true;
                        }
                        CHECK(end.must_wait({copying, into_shared, worker}, where) == expected);
                    }
}

TEST_CASE("a dropped context is dead at once")
{
    context_end end;
    end.finish();
    CHECK(end.dying());
    CHECK(end.dead());
}

TEST_SUITE_END();

} // namespace test_worker_context_end
