#include "cuda/prim/prim_workspace.hpp"

#include "cuda/backend.hpp"

#include <utility>

namespace coaccel::cuda {

result<readiness> prim_workspace::prepare(std::size_t bytes)
{
    if (current_.bytes >= bytes)
        return readiness::ready;
    if (current_.captured) {
        // Without memory for the list, the block stays the current one.
        older_.push_back(current_);
        current_ = {};
    } else if (auto ec = release(current_)) {
        return ec;
    }
    BOOST_OUTCOME_TRY(current_.memory, backend_.buffers().allocate(stream_, bytes, memory_kind::device));
    if (!current_.memory)
        return readiness::pending;
    current_.bytes = bytes;
    return readiness::ready;
}

error_code prim_workspace::launched() noexcept
{
    if (current_.captured)
        return {};
    auto status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (auto ec = backend_.check(backend_.api().cuStreamIsCapturing(stream_, &status)))
        return ec;
    if (status != CU_STREAM_CAPTURE_STATUS_NONE)
        current_.captured = true;
    else if (current_.bytes > most_kept)
        return release(current_);
    return {};
}

error_code prim_workspace::release(block& b) noexcept
{
    const block left = std::exchange(b, {});
    if (!left.memory || backend_.dead())
        return {};
    return backend_.check(backend_.buffers().release(stream_, left.memory, left.bytes, memory_kind::device));
}

void prim_workspace::destroy() noexcept
{
    (void)release(current_);
    for (block& b : older_)
        (void)release(b);
    older_.clear();
}

} // namespace coaccel::cuda
