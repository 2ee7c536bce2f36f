#ifndef COACCEL_CORE_DETAIL_ASYNC_OP_HPP
#define COACCEL_CORE_DETAIL_ASYNC_OP_HPP

#include <coaccel/core/error.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/assert.hpp>

#include <memory>
#include <utility>

namespace coaccel::detail {

/// An operation that waits for an event, with the type of its handler erased.
class async_op_base {
public:
    async_op_base() = default;
    async_op_base(const async_op_base&) = delete;
    async_op_base& operator=(const async_op_base&) = delete;

    /// Schedules the completion and consumes the operation. Never calls the handler inside this call.
    virtual void post() = 0;

    /// Whether the handler may run on any thread of this execution context. Such a thread may call `resume` instead of
    /// `post`, but not from within an initiating function.
    virtual bool resumes_on(const asio::execution_context*) const noexcept { return false; }

    /// Calls the handler inside this call and consumes the operation. Never called for an operation without a handler.
    virtual void resume() {}

    /// Consumes the operation without calling the handler.
    virtual void destroy() noexcept = 0;

    /// Moves the handler to a separate operation, which completes with this error. This operation stays with its owner
    /// until it ends and is then destroyed. Null: it cannot be detached, or there is no memory for it.
    virtual async_op_base* detach(error_code) noexcept { return nullptr; }

    /// Whether it is in a wait_list, where it can be cancelled. Guarded by the mutex of that list.
    bool waiting() const noexcept { return waiting_; }

    error_code ec;

protected:
    ~async_op_base() = default;

private:
    friend class async_op_list;
    friend class wait_list;

    async_op_base* next_ = nullptr;
    async_op_base* prev_ = nullptr;
    bool waiting_ = false;
};

/// Resumes an operation when called; destroys the operation if it is itself destroyed without being called. One type
/// for all operations, so that the templates of executors are instantiated once.
class resumption {
public:
    explicit resumption(async_op_base& op) noexcept : op_(&op) {}

    void operator()() { op_.release()->resume(); }

private:
    struct discard {
        void operator()(async_op_base* op) const noexcept { op->destroy(); }
    };

    std::unique_ptr<async_op_base, discard> op_;
};

/// Owns operations, in order of arrival.
class async_op_list {
public:
    async_op_list() = default;
    async_op_list(const async_op_list&) = delete;
    async_op_list& operator=(const async_op_list&) = delete;

    ~async_op_list()
    {
        while (async_op_base* op = pop_front())
            op->destroy();
    }

    bool empty() const noexcept { return head_ == nullptr; }
    bool has_one() const noexcept { return head_ && head_ == tail_; }
    async_op_base* front() const noexcept { return head_; }
    /// The operation after `op`, which is in a list.
    static async_op_base* after(const async_op_base& op) noexcept { return op.next_; }

    void push_back(async_op_base& op) noexcept
    {
        op.next_ = nullptr;
        op.prev_ = tail_;
        (tail_ ? tail_->next_ : head_) = &op;
        tail_ = &op;
    }

    /// Moves all operations of the other list to the end of this one.
    void append(async_op_list& other) noexcept
    {
        if (!other.head_)
            return;
        other.head_->prev_ = tail_;
        (tail_ ? tail_->next_ : head_) = other.head_;
        tail_ = std::exchange(other.tail_, nullptr);
        other.head_ = nullptr;
    }

    void remove(async_op_base& op) noexcept
    {
        (op.prev_ ? op.prev_->next_ : head_) = op.next_;
        (op.next_ ? op.next_->prev_ : tail_) = op.prev_;
        op.next_ = op.prev_ = nullptr;
    }

    async_op_base* pop_front() noexcept
    {
        async_op_base* op = head_;
        if (op)
            remove(*op);
        return op;
    }

    void fail_all(error_code ec) noexcept
    {
        for (async_op_base* op = head_; op; op = op->next_)
            op->ec = ec;
    }

    void post_all()
    {
        while (async_op_base* op = pop_front())
            op->post();
    }

    void swap(async_op_list& other) noexcept
    {
        std::swap(head_, other.head_);
        std::swap(tail_, other.tail_);
    }

private:
    async_op_base* head_ = nullptr;
    async_op_base* tail_ = nullptr;
};

/// The operations that wait on one event source, guarded by that source's mutex. Operations that leave it move to an
/// async_op_list outside the mutex, where they can no longer be cancelled.
class wait_list {
public:
    bool empty() const noexcept { return ops_.empty(); }
    async_op_base* front() const noexcept { return ops_.front(); }

    void add(async_op_base& op) noexcept
    {
        BOOST_ASSERT(!op.waiting_);
        op.waiting_ = true;
        ops_.push_back(op);
    }

    void remove(async_op_base& op) noexcept
    {
        BOOST_ASSERT(op.waiting_);
        op.waiting_ = false;
        ops_.remove(op);
    }

    void move_front(async_op_list& out) noexcept
    {
        async_op_base* op = ops_.front();
        remove(*op);
        out.push_back(*op);
    }

    void move_all(async_op_list& out) noexcept
    {
        while (!ops_.empty())
            move_front(out);
    }

private:
    async_op_list ops_;
};

} // namespace coaccel::detail

#endif
