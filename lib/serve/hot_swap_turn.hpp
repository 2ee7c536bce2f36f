#ifndef COACCEL_SERVE_HOT_SWAP_TURN_HPP
#define COACCEL_SERVE_HOT_SWAP_TURN_HPP

#include "serve/hot_swap_core.hpp"

#include <optional>
#include <utility>

// What a hot_swap_core uses for its turns.
namespace coaccel::detail {

struct hot_swap_core::turn_function {
    hot_swap_ptr core;

    void operator()() { core->turn(); }
};

// An async_op_base, so that an execution context that is destroyed drops it together with the waiting operations,
// outside all locks.
struct hot_swap_core::self_reference final : async_op_base {
    explicit self_reference(hot_swap_ptr c) noexcept : core(std::move(c)) {}

    void post() override {}
    void destroy() noexcept override { delete this; }

    hot_swap_ptr core;
    /// Functions of the user may own the hot_swap.
    records dropped;
};

struct hot_swap_core::job {
    action what{};
    std::string label;
    std::string name;
    std::shared_ptr<version_maker> maker;
    std::shared_ptr<const served_version> version;
    load_version_op* op = nullptr;
    async_op_list stops;
    std::unique_ptr<self_reference> self;
    /// To be reported, at this level.
    std::optional<serve::swap_event> event;
    log_level level = log_level::info;
};

} // namespace coaccel::detail

#endif
