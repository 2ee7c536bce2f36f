#ifndef COACCEL_CONTEXT_COMPLETION_RULE_HPP
#define COACCEL_CONTEXT_COMPLETION_RULE_HPP

#include "context/context.hpp"

namespace coaccel::detail {

/// Decides, after each look at the lanes, how the context learns of the next op that ends.
class COACCEL_DECL completion_rule {
public:
    enum class action : std::uint8_t { idle, poll, arm };

    explicit completion_rule(const context_options& options) noexcept
        : completion_(options.completion), spin_budget_(options.spin_budget)
    {}

    /// `progressed`: something was started or ended since the last call.
    action decide(bool in_flight, bool progressed, clock::time_point now) noexcept;

private:
    completion completion_;
    clock::duration spin_budget_;
    clock::time_point last_progress_{};
};

} // namespace coaccel::detail

#endif
