#include "host/op_table.hpp"

#include "support/every_op.hpp"

#include <doctest/doctest.h>

#include <new>
#include <set>
#include <stdexcept>

namespace test_host_op_table {

namespace {

using namespace coaccel;
using host::op_table;

struct probe {
    using reply = int;
    static constexpr std::string_view name = "test.probe";
    static constexpr library lib = library::user;

    int what = 0;

    error_code check() const noexcept { return {}; }

    BOOST_DESCRIBE_CLASS(probe, (), (what), (), ())
};

struct probe_library {
    static int run(const probe& op, const bound_op&)
    {
        switch (op.what) {
        case 1: throw std::bad_alloc();
        case 2: throw std::runtime_error("kernel");
        case 3: throw 42;
        default: return 7;
        }
    }
};

bool knows(std::uint64_t id)
{
    return host::all_ops().find(id) != nullptr;
}

} // namespace

TEST_SUITE_BEGIN("op_table");

TEST_CASE("the ops of the library have a kernel, and no others")
{
    std::set<std::uint64_t> ids;
    // Not in the template below, which is compiled for hundreds of ops.
    const auto check_op = [&](const op_info& info) {
        CAPTURE(info.name);
        CHECK(knows(info.id));
        ids.insert(info.id);
    };
    test::for_each_op([&]<class Op>() { check_op(info_of<Op>()); });
    host::all_ops().for_each([&](const op_info& info) { CHECK_MESSAGE(ids.contains(info.id), info.name); });
    CHECK(ids.size() > 100);
    CHECK(knows(detail::user_op_id));
}

TEST_CASE("an unknown op has no kernel")
{
    CHECK_FALSE(knows(0));
    CHECK_FALSE(knows(info_of<probe>().id));
}

TEST_CASE("a kernel's reply is written, and its exception becomes the op's status")
{
    op_table table;
    host::add_ops<probe_library>(table, type_list<probe>{});
    const host::op_code* code = table.find(info_of<probe>().id);
    REQUIRE(code);
    struct row {
        const char* name;
        int what;
        error_code status;
        int reply;
    };
    const row rows[] = {
        {"success", 0, {}, 7},
        {"no memory", 1, errc::out_of_memory, -1},
        {"an exception", 2, errc::backend_error, -1},
        {"something thrown", 3, errc::backend_error, -1},
    };
    for (const auto& r : rows) {
        CAPTURE(r.name);
        const probe op{r.what};
        int reply = -1;
        bound_op bound{.info = &info_of<probe>(), .op = &op, .reply = &reply};
        code->run(bound);
        CHECK(bound.status == r.status);
        CHECK(reply == r.reply);
    }
}

TEST_SUITE_END();

} // namespace test_host_op_table
