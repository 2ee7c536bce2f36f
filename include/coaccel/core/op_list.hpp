#ifndef COACCEL_CORE_OP_LIST_HPP
#define COACCEL_CORE_OP_LIST_HPP

#include <coaccel/core/detail/op_record.hpp>

#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

namespace coaccel {

class op_list;
class op_replies;

namespace detail {

/// Whether the device accesses no memory of the caller once the op has been copied.
template <class Op>
inline constexpr bool stands_alone = !requires { requires Op::uses_callers_memory; };

struct listed_op {
    const op_info* info;
    op_record record;
};

/// The parts of a list that its request uses.
struct op_list_access {
    static std::vector<listed_op>& ops(op_list& l) noexcept;
    static op_replies replies(std::vector<listed_op>&& ops) noexcept;
};

} // namespace detail

/// Ops that are chosen at run time. They run one after another on one lane and complete once, like the ops of a `seq`.
///
/// Exceptions: copying throws std::bad_alloc.
class op_list {
public:
    op_list() = default;

    /// Adds an op at the end.
    /// Exceptions: std::bad_alloc; the list then stays as it was.
    template <op Op>
    op_list& add(const Op& o)
    {
        static_assert(detail::stands_alone<Op>, "the caller's memory is not kept for the ops of a list");
        static_assert(alignof(Op) <= alignof(detail::op_unit));
        detail::listed_op made{&info_of<Op>(), {}};
        made.record.assign(*made.info, &o);
        if constexpr (requires { o.keep(); })
            made.record.kept = o.keep();
        ops_.push_back(std::move(made));
        return *this;
    }

    /// Adds all ops of another list at the end.
    /// Exceptions: std::bad_alloc; the list then stays as it was.
    op_list& add(const op_list& other)
    {
        auto more = other.ops_;
        ops_.reserve(ops_.size() + more.size());
        for (detail::listed_op& o : more)
            ops_.push_back(std::move(o));
        return *this;
    }

    std::size_t size() const noexcept { return ops_.size(); } ///< The number of ops.
    bool empty() const noexcept { return ops_.empty(); }      ///< Whether there are none.

    /// The description of an op. Preconditions: i < size().
    const op_info& info(std::size_t i) const noexcept { return *ops_[i].info; }

private:
    friend struct detail::op_list_access;

    std::vector<detail::listed_op> ops_;
};

/// The replies of an op_list.
///
/// Exceptions: copying throws std::bad_alloc.
class op_replies {
public:
    op_replies() = default;

    /// The reply of op i, which is an Op.
    /// Exceptions: std::out_of_range if the list has no op i or it is not an Op; std::bad_alloc.
    template <op Op>
        requires(!std::is_void_v<typename Op::reply>)
    typename Op::reply get(std::size_t i) const
    {
        if (i >= ops_.size() || ops_[i].info->id != info_of<Op>().id)
            throw std::out_of_range("op_replies: op " + std::to_string(i) + " is not a " + info_of<Op>().name);
        typename Op::reply made;
        std::memcpy(&made, ops_[i].record.reply.data(), sizeof(made));
        return made;
    }

private:
    friend struct detail::op_list_access;

    std::vector<detail::listed_op> ops_;
};

namespace detail {

inline std::vector<listed_op>& op_list_access::ops(op_list& l) noexcept
{
    return l.ops_;
}

inline op_replies op_list_access::replies(std::vector<listed_op>&& ops) noexcept
{
    op_replies made;
    made.ops_ = std::move(ops);
    return made;
}

} // namespace detail
} // namespace coaccel

#endif
