#ifndef COACCEL_CONTEXT_BUFFERS_ADOPTED_BUFFERS_HPP
#define COACCEL_CONTEXT_BUFFERS_ADOPTED_BUFFERS_HPP

#include "context/buffers/buffer_table.hpp"

#include <memory>
#include <vector>

namespace coaccel::detail {

/// Buffers over memory of other code that were released. Their owners are kept until no op uses the memory. Only
/// `expect` allocates, so that nothing can fail afterwards.
class COACCEL_DECL adopted_buffers {
public:
    /// One more buffer will be released.
    void expect();

    /// Precondition: the buffer was expected, and has an owner, which may be null.
    void add(retired_buffer b) noexcept { released_.push_back(std::move(b)); }

    /// Removes a buffer that no op uses any more, and puts its owner into `out`. False: there is none.
    bool next_unused(const lane_clock& order, std::shared_ptr<void>& out) noexcept;

    bool empty() const noexcept { return released_.empty(); }

    /// Takes the owners of the released buffers and of those in the table. Null: no buffer was ever expected.
    std::unique_ptr<owner_list> take_owners(buffer_table& table) noexcept;

private:
    std::vector<retired_buffer> released_;
    /// Buffers that were expected and whose owners have not left.
    std::size_t expected_ = 0;
    /// Empty, with room for all owners.
    std::unique_ptr<owner_list> room_;
};

} // namespace coaccel::detail

#endif
