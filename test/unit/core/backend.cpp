#include "host/backend.hpp"

#include <coaccel/core/backend.hpp>

#include <doctest/doctest.h>

#include <memory>

namespace test_core_backend {

namespace {

using namespace coaccel;

/// A minimal backend.
struct least {
    static constexpr std::string_view name = "least";
    static constexpr bool replaceable = true;
    struct options {};
    struct stream {};
    struct event {};

    static result<std::unique_ptr<least>> create(const options&) { return std::make_unique<least>(); }
    static bool creation_blocks(const options&) { return false; }
    int enter() { return 0; }
    void listen(notification) noexcept {}
    hardware_info hardware() const { return {}; }
    result<stream> make_stream(priority) { return stream(); }
    error_code record(event&, stream&) { return {}; }
    error_code wait(stream&, event&) { return {}; }
    result<progress> query(event&) { return progress::passed; }
    error_code synchronize(event&) { return {}; }
    error_code notify(event&, notification) { return {}; }
    result<void*> allocate(stream&, std::size_t, memory_kind) { return nullptr; }
    void release(stream&, void*, std::size_t, memory_kind) noexcept {}
    std::shared_ptr<detail::pinned_memory> pinned() { return nullptr; }
    error_code pin(std::span<std::byte>) { return {}; }
    memory_info memory() const noexcept { return {}; }
    const op_info* describe(std::uint64_t) const noexcept { return nullptr; }
    error_code find_code(bound_op&) const noexcept { return {}; }
    result<readiness> prepare(stream&, bound_op&) { return readiness::ready; }
    error_code enqueue(stream&, bound_op&) { return {}; }
    error_code finish(bound_op&) noexcept { return {}; }
    error_code status() noexcept { return {}; }
    void abort() noexcept {}
    bool quiet() noexcept { return true; }
    static fault classify(const error_code&) noexcept { return fault::library; }
};

static_assert(backend<least>);
static_assert(backend<host::backend>);
static_assert(detail::backend_has_identity<host::backend> && detail::backend_has_streams<host::backend> &&
              detail::backend_has_events<host::backend> && detail::backend_has_memory<host::backend> &&
              detail::backend_has_ops<host::backend> && detail::backend_has_faults<host::backend>);

// Each violates exactly one requirement of the concept.
struct creates_another : least {};
static_assert(!detail::backend_has_identity<creates_another> && detail::backend_has_streams<creates_another> &&
              detail::backend_has_faults<creates_another> && !backend<creates_another>);

struct has_no_streams : least {
    result<stream> make_stream(priority) = delete;
};
static_assert(!detail::backend_has_streams<has_no_streams> && detail::backend_has_events<has_no_streams>);

struct events_cannot_move : least {
    struct event {
        event() = default;
        event(const event&) = delete;
    };
};
static_assert(!detail::backend_has_events<events_cannot_move> && detail::backend_has_memory<events_cannot_move>);

struct query_says_nothing : least {
    void query(event&) {}
};
static_assert(!detail::backend_has_events<query_says_nothing> && detail::backend_has_memory<query_says_nothing>);

struct release_throws : least {
    void release(stream&, void*, std::size_t, memory_kind) {}
};
static_assert(!detail::backend_has_memory<release_throws> && detail::backend_has_ops<release_throws>);

struct memory_changes_it : least {
    memory_info memory() noexcept { return {}; }
};
static_assert(!detail::backend_has_memory<memory_changes_it>);

struct enqueue_says_nothing : least {
    void enqueue(stream&, bound_op&) {}
};
static_assert(!detail::backend_has_ops<enqueue_says_nothing> && detail::backend_has_memory<enqueue_says_nothing>);

struct finish_throws : least {
    error_code finish(bound_op&) { return {}; }
};
static_assert(!detail::backend_has_ops<finish_throws>);

struct cannot_abort : least {
    void abort() noexcept = delete;
};
static_assert(!detail::backend_has_faults<cannot_abort> && detail::backend_has_ops<cannot_abort>);

struct classifies_as_text : least {
    static std::string_view classify(const error_code&) noexcept { return ""; }
};
static_assert(!detail::backend_has_faults<classifies_as_text>);

static_assert(!backend<int> && !backend<void>);

} // namespace

TEST_SUITE_BEGIN("backend");

TEST_CASE("the host backend has its name, and reports whether its creation blocks")
{
    CHECK(host::backend::name == "host");
    host_options options;
    options.mode = host_mode::pool;
    CHECK(host::backend::creation_blocks(options));
    options.mode = host_mode::inline_;
    CHECK_FALSE(host::backend::creation_blocks(options));
}

TEST_SUITE_END();

} // namespace test_core_backend
