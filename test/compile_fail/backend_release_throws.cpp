// Giving memory back must not fail.
// expect: backend_has_memory
// expect: b\.release\(s, p, n\)|noexcept
#include <coaccel/core/backend.hpp>

struct careless {
    struct stream {};

    coaccel::result<void*> allocate(stream&, std::size_t);
    void release(stream&, void*, std::size_t);
    void trim() noexcept;
    coaccel::memory_info memory() const noexcept;
};

static_assert(coaccel::detail::backend_has_memory<careless>);
