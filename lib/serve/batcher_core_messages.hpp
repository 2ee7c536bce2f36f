#ifndef COACCEL_SERVE_BATCHER_CORE_MESSAGES_HPP
#define COACCEL_SERVE_BATCHER_CORE_MESSAGES_HPP

#include "serve/batcher_core.hpp"

#include <utility>

// The messages in a batcher's inbox other than requests, and the functions that it posts.
namespace coaccel::detail {

struct batcher_core::turn_function {
    batcher_ptr core;

    void operator()()
    {
        const auto mine = core->turn();
        core->completions_.run(mine, [this] { core->post_runner(); });
    }
};

struct batcher_core::runner_function {
    batcher_ptr core;

    void operator()()
    {
        core->completions_.run_posted([this] { core->post_runner(); });
    }
};

// An async_op_base, so that an execution context that is destroyed drops it together with the waiting operations,
// outside all locks.
struct batcher_core::self_reference final : async_op_base {
    explicit self_reference(batcher_ptr c) noexcept : core(std::move(c)) {}

    void post() override {}
    void destroy() noexcept override { delete this; }

    batcher_ptr core;
};

struct batcher_core::cancel_message final : batch_message {
    cancel_message(std::uint64_t i, ending e) noexcept : batch_message(type::cancel), id(i), why(e) {}

    std::uint64_t id;
    ending why;
};

} // namespace coaccel::detail

#endif
