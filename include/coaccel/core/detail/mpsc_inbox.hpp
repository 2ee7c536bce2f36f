#ifndef COACCEL_CORE_DETAIL_MPSC_INBOX_HPP
#define COACCEL_CORE_DETAIL_MPSC_INBOX_HPP

#include <atomic>
#include <cstdint>

namespace coaccel::detail {

/// A message for a device's next turn. An intrusive list node, so that sending does not allocate.
class inbox_node {
public:
    /// The message type.
    enum class kind : std::uint8_t {
        request,
        release,
        cancel,
        wake,
        created,
        compiled,
        gone,
        standby,
        handle_dropped,
        plan_dropped
    };

    explicit inbox_node(kind k) noexcept : what(k) {}

    const kind what;
    inbox_node* next = nullptr;
};

/// A queue with many producers and one consumer at a time. It also reports when the consumer must be scheduled. So it
/// serialises the device as a strand would, without a strand's allocation per message.
class mpsc_inbox {
public:
    /// Adds a node. True when the consumer is idle and the caller must schedule it.
    bool push(inbox_node& node) noexcept
    {
        inbox_node* head = head_.load(std::memory_order_relaxed);
        do {
            node.next = head == idle() ? nullptr : head;
        } while (!head_.compare_exchange_weak(head, &node, std::memory_order_acq_rel, std::memory_order_relaxed));
        return head == idle();
    }

    /// Takes all nodes, oldest first. Only for the scheduled consumer.
    inbox_node* take() noexcept
    {
        inbox_node* newest = head_.exchange(nullptr, std::memory_order_acquire);
        inbox_node* oldest = nullptr;
        while (newest) {
            inbox_node* next = newest->next;
            newest->next = oldest;
            oldest = newest;
            newest = next;
        }
        return oldest;
    }

    bool empty() const noexcept { return head_.load(std::memory_order_relaxed) == nullptr; }

    /// Marks the consumer as idle. False when new nodes have arrived and the consumer must continue.
    bool rest() noexcept
    {
        inbox_node* expected = nullptr;
        return head_.compare_exchange_strong(expected, idle(), std::memory_order_acq_rel, std::memory_order_relaxed);
    }

private:
    inbox_node* idle() noexcept { return &idle_; }

    inbox_node idle_{inbox_node::kind::wake};
    std::atomic<inbox_node*> head_{&idle_};
};

} // namespace coaccel::detail

#endif
