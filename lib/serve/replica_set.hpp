#ifndef COACCEL_SERVE_REPLICA_SET_HPP
#define COACCEL_SERVE_REPLICA_SET_HPP

#include <coaccel/device/device_state.hpp>
#include <coaccel/serve/balance.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace coaccel::detail {

/// What can be expected of a replica.
enum class replica_health : std::uint8_t {
    up,      ///< It works.
    waiting, ///< Its device is being repaired: requests wait.
    down,    ///< It answers nothing.
};

constexpr replica_health health_of(device_state s) noexcept
{
    switch (s) {
    case device_state::ready:
    case device_state::busy: return replica_health::up;
    case device_state::starting:
    case device_state::suspect:
    case device_state::rebuilding: return replica_health::waiting;
    case device_state::failed:
    case device_state::stopping:
    case device_state::stopped: break;
    }
    return replica_health::down;
}

/// Chooses among replicas, by the number of their requests and their health. Knows no device, has no lock, and gets
/// random numbers from the caller.
class replica_set {
public:
    replica_set(std::size_t count, serve::balance how) : replicas_(count), how_(how) {}

    std::size_t size() const noexcept { return replicas_.size(); }
    void set_health(std::size_t i, replica_health h) noexcept { replicas_[i].health = h; }
    replica_health health(std::size_t i) const noexcept { return replicas_[i].health; }
    /// It gets no further requests.
    void set_draining(std::size_t i, bool on) noexcept { replicas_[i].draining = on; }
    bool draining(std::size_t i) const noexcept { return replicas_[i].draining; }
    std::uint64_t load(std::size_t i) const noexcept { return replicas_[i].load; }

    void started(std::size_t i) noexcept { ++replicas_[i].load; }
    void ended(std::size_t i) noexcept { --replicas_[i].load; }

    /// The replica for the next request, among those for which `fits(i)` is true: one that is up, or else one that is
    /// being repaired. `key` is for balance::sticky, `random` for two_choices.
    template <class Fits>
    std::optional<std::size_t> pick(std::uint64_t key, std::uint64_t random, Fits fits)
    {
        for (const auto wanted : {replica_health::up, replica_health::waiting}) {
            candidates_.clear();
            for (std::size_t i = 0; i < replicas_.size(); ++i)
                if (replicas_[i].health == wanted && !replicas_[i].draining && fits(i))
                    candidates_.push_back(i);
            if (!candidates_.empty())
                return last_ = choose(key, random);
        }
        return std::nullopt;
    }

private:
    struct replica {
        replica_health health = replica_health::up;
        bool draining = false;
        std::uint64_t load = 0;
    };

    static std::uint64_t mixed(std::uint64_t x) noexcept
    {
        // The finalizer of splitmix64.
        x += 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        return x ^ (x >> 31);
    }

    std::size_t choose(std::uint64_t key, std::uint64_t random) const noexcept
    {
        switch (how_) {
        case serve::balance::round_robin: return next_in_turn();
        case serve::balance::two_choices: {
            const std::size_t n = candidates_.size();
            const std::size_t a = candidates_[random % n];
            const std::size_t b = n == 1 ? a : candidates_[(random % n + 1 + (random >> 32) % (n - 1)) % n];
            return load(b) < load(a) ? b : a;
        }
        case serve::balance::sticky: {
            // Rendezvous hashing: without a replica only its own keys move.
            std::size_t best = candidates_.front();
            for (const std::size_t i : candidates_)
                if (mixed(key ^ mixed(i)) > mixed(key ^ mixed(best)))
                    best = i;
            return best;
        }
        case serve::balance::least_loaded: break;
        }
        std::size_t best = next_in_turn();
        for (const std::size_t i : candidates_)
            if (load(i) < load(best))
                best = i;
        return best;
    }

    std::size_t next_in_turn() const noexcept
    {
        for (const std::size_t i : candidates_)
            if (last_ && i > *last_)
                return i;
        return candidates_.front();
    }

    std::vector<replica> replicas_;
    const serve::balance how_;
    std::optional<std::size_t> last_;
    std::vector<std::size_t> candidates_;
};

} // namespace coaccel::detail

#endif
