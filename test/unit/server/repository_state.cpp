#include "repository_world.hpp"

#include <deque>
#include <functional>

namespace test_server_repository_state {
namespace {

namespace server = coaccel::server;
using kind = server::repository_action::kind;
using phase = server::version_phase;
using policy_rule = server::version_policy::rule;
using server::repository_state;
using actions = repository_state::actions;

server::model_scan folder_with(std::map<std::string, std::map<std::uint64_t, int>> files)
{
    server::model_scan scan;
    for (const auto& [name, versions] : files) {
        scan.models[name];
        for (const auto& [number, content] : versions)
            scan.models[name].versions[number] = {100, content, 1};
    }
    return scan;
}

/// All worlds that can be reached with files of contents up to `contents`; each of them is checked.
std::size_t explore(const server::version_policy& policy, int contents)
{
    using world = test::repository_world;
    std::set<world> seen;
    std::deque<const world*> open;
    const auto reach = [&](world w) {
        const auto [at, is_new] = seen.insert(std::move(w));
        if (is_new)
            open.push_back(&*at);
    };
    reach(world(policy));
    while (!open.empty()) {
        const world& w = *open.front();
        open.pop_front();
        w.check_convergence();
        const auto step = [&](auto&& change) {
            world next = w;
            change(next);
            reach(std::move(next));
        };
        for (int a = 0; a <= contents; ++a)
            for (int b = 0; b <= contents; ++b)
                for (const auto how : {repository_state::settling::needed, repository_state::settling::assumed})
                    step([&](world& n) { n.scan({a, b}, how); });
        step([](world& n) { n.scan_without_model(); });
        step([](world& n) { n.scan_unreadable(); });
        if (w.exists())
            step([](world& n) { n.scan_unreadable_model(); });
        step([](world& n) { n.load_by_hand(); });
        step([](world& n) { n.unload_by_hand(); });
        for (std::uint64_t v = 1; v <= world::count; ++v) {
            if (w.is_busy(v))
                step([&](world& n) { n.end(v, true); });
            if (w.is_loading(v))
                step([&](world& n) { n.end(v, false); });
        }
    }
    return seen.size();
}

} // namespace

TEST_SUITE_BEGIN("server repository state");

TEST_CASE("every sequence of scans, ends and wishes keeps the rules, for each policy")
{
    for (const auto& policy : std::vector<server::version_policy>{{policy_rule::latest, 1, {}},
                                                                  {policy_rule::latest, 2, {}},
                                                                  {policy_rule::all, 1, {}},
                                                                  {policy_rule::listed, 1, {1}}}) {
        const auto worlds = explore(policy, 2);
        CHECK(worlds > 500);
    }
}

TEST_CASE("the policy chooses versions")
{
    using numbers = std::set<std::uint64_t>;
    const numbers exist{1, 3, 7, 20};
    CHECK(server::choose_versions({policy_rule::latest, 1, {}}, exist) == numbers{20});
    CHECK(server::choose_versions({policy_rule::latest, 3, {}}, exist) == numbers{3, 7, 20});
    CHECK(server::choose_versions({policy_rule::latest, 9, {}}, exist) == exist);
    CHECK(server::choose_versions({policy_rule::all, 1, {}}, exist) == exist);
    CHECK(server::choose_versions({policy_rule::listed, 1, {2, 3, 20, 30}}, exist) == numbers{3, 20});
    for (const auto how : {policy_rule::latest, policy_rule::all, policy_rule::listed})
        CHECK(server::choose_versions({how, 2, {1}}, {}).empty());
}

TEST_CASE("a file is loaded when it has kept still for one scan")
{
    repository_state s;
    CHECK(s.scanned(folder_with({{"m", {{1, 1}}}})).empty());
    CHECK(s.index() ==
          std::vector<server::version_report>{{"m", 1, phase::idle, "waiting until the file no longer changes"}});
    CHECK(!s.settled());
    CHECK(s.scanned(folder_with({{"m", {{1, 2}}}})).empty());
    CHECK(s.scanned(folder_with({{"m", {{1, 2}}}})) == actions{{kind::load, "m", 1}});
    CHECK(s.scanned(folder_with({{"m", {{1, 2}}}})).empty());
    CHECK(s.load_ended("m", 1).empty());
    CHECK(s.index() == std::vector<server::version_report>{{"m", 1, phase::ready, ""}});
    CHECK(s.settled());
}

TEST_CASE("the first scan need not wait")
{
    repository_state s;
    CHECK(s.scanned(folder_with({{"a", {{1, 1}}}, {"b", {{1, 1}, {4, 1}}}}), repository_state::settling::assumed) ==
          actions{{kind::load, "a", 1}, {kind::load, "b", 4}});
}

TEST_CASE("an old version is unloaded after the new one is loaded, and stays if that fails")
{
    repository_state s;
    const auto assumed = repository_state::settling::assumed;
    s.scanned(folder_with({{"m", {{1, 1}}}}), assumed);
    s.load_ended("m", 1);
    CHECK(s.scanned(folder_with({{"m", {{1, 1}, {2, 1}}}}), assumed) == actions{{kind::load, "m", 2}});
    CHECK(s.load_ended("m", 2, "damaged").empty());
    CHECK(s.index() == std::vector<server::version_report>{{"m", 1, phase::ready, "not chosen by the version policy"},
                                                           {"m", 2, phase::idle, "damaged"}});
    // The same content is not tried again.
    CHECK(s.scanned(folder_with({{"m", {{1, 1}, {2, 1}}}}), assumed).empty());
    CHECK(s.scanned(folder_with({{"m", {{1, 1}, {2, 2}}}}), assumed) == actions{{kind::load, "m", 2}});
    CHECK(s.load_ended("m", 2) == actions{{kind::unload, "m", 1}});
    CHECK(s.unload_ended("m", 1).empty());
}

TEST_CASE("a changed file is reloaded; if that fails, the old content stays")
{
    repository_state s;
    s.scanned(folder_with({{"m", {{1, 1}}}}), repository_state::settling::assumed);
    s.load_ended("m", 1);
    CHECK(s.scanned(folder_with({{"m", {{1, 2}}}})).empty());
    CHECK(s.scanned(folder_with({{"m", {{1, 2}}}})) == actions{{kind::reload, "m", 1}});
    CHECK(s.load_ended("m", 1, "damaged").empty());
    CHECK(s.index() == std::vector<server::version_report>{{"m", 1, phase::ready, "damaged"}});
    CHECK(s.load("m") == actions{{kind::reload, "m", 1}});
    CHECK(s.load_ended("m", 1).empty());
}

TEST_CASE("a file that changes while it is loaded is loaded again")
{
    repository_state s;
    s.scanned(folder_with({{"m", {{1, 1}}}}), repository_state::settling::assumed);
    CHECK(s.scanned(folder_with({{"m", {{1, 2}}}})).empty());
    CHECK(s.scanned(folder_with({{"m", {{1, 2}}}})).empty());
    CHECK(s.load_ended("m", 1) == actions{{kind::reload, "m", 1}});
}

TEST_CASE("models stay when the folder cannot be read, and go when it is empty")
{
    repository_state s;
    s.scanned(folder_with({{"m", {{1, 1}}}, {"n", {{1, 1}}}}), repository_state::settling::assumed);
    s.load_ended("m", 1);
    s.load_ended("n", 1);
    CHECK(s.scanned({.readable = false, .problems = {"models: gone"}}).empty());
    CHECK(!s.readable());
    CHECK(s.new_problems() == std::vector<std::string>{"models: gone"});
    CHECK(s.scanned({.readable = false, .problems = {"models: gone"}}).empty());
    CHECK(s.new_problems().empty());
    CHECK(s.index().size() == 2);
    server::model_scan half;
    half.models["n"].readable = false;
    CHECK(s.scanned(half) == actions{{kind::unload, "m", 1}});
    CHECK(s.unload_ended("m", 1).empty());
    CHECK(s.scanned({}) == actions{{kind::unload, "n", 1}});
    CHECK(s.unload_ended("n", 1).empty());
    CHECK(s.index().empty());
    s.scanned({});
    CHECK(s == repository_state());
}

TEST_CASE("clients load and unload by hand")
{
    repository_state s;
    const auto folder = folder_with({{"m", {{1, 1}, {2, 1}}}});
    CHECK(!s.load("m").has_value());
    CHECK(!s.unload("m").has_value());
    CHECK(s.scanned(folder).empty());
    CHECK(s.load("m") == actions{{kind::load, "m", 2}});
    CHECK(s.unload("m") == actions{});
    CHECK(s.load_ended("m", 2) == actions{{kind::unload, "m", 2}});
    CHECK(s.unload_ended("m", 2).empty());
    CHECK(s.scanned(folder).empty());
    CHECK(s.scanned(folder).empty());
    CHECK(s.index() == std::vector<server::version_report>{{"m", 1, phase::idle, "unloaded by a client"},
                                                           {"m", 2, phase::idle, "unloaded by a client"}});
    CHECK(s.settled());
    CHECK(s.load("m") == actions{{kind::load, "m", 2}});
}

TEST_CASE("models have policies of their own")
{
    repository_state s({policy_rule::latest, 1, {}},
                       {{"m", {policy_rule::all, 1, {}}}, {"n", {policy_rule::listed, 1, {1, 9}}}});
    const auto made =
        s.scanned(folder_with({{"m", {{1, 1}, {2, 1}}}, {"n", {{1, 1}, {2, 1}}}, {"o", {{1, 1}, {2, 1}}}}),
                  repository_state::settling::assumed);
    CHECK(made == actions{{kind::load, "m", 1}, {kind::load, "m", 2}, {kind::load, "n", 1}, {kind::load, "o", 2}});
}

TEST_SUITE_END();

} // namespace test_server_repository_state
