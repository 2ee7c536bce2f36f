#include "device/turn_completions.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <deque>
#include <string>

namespace test_device_turn_completions {

namespace {

using namespace coaccel;
using namespace coaccel::detail;

/// Writes to a list what happens to it.
struct op final : async_op_base {
    op(std::string& out, char n, const asio::execution_context* where) noexcept : log(out), name(n), home(where) {}
    void post() override { (log += 'p') += name; }
    bool resumes_on(const asio::execution_context* c) const noexcept override { return c && c == home; }
    void resume() override { (log += 'r') += name; }
    void destroy() noexcept override { (log += 'd') += name; }

    std::string& log;
    char name;
    const asio::execution_context* home;
};

struct fixture {
    void complete(char name, const asio::execution_context* where)
    {
        completions.add(ops.emplace_back(log, name, where));
    }

    auto post()
    {
        return [this] { log += '!'; };
    }

    std::string take() { return std::exchange(log, {}); }

    asio::io_context here, elsewhere;
    std::string log;
    std::deque<op> ops;
    turn_completions completions{&here};
};

} // namespace

TEST_SUITE_BEGIN("turn_completions");

TEST_CASE_FIXTURE(fixture, "a turn of the executor calls the handlers of its own context, and posts the others")
{
    CHECK(completions.empty());
    complete('a', &here);
    complete('b', &elsewhere);
    complete('c', &here);
    complete('d', nullptr);
    CHECK_FALSE(completions.empty());
    CHECK(log.empty());
    const auto mine = completions.end_turn(turn_caller::executor, post());
    CHECK(completions.empty());
    // A runner is posted for the second handler, which another thread may call.
    CHECK(take() == "!pbpd");
    completions.run(mine, post());
    CHECK(take() == "rarc");
}

TEST_CASE_FIXTURE(fixture, "a turn of an initiator calls no handler")
{
    complete('a', &here);
    complete('b', &here);
    complete('c', &elsewhere);
    const auto mine = completions.end_turn(turn_caller::initiator, post());
    CHECK_FALSE(mine.first);
    CHECK_FALSE(mine.more);
    CHECK(take() == "!pc");
    // While a handler runs, another runner is posted for the rest.
    completions.run_posted(post());
    CHECK(take() == "!rarb");
}

TEST_CASE_FIXTURE(fixture, "handlers of a later turn follow those of an earlier one")
{
    complete('a', &here);
    (void)completions.end_turn(turn_caller::initiator, post());
    CHECK(take() == "!");
    complete('b', &here);
    const auto mine = completions.end_turn(turn_caller::executor, post());
    CHECK_FALSE(mine.first);
    completions.run(mine, post());
    CHECK(take() == "rarb");
}

TEST_CASE_FIXTURE(fixture, "a turn without completions has nothing to run")
{
    const auto mine = completions.end_turn(turn_caller::executor, post());
    CHECK_FALSE(mine.first);
    CHECK_FALSE(mine.more);
    completions.run(mine, post());
    CHECK(take().empty());
}

TEST_CASE("without an execution context every handler is posted")
{
    std::string log;
    op a(log, 'a', nullptr);
    turn_completions completions(nullptr);
    completions.add(a);
    (void)completions.end_turn(turn_caller::executor, [&] { log += '!'; });
    CHECK(log == "pa");
}

TEST_CASE_FIXTURE(fixture, "completions of this turn and of earlier turns can be taken")
{
    complete('a', &here);
    complete('b', &here);
    (void)completions.end_turn(turn_caller::initiator, post());
    (void)take();
    complete('c', &elsewhere);
    {
        async_op_list out;
        completions.take_all(out);
    }
    CHECK(take() == "dcdadb");
    CHECK(completions.empty());
}

TEST_SUITE_END();

} // namespace test_device_turn_completions
