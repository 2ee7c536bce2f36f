#include "context/lanes/lane.hpp"

#include "host/backend.hpp"
#include "support/gate.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>

namespace test_context_lane {

using namespace coaccel;
using coaccel::detail::clock;

namespace {

/// Its `synchronize` returns when the test wants, however long ago the context was aborted.
struct slow_backend : host::backend {
    using host::backend::backend;

    static result<std::unique_ptr<slow_backend>> create(const options& o) { return std::make_unique<slow_backend>(o); }

    error_code synchronize(event& e)
    {
        inside.pass();
        seen = e.where;
        outside.open();
        return {};
    }

    test::gate inside;
    test::gate outside;
    host::stream_state* seen = nullptr;
};

struct no_events final : detail::context_events {
    void finished(detail::request&, error_code) noexcept override {}
    void lost(error_code, detail::loss_cause) noexcept override {}
    bool has_more() noexcept override { return false; }
    void wake() noexcept override {}
};

} // namespace

TEST_SUITE_BEGIN("lane");

TEST_CASE("a thread that still waits when its lane is destroyed keeps the event")
{
    no_events events;
    host_options o;
    o.mode = host_mode::inline_;
    auto made = std::make_unique<slow_backend>(o);
    slow_backend& b = *made;
    std::optional<detail::lane<slow_backend>> l;
    l.emplace(b.make_stream(priority::normal).value(), detail::lane_id{}, events);
    REQUIRE_FALSE(l->record_end(b, nullptr, clock::now()));
    REQUIRE_FALSE(l->arm(b, completion::sync));
    b.inside.wait_for(1);
    REQUIRE_FALSE(l->stop(clock::now() + std::chrono::milliseconds(1)));
    // As the engine does: the thread may use the backend for as long as it likes.
    detail::leak_registry<slow_backend>::add(std::move(made));
    l.reset();
    b.inside.open();
    b.outside.pass();
    CHECK(b.seen != nullptr);
}

TEST_SUITE_END();

} // namespace test_context_lane
