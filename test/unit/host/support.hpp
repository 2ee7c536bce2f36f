#ifndef COACCEL_TEST_UNIT_HOST_SUPPORT_HPP
#define COACCEL_TEST_UNIT_HOST_SUPPORT_HPP

#include "host/backend.hpp"
#include "support/gate.hpp"
#include "support/told.hpp"

#include <coaccel/core/detail/transfer_ops.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace test {

inline coaccel::error_code error_of(const coaccel::result<coaccel::progress>& r)
{
    return r ? coaccel::error_code() : r.error();
}

/// A function as a bound op, ready to be enqueued. Must not move until it has run.
class task {
public:
    explicit task(std::function<void()> f) : function_(std::move(f)) {}
    task(const task&) = delete;
    task& operator=(const task&) = delete;

    coaccel::bound_op& op() { return bound_; }

private:
    static const coaccel::op_info& description()
    {
        static const coaccel::op_info info = [] {
            coaccel::op_info made;
            made.name = "test.task";
            made.id = coaccel::detail::user_op_id;
            made.size = sizeof(coaccel::detail::user_op);
            return made;
        }();
        return info;
    }

    static void call(void* self, const coaccel::bound_op&, coaccel::native_stream stream) noexcept
    {
        CHECK(stream.backend == "host");
        static_cast<task*>(self)->function_();
    }

    std::function<void()> function_;
    coaccel::detail::user_op data_{this, &call};
    coaccel::bound_op bound_{.info = &description(), .op = &data_};
};

inline coaccel::host_options host_with(coaccel::host_mode mode, int threads = 2)
{
    coaccel::host_options o;
    o.mode = mode;
    o.threads = threads;
    return o;
}

inline coaccel::host_options host_with(coaccel::host_mode mode, coaccel::fault_injector& injector)
{
    auto o = host_with(mode);
    o.injector = &injector;
    return o;
}

inline coaccel::host_options host_with(coaccel::host_mode mode, const coaccel::host_faults& plan)
{
    auto o = host_with(mode);
    o.faults = plan;
    return o;
}

/// An event after all work on the stream.
inline coaccel::host::backend::event after(coaccel::host::backend& b, coaccel::host::backend::stream& s)
{
    coaccel::host::backend::event e;
    CHECK(b.record(e, s) == coaccel::error_code());
    return e;
}

/// Tasks that record the order in which they run.
struct journal {
    std::unique_ptr<task> make(int mark)
    {
        return std::make_unique<task>([this, mark] {
            const std::scoped_lock lock(mutex);
            order.push_back(mark);
        });
    }

    std::mutex mutex;
    std::vector<int> order;
};

inline constexpr coaccel::host_mode both_modes[] = {coaccel::host_mode::inline_, coaccel::host_mode::pool};

/// Waits until the backend is dead and no op runs any more.
inline void wait_for_death(coaccel::host::backend& b)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!b.status() && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    CHECK(b.status() == coaccel::errc::context_lost);
}

} // namespace test

#endif
