// The diagnostic names the requirement that an incomplete model of `backend` misses.
// expect: backend_has_events
// expect: b\.notify\(e, n\)
#include <coaccel/core/backend.hpp>

struct silent {
    static constexpr std::string_view name = "silent";
    static constexpr bool replaceable = true;
    struct options {};
    struct stream {};
    struct event {};

    static coaccel::result<std::unique_ptr<silent>> create(const options&);
    static bool creation_blocks(const options&);
    int enter();
    void listen(coaccel::notification) noexcept;
    coaccel::hardware_info hardware() const;
    coaccel::result<stream> make_stream(coaccel::priority);
    coaccel::error_code record(event&, stream&);
    coaccel::error_code wait(stream&, event&);
    coaccel::result<coaccel::progress> query(event&);
    coaccel::error_code synchronize(event&);
    coaccel::result<void*> allocate(stream&, std::size_t, coaccel::memory_kind);
    void release(stream&, void*, std::size_t, coaccel::memory_kind) noexcept;
    std::shared_ptr<coaccel::detail::pinned_memory> pinned();
    coaccel::error_code pin(std::span<std::byte>);
    coaccel::memory_info memory() const noexcept;
    const coaccel::op_info* describe(std::uint64_t) const noexcept;
    coaccel::error_code find_code(coaccel::bound_op&) const noexcept;
    coaccel::result<coaccel::readiness> prepare(stream&, coaccel::bound_op&);
    coaccel::error_code enqueue(stream&, coaccel::bound_op&);
    coaccel::error_code finish(coaccel::bound_op&) noexcept;
    coaccel::error_code status() noexcept;
    void abort() noexcept;
    bool quiet() noexcept;
    static coaccel::fault classify(const coaccel::error_code&) noexcept;
};

static_assert(coaccel::backend<silent>);
