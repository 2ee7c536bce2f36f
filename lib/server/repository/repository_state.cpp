#include "server/repository/repository_state.hpp"

#include "server/repository/choose_versions.hpp"

#include <boost/assert.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace coaccel::server {

repository_state::repository_state(version_policy others, std::map<std::string, version_policy, std::less<>> own)
    : others_(std::move(others)), own_(std::move(own))
{}

const version_policy& repository_state::policy(std::string_view model) const noexcept
{
    const auto found = own_.find(model);
    return found == own_.end() ? others_ : found->second;
}

std::set<std::uint64_t> repository_state::wanted(std::string_view name, const model_state& m) const
{
    std::set<std::uint64_t> exist;
    if (!m.unloaded_by_hand)
        for (const auto& [number, v] : m.versions)
            if (v.seen)
                exist.insert(number);
    return choose_versions(policy(name), exist);
}

void repository_state::see(model_state& m, const scanned_model& scan, settling how)
{
    for (auto& [number, v] : m.versions)
        if (scan.readable && !scan.versions.contains(number)) {
            v.seen.reset();
            v.still = false;
        }
    for (const auto& [number, file] : scan.versions) {
        auto& v = m.versions[number];
        v.still = how == settling::assumed || v.seen == file;
        v.seen = file;
        // A failed content that another one has replaced may come back, for example by a copy, and be whole then.
        if (v.failed && v.failed != file) {
            v.failed.reset();
            v.problem.clear();
        }
    }
}

void repository_state::decide(model_map::iterator m, actions& made)
{
    using kind = repository_action::kind;
    const auto want = wanted(m->first, m->second);
    bool waiting = false;
    bool served = false;
    for (auto& [number, v] : m->second.versions) {
        if (!want.contains(number))
            continue;
        if ((v.phase == version_phase::idle || v.phase == version_phase::ready) && v.can_start()) {
            made.push_back({v.phase == version_phase::idle ? kind::load : kind::reload, m->first, number});
            v.phase = v.phase == version_phase::idle ? version_phase::loading : version_phase::reloading;
            v.target = v.seen;
        }
        served = served || v.phase == version_phase::ready || v.phase == version_phase::reloading;
        waiting = waiting || v.phase == version_phase::loading || v.phase == version_phase::unloading ||
                  (v.phase == version_phase::idle && v.may_start());
    }
    if (!want.empty() && !waiting && !served)
        load_older(m, want, made);
    if (!want.empty() && (waiting || !served))
        return;
    for (auto& [number, v] : m->second.versions)
        if (!want.contains(number) && v.phase == version_phase::ready) {
            v.phase = version_phase::unloading;
            made.push_back({kind::unload, m->first, number});
        }
}

/// If no chosen version can be loaded and none answers, the highest other one is better than none.
void repository_state::load_older(model_map::iterator m, const std::set<std::uint64_t>& want, actions& made)
{
    auto& versions = m->second.versions;
    if (policy(m->first).how != version_policy::rule::latest ||
        std::ranges::any_of(versions, [](const auto& v) { return v.second.phase != version_phase::idle; }))
        return;
    for (auto v = versions.rbegin(); v != versions.rend(); ++v) {
        if (want.contains(v->first) || !v->second.may_start())
            continue;
        // One that is still being written is waited for.
        if (v->second.can_start()) {
            v->second.phase = version_phase::loading;
            v->second.target = v->second.seen;
            made.push_back({repository_action::kind::load, m->first, v->first});
        }
        return;
    }
}

void repository_state::forget_gone(model_state& m)
{
    std::erase_if(m.versions, [](const auto& v) { return !v.second.seen && v.second.phase == version_phase::idle; });
}

repository_state::actions repository_state::scanned(const model_scan& scan, settling how)
{
    new_problems_.clear();
    auto problems = scan.problems;
    std::ranges::sort(problems);
    std::ranges::set_difference(problems, problems_, std::back_inserter(new_problems_));
    problems_ = std::move(problems);
    readable_ = scan.readable;
    if (!scan.readable)
        return {};
    for (const auto& [name, model] : scan.models)
        models_.try_emplace(name);
    actions made;
    for (auto m = models_.begin(); m != models_.end();) {
        const auto found = scan.models.find(m->first);
        see(m->second, found == scan.models.end() ? scanned_model() : found->second, how);
        if (found == scan.models.end())
            m->second.unloaded_by_hand = false;
        decide(m, made);
        forget_gone(m->second);
        m = m->second.versions.empty() && found == scan.models.end() ? models_.erase(m) : std::next(m);
    }
    return made;
}

file_identity repository_state::target(std::string_view model, std::uint64_t version) const
{
    const auto m = models_.find(model);
    BOOST_ASSERT(m != models_.end() && m->second.versions.contains(version));
    const auto& v = m->second.versions.at(version);
    BOOST_ASSERT(v.target);
    return *v.target;
}

repository_state::actions repository_state::load_ended(std::string_view model, std::uint64_t version,
                                                       std::string problem)
{
    const auto m = models_.find(model);
    BOOST_ASSERT(m != models_.end() && m->second.versions.contains(version));
    auto& v = m->second.versions[version];
    BOOST_ASSERT(v.phase == version_phase::loading || v.phase == version_phase::reloading);
    const auto content = std::exchange(v.target, std::nullopt);
    if (problem.empty()) {
        v.phase = version_phase::ready;
        v.loaded = content;
        v.failed.reset();
    } else {
        v.phase = v.phase == version_phase::reloading ? version_phase::ready : version_phase::idle;
        v.failed = content;
    }
    v.problem = std::move(problem);
    actions made;
    decide(m, made);
    forget_gone(m->second);
    return made;
}

repository_state::actions repository_state::unload_ended(std::string_view model, std::uint64_t version)
{
    const auto m = models_.find(model);
    BOOST_ASSERT(m != models_.end() && m->second.versions.contains(version));
    auto& v = m->second.versions[version];
    BOOST_ASSERT(v.phase == version_phase::unloading);
    v.phase = version_phase::idle;
    v.loaded.reset();
    actions made;
    decide(m, made);
    forget_gone(m->second);
    return made;
}

repository_state::actions repository_state::rolled_back(std::string_view model, std::uint64_t bad, std::uint64_t good,
                                                        std::string problem)
{
    const auto m = models_.find(model);
    if (m == models_.end())
        return {};
    // No file has it, so that every content of the file is another one.
    constexpr file_identity unknown{};
    if (const auto found = m->second.versions.find(bad); found != m->second.versions.end()) {
        auto& v = found->second;
        if (v.loaded) {
            v.failed = std::exchange(v.loaded, std::nullopt);
            v.problem = std::move(problem);
        }
        if (bad == good)
            v.loaded = unknown;
        else if (v.phase == version_phase::ready)
            v.phase = version_phase::idle;
        else if (v.phase == version_phase::reloading)
            v.phase = version_phase::loading;
    }
    if (bad != good) {
        auto& v = m->second.versions[good];
        if (v.phase == version_phase::idle) {
            v.phase = version_phase::ready;
            v.loaded = v.seen.value_or(unknown);
        }
    }
    actions made;
    decide(m, made);
    forget_gone(m->second);
    return made;
}

std::optional<repository_state::actions> repository_state::load(std::string_view model)
{
    const auto m = models_.find(model);
    if (m == models_.end())
        return std::nullopt;
    m->second.unloaded_by_hand = false;
    for (auto& [number, v] : m->second.versions) {
        v.still = v.seen.has_value();
        v.failed.reset();
        v.problem.clear();
    }
    actions made;
    decide(m, made);
    return made;
}

std::optional<repository_state::actions> repository_state::unload(std::string_view model)
{
    const auto m = models_.find(model);
    if (m == models_.end())
        return std::nullopt;
    m->second.unloaded_by_hand = true;
    actions made;
    decide(m, made);
    return made;
}

std::vector<version_report> repository_state::index() const
{
    std::vector<version_report> all;
    for (const auto& [name, m] : models_) {
        const auto want = wanted(name, m);
        for (const auto& [number, v] : m.versions) {
            std::string reason = v.problem;
            if (reason.empty() && m.unloaded_by_hand && v.phase == version_phase::idle)
                reason = "unloaded by a client";
            else if (reason.empty() && !want.contains(number))
                reason = v.seen ? "not chosen by the version policy" : "the file has been removed";
            else if (reason.empty() && v.phase == version_phase::idle)
                reason = "waiting until the file no longer changes";
            all.push_back({name, number, v.phase, std::move(reason)});
        }
    }
    return all;
}

bool repository_state::has_version(std::string_view model) const
{
    const auto m = models_.find(model);
    return m != models_.end() && !wanted(m->first, m->second).empty();
}

std::optional<version_problem> repository_state::problem_of(std::string_view model) const
{
    const auto m = models_.find(model);
    if (m == models_.end())
        return std::nullopt;
    for (const auto number : wanted(m->first, m->second))
        if (const auto& v = m->second.versions.at(number); !v.problem.empty())
            return version_problem{number, v.problem};
    return std::nullopt;
}

bool repository_state::settled() const
{
    for (const auto& [name, m] : models_)
        for (const auto number : wanted(name, m)) {
            const auto& v = m.versions.at(number);
            if (v.phase == version_phase::loading || (v.phase == version_phase::idle && v.may_start()))
                return false;
        }
    return true;
}

} // namespace coaccel::server
