#include "device/durable_trust.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace test_device_durable_trust {

namespace {

using namespace coaccel::detail;
using ending = durable_trust::ending;
using mapping = durable_trust::mapping;

enum class event {
    write,
    write_done,
    write_failed,
    write_lost,
    overwrite,
    overwrite_done,
    overwrite_failed,
    overwrite_lost,
    trust,
    fault,
    fault_elsewhere,
    outside,
    outside_elsewhere,
    closed,
};
constexpr int event_count = static_cast<int>(event::closed) + 1;

/// What must hold, found from everything that has happened instead of from a state.
class history {
public:
    /// Whether the event can happen now.
    bool permits(event e) const
    {
        switch (e) {
        case event::write_done:
        case event::write_failed: return writers > 0 && !dying;
        case event::write_lost: return writers > 0;
        case event::overwrite_done:
        case event::overwrite_failed: return overwriters > 0 && !dying;
        case event::overwrite_lost: return overwriters > 0;
        // Nothing starts on a context that is about to be reported as lost.
        case event::write: return !dying && !suspect;
        case event::overwrite: return !dying;
        case event::closed: return writers == 0 && overwriters == 0 && !dying;
        // Without a buffer in the context there are no ops on it.
        case event::fault_elsewhere:
        case event::outside_elsewhere: return writers == 0 && overwriters == 0 && !dying;
        default: return true;
        }
    }

    void apply(event e)
    {
        const bool any_writer = writers > 0 || overwriters > 0 || dying;
        switch (e) {
        case event::write: ++writers; break;
        case event::write_done:
        case event::write_failed: --writers; break;
        case event::write_lost:
            --writers;
            dying = true;
            break;
        case event::overwrite:
            ++overwriters;
            suspect = false;
            break;
        case event::overwrite_done: --overwriters; break;
        case event::overwrite_failed:
            --overwriters;
            suspect = true;
            break;
        case event::overwrite_lost:
            --overwriters;
            dying = true;
            break;
        case event::trust: suspect = false; break;
        case event::fault: lose(true); break;
        case event::outside: lose(any_writer); break;
        case event::fault_elsewhere:
        case event::outside_elsewhere: lose(false); break;
        case event::closed: break;
        }
    }

    int writers = 0;
    int overwriters = 0;
    /// A writer was lost, and the loss of the context follows.
    bool dying = false;
    bool suspect = false;

private:
    void lose(bool spoilt)
    {
        suspect |= spoilt;
        writers = overwriters = 0;
        dying = false;
    }
};

void apply(durable_trust& t, event e)
{
    switch (e) {
    case event::write: t.write_started(); break;
    case event::write_done: t.write_ended(ending::done); break;
    case event::write_failed: t.write_ended(ending::failed); break;
    case event::write_lost: t.write_ended(ending::lost); break;
    case event::overwrite: t.overwrite_started(); break;
    case event::overwrite_done: t.overwrite_ended(ending::done); break;
    case event::overwrite_failed: t.overwrite_ended(ending::failed); break;
    case event::overwrite_lost: t.overwrite_ended(ending::lost); break;
    case event::trust: t.trust(); break;
    case event::fault: t.context_lost(loss_cause::fault, mapping::writable); break;
    case event::fault_elsewhere: t.context_lost(loss_cause::fault, mapping::none); break;
    case event::outside: t.context_lost(loss_cause::outside, mapping::writable); break;
    case event::outside_elsewhere: t.context_lost(loss_cause::outside, mapping::none); break;
    case event::closed: t.context_closed(); break;
    }
}

/// Checks all sequences of events that begin with these.
std::size_t walk(const durable_trust& t, const history& h, std::vector<int>& path, int depth)
{
    if (t.suspect() != h.suspect) {
        std::string text;
        for (const int e : path)
            text += std::to_string(e) + " ";
        FAIL("after the events " << text);
    }
    if (depth == 0)
        return 1;
    std::size_t checked = 0;
    for (int i = 0; i < event_count; ++i) {
        const auto e = static_cast<event>(i);
        if (!h.permits(e))
            continue;
        durable_trust next = t;
        history then = h;
        apply(next, e);
        then.apply(e);
        path.push_back(i);
        checked += walk(next, then, path, depth - 1);
        path.pop_back();
    }
    return checked;
}

} // namespace

TEST_SUITE_BEGIN("durable_trust");

TEST_CASE("after a fault memory is suspect if the context could write it")
{
    for (const auto where : {mapping::none, mapping::writable}) {
        durable_trust t;
        t.context_lost(loss_cause::fault, where);
        CHECK(t.suspect() == (where == mapping::writable));
    }
}

TEST_CASE("after an end from outside memory is suspect if an unfinished op writes it")
{
    durable_trust t;
    t.write_started();
    t.write_ended(ending::done);
    t.context_lost(loss_cause::outside, mapping::writable);
    CHECK_FALSE(t.suspect());
    t.write_started();
    t.write_started();
    t.write_ended(ending::done);
    t.write_ended(ending::lost);
    CHECK_FALSE(t.suspect());
    t.context_lost(loss_cause::outside, mapping::writable);
    CHECK(t.suspect());
    // Until the user decides.
    t.context_lost(loss_cause::outside, mapping::none);
    CHECK(t.suspect());
    t.trust();
    CHECK_FALSE(t.suspect());
    t.context_lost(loss_cause::outside, mapping::writable);
    CHECK_FALSE(t.suspect());
}

TEST_CASE("memory that is being overwritten can be used, unless that fails")
{
    for (const auto how : {ending::done, ending::failed, ending::lost}) {
        durable_trust t;
        t.context_lost(loss_cause::fault, mapping::writable);
        t.overwrite_started();
        CHECK_FALSE(t.suspect());
        t.overwrite_ended(how);
        if (how == ending::lost)
            t.context_lost(loss_cause::outside, mapping::writable);
        CHECK(t.suspect() == (how != ending::done));
    }
}

TEST_CASE("every sequence of six events leads to what its history says")
{
    std::vector<int> path;
    CHECK(walk({}, {}, path, 6) > 100'000);
}

TEST_CASE("after an error of the hardware, memory that a context could write is suspect")
{
    durable_trust written, elsewhere;
    written.context_lost(loss_cause::hardware, durable_trust::mapping::writable);
    elsewhere.context_lost(loss_cause::hardware, durable_trust::mapping::none);
    CHECK(written.suspect());
    CHECK_FALSE(elsewhere.suspect());
}

TEST_SUITE_END();

} // namespace test_device_durable_trust
