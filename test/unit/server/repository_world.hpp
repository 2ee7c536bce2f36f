#ifndef COACCEL_TEST_UNIT_SERVER_REPOSITORY_WORLD_HPP
#define COACCEL_TEST_UNIT_SERVER_REPOSITORY_WORLD_HPP

#include "server/repository/choose_versions.hpp"
#include "server/repository/repository_state.hpp"

#include <doctest/doctest.h>

#include <array>
#include <compare>
#include <cstdint>
#include <set>

namespace test {

/// One model with up to two versions, and an independent record of what happened to it. Contents are numbers; 0: no
/// file.
class repository_world {
public:
    static constexpr std::uint64_t count = 2;
    using contents = std::array<int, count>;
    using state = coaccel::server::repository_state;
    using kind = coaccel::server::repository_action::kind;

    explicit repository_world(coaccel::server::version_policy policy) : policy_(policy), state_(policy) {}

    void scan(const contents& files, state::settling how = state::settling::needed)
    {
        for (std::size_t i = 0; i < count; ++i) {
            still_[i] = files[i] != 0 && (how == state::settling::assumed || files[i] == now_[i]);
            if (failed_[i] != files[i] && files[i] != 0)
                failed_[i] = 0;
        }
        now_ = files;
        exists_ = true;
        coaccel::server::model_scan scan;
        for (std::size_t i = 0; i < count; ++i) {
            scan.models["m"];
            if (files[i] != 0)
                scan.models["m"].versions[i + 1] = {1, files[i], 1};
        }
        take(state_.scanned(scan, how));
        forget_gone();
    }

    /// The folder of the model has been removed.
    void scan_without_model()
    {
        now_ = still_ = {};
        by_hand_ = exists_ = false;
        take(state_.scanned({}));
        forget_gone();
    }

    /// Nothing may happen.
    void scan_unreadable()
    {
        const auto before = state_;
        CHECK(state_.scanned({.readable = false}).empty());
        CHECK(!state_.readable());
        CHECK(state_ == before);
    }

    /// A model whose folder cannot be read keeps its versions.
    void scan_unreadable_model()
    {
        const auto before = state_;
        coaccel::server::model_scan scan;
        scan.models["m"].readable = false;
        CHECK(state_.scanned(scan).empty());
        CHECK(state_ == before);
    }

    void load_by_hand()
    {
        const auto made = state_.load("m");
        CHECK((made.has_value() || !exists_));
        if (!made)
            return;
        by_hand_ = false;
        failed_ = {};
        for (std::size_t i = 0; i < count; ++i)
            still_[i] = now_[i] != 0;
        take(*made);
    }

    void unload_by_hand()
    {
        const auto made = state_.unload("m");
        CHECK((made.has_value() || !exists_));
        if (!made)
            return;
        by_hand_ = true;
        take(*made);
    }

    bool exists() const { return exists_; }
    bool is_busy(std::uint64_t version) const { return busy_[version - 1]; }
    bool is_loading(std::uint64_t version) const { return busy_[version - 1] && what_[version - 1] != kind::unload; }

    /// The action of the version ends.
    void end(std::uint64_t version, bool good)
    {
        const auto i = version - 1;
        REQUIRE(busy_[i]);
        busy_[i] = false;
        if (what_[i] == kind::unload) {
            loaded_[i] = 0;
            take(state_.unload_ended("m", version));
        } else {
            (good ? loaded_[i] : failed_[i]) = target_[i];
            if (good)
                failed_[i] = 0;
            target_[i] = 0;
            take(state_.load_ended("m", version, good ? "" : "bad"));
        }
        forget_gone();
    }

    /// What becomes of it if the files stay as they are and every load succeeds.
    void check_convergence() const
    {
        auto w = *this;
        for (int round = 0; round < 8; ++round) {
            for (std::uint64_t v = 1; v <= count; ++v)
                if (w.is_busy(v))
                    w.end(v, true);
            if (w.exists_)
                w.scan(w.now_);
            else
                w.scan_without_model();
        }
        const auto want = w.wanted();
        bool all_good = true;
        bool other_good = false;
        bool any_loaded = false;
        for (std::size_t i = 0; i < count; ++i) {
            CHECK(!w.busy_[i]);
            const bool failed = w.failed_[i] != 0 && w.failed_[i] == w.now_[i];
            if (want.contains(i + 1) && !failed)
                CHECK(w.loaded_[i] == w.now_[i]);
            all_good = all_good && (!want.contains(i + 1) || !failed);
            other_good = other_good || (w.now_[i] != 0 && !failed);
            any_loaded = any_loaded || w.loaded_[i] != 0;
        }
        // If no chosen version can be loaded, another one answers.
        if (!want.empty() && other_good && w.policy_.how == coaccel::server::version_policy::rule::latest)
            CHECK(any_loaded);
        if (all_good)
            for (std::size_t i = 0; i < count; ++i)
                CHECK((w.loaded_[i] != 0) == want.contains(i + 1));
        CHECK(w.state_.settled());
    }

    auto operator<=>(const repository_world& o) const
    {
        if (const auto c = state_ <=> o.state_; c != 0)
            return c;
        return record() <=> o.record();
    }
    bool operator==(const repository_world& o) const { return (*this <=> o) == 0; }

private:
    std::set<std::uint64_t> wanted() const
    {
        std::set<std::uint64_t> exist;
        for (std::size_t i = 0; i < count && !by_hand_; ++i)
            if (now_[i] != 0)
                exist.insert(i + 1);
        return coaccel::server::choose_versions(policy_, exist);
    }

    void take(const state::actions& made)
    {
        const auto want = wanted();
        for (const auto& a : made) {
            REQUIRE(a.model == "m");
            const auto i = a.version - 1;
            CHECK(!busy_[i]);
            switch (a.what) {
            case kind::load:
            case kind::reload:
                if (!want.contains(a.version))
                    check_older(want);
                CHECK((loaded_[i] != 0) == (a.what == kind::reload));
                CHECK(now_[i] != 0);
                CHECK(now_[i] != loaded_[i]);
                CHECK(still_[i]);
                CHECK(now_[i] != failed_[i]);
                target_[i] = now_[i];
                break;
            case kind::unload: {
                CHECK(loaded_[i] != 0);
                CHECK(!want.contains(a.version));
                bool served = want.empty();
                for (const auto w : want)
                    served = served || (loaded_[w - 1] != 0 && !(busy_[w - 1] && what_[w - 1] == kind::unload));
                CHECK(served);
            }
            }
            busy_[i] = true;
            what_[i] = a.what;
        }
    }

    /// A version that the policy does not choose is loaded only in place of those that cannot be loaded.
    void check_older(const std::set<std::uint64_t>& want) const
    {
        CHECK(policy_.how == coaccel::server::version_policy::rule::latest);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK(!busy_[i]);
            CHECK(loaded_[i] == 0);
            if (want.contains(i + 1))
                CHECK(failed_[i] == now_[i]);
        }
    }

    void forget_gone()
    {
        for (std::size_t i = 0; i < count; ++i)
            if (now_[i] == 0 && loaded_[i] == 0 && !busy_[i])
                failed_[i] = 0;
    }

    std::array<int, 6 * count + 2> record() const
    {
        std::array<int, 6 * count + 2> all{};
        for (std::size_t i = 0; i < count; ++i) {
            all[6 * i] = now_[i];
            all[6 * i + 1] = still_[i];
            all[6 * i + 2] = loaded_[i];
            all[6 * i + 3] = target_[i];
            all[6 * i + 4] = failed_[i];
            all[6 * i + 5] = busy_[i] ? 1 + static_cast<int>(what_[i]) : 0;
        }
        all[6 * count] = by_hand_;
        all[6 * count + 1] = exists_;
        return all;
    }

    coaccel::server::version_policy policy_;
    state state_;
    contents now_{};
    std::array<int, count> still_{};
    contents loaded_{};
    contents target_{};
    contents failed_{};
    std::array<bool, count> busy_{};
    std::array<kind, count> what_{};
    bool by_hand_ = false;
    bool exists_ = false;
};

} // namespace test

#endif
