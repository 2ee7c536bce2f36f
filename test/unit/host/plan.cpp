#include "support/host_world.hpp"
#include "support/plan_parameter_cases.hpp"

std::vector<test::context_setting> test::plan_contexts()
{
    std::vector<context_setting> all;
    for (const auto& [name, options] : context_variants())
        for (const auto mode : {host_mode::pool, host_mode::inline_}) {
            const bool pool = mode == host_mode::pool;
            all.push_back({name + (pool ? ", pool" : ", inline"), pool, [=, options = options] {
                               auto made = std::make_unique<host_world>();
                               made->context = options;
                               made->host.mode = mode;
                               made->host.threads = 3;
                               return made;
                           }});
        }
    return all;
}

TEST_SUITE_BEGIN("plan ops");

TEST_CASE("an op of a plan that this backend refuses is refused when the plan is loaded")
{
    for_each_plan_context([](context_world& w) {
        context_driver d(w);
        plan_maker m;
        const auto y = m.floats(slot_kind::output, 8);
        m.add(rand::uniform<float>{.dst = y, .from = rand::make_generator({.algorithm = rand::algorithm::xorwow})});
        const auto data = m.finish();
        test_instance i(d, data, 1, 1);
        const auto ec = i.load();
        CHECK(ec == errc::unsupported_op);
        CHECK(ec.message().starts_with("rand.uniform: "));
    });
}

TEST_SUITE_END();
