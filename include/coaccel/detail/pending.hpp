#ifndef COACCEL_DETAIL_PENDING_HPP
#define COACCEL_DETAIL_PENDING_HPP

#include <coaccel/core/error.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/assert.hpp>

#include <memory>
#include <utility>

namespace coaccel::detail {

/// An operation that waits for an event, detached from the type of its handler.
class pending {
public:
    pending() = default;
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;

    /// Schedules the completion and consumes the operation. Never calls the handler inside this call.
    virtual void post() = 0;

    /// Whether any thread of this execution context may call the handler, by `resume` instead of `post`. Never from
    /// within an initiating function.
    virtual bool resumes_on(const asio::execution_context*) const noexcept { return false; }

    /// Calls the handler, here and now, and consumes the operation. One that has no handler is never asked.
    virtual void resume() {}

    /// Consumes the operation without calling the handler.
    virtual void destroy() noexcept = 0;

    /// Gives the handler away, as an operation that completes with this error; this one stays with its owner until it
    /// ends, and is then destroyed. Null: it cannot, or there is no memory for it.
    virtual pending* detach(error_code) noexcept { return nullptr; }

    /// In a wait_list, where it can be cancelled. Guarded by the mutex of that list.
    bool waiting() const noexcept { return waiting_; }

    error_code ec;

protected:
    ~pending() = default;

private:
    friend class pending_list;
    friend class wait_list;

    pending* next_ = nullptr;
    pending* prev_ = nullptr;
    bool waiting_ = false;
};

/// Resumes an operation when it is called; when it goes uncalled, so does the operation. One type for all of them, so
/// that what executors make of it is compiled once.
class resumption {
public:
    explicit resumption(pending& op) noexcept : op_(&op) {}

    void operator()() { op_.release()->resume(); }

private:
    struct discard {
        void operator()(pending* op) const noexcept { op->destroy(); }
    };

    std::unique_ptr<pending, discard> op_;
};

/// Operations in order of arrival. Owns them.
class pending_list {
public:
    pending_list() = default;
    pending_list(const pending_list&) = delete;
    pending_list& operator=(const pending_list&) = delete;

    ~pending_list()
    {
        while (pending* op = pop_front())
            op->destroy();
    }

    bool empty() const noexcept { return head_ == nullptr; }
    bool has_one() const noexcept { return head_ && head_ == tail_; }
    pending* front() const noexcept { return head_; }
    /// The one behind `op`, which is in a list.
    static pending* after(const pending& op) noexcept { return op.next_; }

    void push_back(pending& op) noexcept
    {
        op.next_ = nullptr;
        op.prev_ = tail_;
        (tail_ ? tail_->next_ : head_) = &op;
        tail_ = &op;
    }

    /// Moves all operations of the other list to the end of this one.
    void append(pending_list& other) noexcept
    {
        if (!other.head_)
            return;
        other.head_->prev_ = tail_;
        (tail_ ? tail_->next_ : head_) = other.head_;
        tail_ = std::exchange(other.tail_, nullptr);
        other.head_ = nullptr;
    }

    void remove(pending& op) noexcept
    {
        (op.prev_ ? op.prev_->next_ : head_) = op.next_;
        (op.next_ ? op.next_->prev_ : tail_) = op.prev_;
        op.next_ = op.prev_ = nullptr;
    }

    pending* pop_front() noexcept
    {
        pending* op = head_;
        if (op)
            remove(*op);
        return op;
    }

    void fail_all(error_code ec) noexcept
    {
        for (pending* op = head_; op; op = op->next_)
            op->ec = ec;
    }

    void post_all()
    {
        while (pending* op = pop_front())
            op->post();
    }

    void swap(pending_list& other) noexcept
    {
        std::swap(head_, other.head_);
        std::swap(tail_, other.tail_);
    }

private:
    pending* head_ = nullptr;
    pending* tail_ = nullptr;
};

/// The operations that wait on one event source, under that source's mutex. What leaves goes to a pending_list outside
/// the mutex, and there no canceller finds it.
class wait_list {
public:
    bool empty() const noexcept { return ops_.empty(); }
    pending* front() const noexcept { return ops_.front(); }

    void add(pending& op) noexcept
    {
        BOOST_ASSERT(!op.waiting_);
        op.waiting_ = true;
        ops_.push_back(op);
    }

    void remove(pending& op) noexcept
    {
        BOOST_ASSERT(op.waiting_);
        op.waiting_ = false;
        ops_.remove(op);
    }

    void move_front(pending_list& out) noexcept
    {
        pending* op = ops_.front();
        remove(*op);
        out.push_back(*op);
    }

    void move_all(pending_list& out) noexcept
    {
        while (!ops_.empty())
            move_front(out);
    }

private:
    pending_list ops_;
};

} // namespace coaccel::detail

#endif
