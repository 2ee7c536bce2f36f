// The function that releases memory must be noexcept.
// expect: backend_has_memory
// expect: b\.release\(s, p, n, k\)|noexcept
#include <coaccel/core/backend.hpp>

struct careless {
    struct stream {};

    coaccel::result<void*> allocate(stream&, std::size_t, coaccel::memory_kind);
    void release(stream&, void*, std::size_t, coaccel::memory_kind);
    std::shared_ptr<coaccel::detail::pinned_memory> pinned();
    coaccel::memory_info memory() const noexcept;
};

static_assert(coaccel::detail::backend_has_memory<careless>);
