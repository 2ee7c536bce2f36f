#ifndef COACCEL_DEVICE_DEVICE_INBOX_HPP
#define COACCEL_DEVICE_DEVICE_INBOX_HPP

#include <coaccel/core/detail/mpsc_inbox.hpp>

#include <atomic>
#include <cstddef>

namespace coaccel::detail {

/// The messages for a device's next turn. `push`, `wake` and `drop_handle` are called from any thread; if they return
/// true, the caller must schedule a turn. That is never the case after `close`, because the execution context is gone.
class device_inbox {
public:
    [[nodiscard]] bool push(inbox_node& node) noexcept { return inbox_.push(node) && !closed(); }

    /// Requests a turn, unless one was requested since the last turn began.
    [[nodiscard]] bool wake() noexcept
    {
        return !wake_queued_.exchange(true, std::memory_order_acq_rel) && push(wake_node_);
    }

    /// The last handle of the device was destroyed. Called once.
    [[nodiscard]] bool drop_handle() noexcept { return push(handle_node_); }

    /// The execution context is being destroyed.
    void close() noexcept { closed_.store(true, std::memory_order_release); }
    bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

    // Only in the device's turn.

    /// All messages, oldest first.
    inbox_node* take() noexcept { return inbox_.take(); }
    /// The turn has received the message of `wake`, which may be sent again.
    void woken() noexcept { wake_queued_.store(false, std::memory_order_release); }
    bool empty() const noexcept { return inbox_.empty(); }
    /// The turn ends. False: messages have arrived, and another turn must follow.
    [[nodiscard]] bool rest() noexcept { return inbox_.rest(); }

private:
    static constexpr std::size_t cache_line = 64;

    /// Changed by every thread that sends.
    alignas(cache_line) mpsc_inbox inbox_;
    /// Read by them, and otherwise changed once.
    alignas(cache_line) std::atomic<bool> closed_{false};
    alignas(cache_line) inbox_node wake_node_{inbox_node::kind::wake};
    inbox_node handle_node_{inbox_node::kind::handle_dropped};
    /// The wake node is in the inbox; a node can be there only once.
    std::atomic<bool> wake_queued_{false};
};

} // namespace coaccel::detail

#endif
