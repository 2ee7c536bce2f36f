#ifndef COACCEL_CONTEXT_BUFFERS_BUFFER_ALLOCATOR_HPP
#define COACCEL_CONTEXT_BUFFERS_BUFFER_ALLOCATOR_HPP

#include "context/buffers/adopted_buffers.hpp"
#include "context/buffers/buffer_table.hpp"
#include "context/buffers/operands.hpp"
#include "context/faults/op_problem.hpp"
#include "context/lanes/lane_set.hpp"

#include <coaccel/core/detail/adopt_op.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace coaccel::detail {

/// The buffers of a context. Their memory is freed when no lane uses it any more, or in stream order if only one lane
/// still uses it.
template <backend B>
class buffer_allocator {
public:
    buffer_allocator(B& b, lane_set<B>& lanes, context_events& events, context_identity identity) noexcept
        : backend_(b), lanes_(lanes), events_(events), table_(identity)
    {}

    void adopt(context_identity identity) noexcept { table_.adopt(identity); }
    std::size_t live() const noexcept { return table_.live(); }

    /// The buffer of a ref, or the reason why the ref cannot be used as `type`.
    result<buffer_table::slot*> find(const any_ref& ref, dtype type) noexcept { return table_.find(ref, type); }

    /// The error for operand i of an op, which `find` rejected.
    error_code refusal(const bound_op& o, std::size_t i, const error_code& why) const noexcept
    {
        return operand_error(o, i, errc_of(why), table_.identity(), table_.facts(operand_of(o, i)));
    }

    access_log& log(std::uint32_t slot) noexcept { return table_.log(slot); }

    /// Pending: the memory is not available yet; the caller asks again. errc::out_of_memory is returned only if no
    /// released memory is still in use, or if the request exceeds the total memory.
    result<progress> allocate(const allocate_op& op, allocation& out)
    {
        BOOST_OUTCOME_TRYV(prepare());
        const auto memory = backend_.allocate(lane_->work, *op.bytes(), op.kind);
        if (!memory)
            return wait_or_fail(memory.error(), op);
        if (!memory.value())
            return progress::pending;
        const any_ref made = table_.insert(memory.value(), op.count, op.type, op.kind);
        out = {made, op.kind == memory_kind::managed ? memory.value() : nullptr};
        ++lane_->last_ticket;
        ++lane_->last_on_stream;
        table_.log(made.slot).note(access::write, {lane_->id, lane_->last_ticket});
        return progress::passed;
    }

    /// Before the first allocation.
    result<void> prepare()
    {
        if (!lane_) {
            BOOST_OUTCOME_TRY(lane_, lanes_.for_allocations());
        }
        return success();
    }

    /// The whole exportable buffer that the ref names, if no op uses it.
    result<buffer_table::slot*> find_exportable(const any_ref& ref)
    {
        BOOST_OUTCOME_TRY(auto* const found, table_.find(ref, dtype::u8));
        if (found->kind != memory_kind::exportable || ref.offset != 0 || ref.size != found->size)
            return make_error_with_message(errc::invalid_argument, "memory.export: not a whole exportable buffer");
        if (!uses_of(found->log).empty())
            return make_error_with_message(errc::invalid_argument, "memory.export: ops still use the buffer");
        return found;
    }

    /// A buffer of memory that was imported. No op has to wait for it. Preconditions: prepare().
    any_ref add_imported(void* memory, const imported_buffer& what)
    {
        return table_.insert(memory, what.count, what.type, memory_kind::exportable);
    }

    /// A buffer over memory of other code. No op has to wait for it.
    any_ref adopt(const adopt_op& op)
    {
        adopted_.expect();
        return table_.adopt(op.pointer, op.count, op.type, op.owner ? *op.owner : nullptr);
    }

    /// Unknown and stale refs are ignored.
    void release(const any_ref& buffer) noexcept
    {
        auto retired = table_.retire(buffer);
        if (retired && retired->owner) {
            adopted_.add(std::move(*retired));
            let_go_unused();
        } else if (retired && !give_back(*retired)) {
            retiring_.push_back(std::move(*retired));
        }
    }

    /// Like `release`, for a dead backend: its own memory disappears with it, but work that has not ended may still
    /// use the memory of others.
    void forget(const any_ref& buffer) noexcept
    {
        if (auto retired = table_.retire(buffer); retired && retired->owner)
            adopted_.add(std::move(*retired));
    }

    /// Frees buffers that were still in use when they were released and are not any more.
    void give_back_unused() noexcept
    {
        std::erase_if(retiring_, [this](const retired_buffer& b) { return give_back(b); });
        if (!adopted_.empty())
            let_go_unused();
    }

    /// The owners of all adopted memory that is still kept; null if there is none.
    std::unique_ptr<owner_list> take_owners() noexcept { return adopted_.take_owners(table_); }

    /// Whether an allocation waits for released memory that is still in use. Later allocations wait behind it, because
    /// they would take the memory it waits for.
    bool memory_is_short() const noexcept { return memory_is_short_; }

    /// The allocation that waited for released memory was given up.
    void end_shortage() noexcept { memory_is_short_ = false; }

    /// Whether waiting allocations should be retried. If so, memory no longer counts as short.
    bool try_again() noexcept
    {
        const bool awaited_is_back = !awaited_.empty() && all_back(awaited_);
        if (memory_is_short_ && !came_back_ && !awaited_is_back && released_in_use())
            return false;
        memory_is_short_ = false;
        return true;
    }

private:
    /// Whether the backend frees memory in the order of a stream that still uses it.
    static constexpr bool in_stream_order = requires { requires B::releases_in_stream_order; };

    result<progress> wait_or_fail(error_code ec, const allocate_op& op)
    {
        if (errc_of(ec) != errc::out_of_memory || !released_in_use() || *op.bytes() > most_memory(op.kind))
            return ec;
        memory_is_short_ = true;
        came_back_ = false;
        // Memory released in stream order from now on does not prolong the wait.
        awaited_ = returning_;
        return progress::pending;
    }

    /// The most memory a single buffer could get, as far as known.
    std::uint64_t most_memory(memory_kind kind) const noexcept
    {
        auto most = std::numeric_limits<std::uint64_t>::max();
        if constexpr (requires { backend_.memory_limit(); })
            most = backend_.memory_limit();
        // Managed memory may exceed the device's memory.
        const auto total = kind != memory_kind::managed ? backend_.memory().total : 0;
        return total != 0 ? std::min<std::uint64_t>(most, total) : most;
    }

    bool released_in_use() const noexcept { return !retiring_.empty() || !all_back(returning_); }

    /// Whether the memory released after these points is free. If the lane has later in-flight work, the free has
    /// happened once that work has completed.
    bool all_back(const frontier& points) const noexcept
    {
        return std::ranges::all_of(points, [this](const point& p) {
            const auto& order = lanes_.order();
            return order.passed(p) && (lanes_[p.lane].in_flight.empty() || order.passed({p.lane, p.ticket + 1}));
        });
    }

    void let_go_unused() noexcept
    {
        for (std::shared_ptr<void> owner; adopted_.next_unused(lanes_.order(), owner);)
            if (owner)
                events_.unused(std::move(owner));
    }

    /// The uses that have not ended, without the allocation: the others have already waited for it.
    frontier uses_of(const access_log& log) const
    {
        frontier uses;
        log.collect_uses(lanes_.order(), uses);
        if (const auto made = std::ranges::find(uses, lane_->id, &point::lane); made != uses.end())
            uses.erase(made);
        return uses;
    }

    /// False: the memory cannot be freed yet.
    bool give_back(const retired_buffer& b) noexcept
    {
        const frontier uses = uses_of(b.log);
        if (uses.empty()) {
            backend_.release(lane_->work, b.memory, b.bytes, b.kind);
            came_back_ = true;
            return true;
        }
        const point last = uses.front();
        if (!in_stream_order || uses.size() > 1 || b.kind != memory_kind::device || !lanes_.is_on_stream(last))
            return false;
        auto& user = lanes_[last.lane];
        if (!user.has_room_for_free() || user.settle(backend_))
            return false;
        backend_.release(user.work, b.memory, b.bytes, b.kind);
        user.note_free();
        advance(returning_, last);
        return true;
    }

    B& backend_;
    lane_set<B>& lanes_;
    context_events& events_;
    lane<B>* lane_ = nullptr;
    buffer_table table_;
    adopted_buffers adopted_;
    /// Released, but still in use, and not freed in stream order.
    std::vector<retired_buffer> retiring_;
    /// The latest point on each lane after which memory was freed in stream order.
    frontier returning_;
    /// The value of returning_ when an allocation began to wait.
    frontier awaited_;
    bool memory_is_short_ = false;
    bool came_back_ = false;
};

} // namespace coaccel::detail

#endif
