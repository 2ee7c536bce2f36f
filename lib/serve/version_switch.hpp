#ifndef COACCEL_SERVE_VERSION_SWITCH_HPP
#define COACCEL_SERVE_VERSION_SWITCH_HPP

#include "serve/rollback_rule.hpp"

#include <coaccel/device/shutdown.hpp>
#include <coaccel/serve/hot_swap_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace coaccel::detail {

/// Decides which version answers requests, and what happens to the others. Knows versions by their numbers, which
/// begin with 1; 0 is none. Has no clock and no lock: the caller passes the time, and carries out the actions in their
/// order.
///
/// A switch and a rollback take effect within the call that causes them; only what follows from them is an action.
class version_switch {
public:
    using time_point = std::chrono::steady_clock::time_point;
    using number = std::uint64_t;

    /// How a load has ended.
    enum class load_end : std::uint8_t {
        switched,
        failed,    ///< With the error of the function.
        late,      ///< It took longer than its limit.
        cancelled, ///< By the caller.
        stopped,   ///< The hot_swap was stopped.
    };

    enum class action_kind : std::uint8_t {
        load,        ///< Call the load function.
        warm_up,     ///< Call the warm-up function.
        cancel_work, ///< Cancel the function that is being called. Its end changes nothing.
        load_ended,  ///< Answer the caller of the load; `end` and `during` say how.
        confirmed,   ///< The current version was confirmed.
        rolled_back, ///< The version was rolled back.
        close,       ///< Shut the version down in this mode.
        overdue,     ///< Its requests or its shutdown took too long.
        closed,      ///< It has been shut down.
        release,     ///< Nothing uses the version any more; destroy it.
        stopped,     ///< All versions are closed. The last action but those of requests that have not ended.
    };

    struct action {
        action_kind what;
        number version = 0;
        load_end end = load_end::switched;
        /// The state in which the load was when it ended.
        serve::version_state during = serve::version_state::waiting;
        shutdown mode = shutdown::drain;
        /// By the rule: the requests that it looked at, and the failures among them. By hand: 0.
        std::uint64_t requests = 0;
        std::uint64_t failures = 0;
    };

    enum class admission : std::uint8_t { accepted, full, stopped };

    enum class outcome : std::uint8_t { completed, failed, other };

    struct version {
        number id = 0;
        serve::version_state state = serve::version_state::waiting;
        std::uint64_t in_flight = 0;
        /// When the current state has lasted too long.
        time_point limit = time_point::max();
        /// There is something to shut down.
        bool exists = false;
        /// The mode in which it was shut down.
        shutdown mode = shutdown::drain;
        bool overdue = false;
    };

    explicit version_switch(const serve::hot_swap_options& o);

    /// A load of the version with this number, which must be above all earlier ones. The only function that needs
    /// memory. Exceptions: std::bad_alloc; nothing has changed then.
    admission load(number n, time_point now);
    /// The load function has ended. False: the version is no longer wanted, and what was loaded must be dropped.
    bool loaded(number n, bool ok, time_point now);
    /// The warm-up function has ended.
    void warmed_up(number n, bool ok, time_point now);
    /// The caller of the load does not want it any more. False: it has ended.
    bool cancel(number n, time_point now);

    /// A request begins: the version that answers it, or 0.
    number take() noexcept;
    /// A request of this version has ended.
    void ended(number n, outcome how, time_point now);
    /// Whether ended() needs the time for requests of this version.
    bool watches(number n) const noexcept { return n == current_ && previous_ != 0 && rule_.enabled(); }

    /// Returns to the previous version. False: there is none, or `from` is not 0 and not the current version.
    bool roll_back(number from, time_point now);
    /// The current version needs no way back. False: it has none, or `which` is not 0 and not the current version.
    bool confirm(number which, time_point now);

    /// A shutdown of the version has ended.
    void closed(number n, time_point now);
    /// No further loads and requests. A second call may change drain to abandon.
    void stop(shutdown mode, time_point now);
    /// Time has passed.
    void advance(time_point now);
    /// When advance() must be called; time_point::max(): not before another event.
    time_point next_time() const noexcept;

    bool has_actions() const noexcept { return first_action_ < actions_.size(); }
    std::optional<action> next_action() noexcept;

    number current() const noexcept { return current_; }
    number previous() const noexcept { return previous_; }
    bool stopping() const noexcept { return stopping_; }
    bool stopped() const noexcept { return stopped_; }
    /// The version that is being loaded or warmed up; 0: none.
    number loading() const noexcept { return loading_; }
    const std::vector<version>& versions() const noexcept { return versions_; }

private:
    using state = serve::version_state;

    version* find(number n) noexcept;
    version* first_after(number n) noexcept;
    void add(const action& a) noexcept;
    void begin_next_load(time_point now);
    void end_load(version& v, load_end how, time_point now);
    void switch_to(version& v, time_point now);
    void return_to_previous(time_point now, std::uint64_t requests, std::uint64_t failures);
    void confirm_current(time_point now);
    void drain(version& v, time_point now);
    void close(version& v, shutdown mode, time_point now);
    void finish_close(version& v);
    void note_overdue(version& v);
    void end_late_state(version& v, time_point now);
    void erase(number n) noexcept;
    void check_stopped();
    static time_point after(time_point now, std::chrono::nanoseconds limit) noexcept;

    const std::chrono::nanoseconds load_limit_;
    const std::chrono::nanoseconds warm_up_limit_;
    const std::chrono::nanoseconds drain_limit_;
    const std::chrono::nanoseconds confirm_after_;
    const std::uint32_t max_waiting_;
    rollback_rule rule_;
    /// In the order of their numbers. They are few, so they are searched one by one.
    std::vector<version> versions_;
    /// Those before first_action_ have been taken. It has room for all actions until the next load, so that only
    /// load() needs memory.
    std::vector<action> actions_;
    std::size_t first_action_ = 0;
    std::size_t room_ = 1;
    number current_ = 0;
    number previous_ = 0;
    number loading_ = 0;
    std::uint32_t waiting_ = 0;
    time_point confirm_at_ = time_point::max();
    bool stopping_ = false;
    bool abandons_ = false;
    bool stopped_ = false;
};

} // namespace coaccel::detail

#endif
