#include "failing_memory.hpp"
#include "serve/member_copies.hpp"
#include "support/gate.hpp"

#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <new>

namespace test_serve_no_memory {

TEST_SUITE("serve without memory")
{
    TEST_CASE("a copy that cannot be handed over is not started, whichever allocation fails")
    {
        namespace asio = boost::asio;
        using coaccel::detail::member_copies;
        test::gate done;
        int failed = 0;
        for (;; ++failed) {
            asio::io_context io;
            member_copies copies;
            // Too large to be part of a std::function.
            const std::array<int, 32> large{};
            bool called = false;
            member_copies::job_ptr job;
            bool threw = false;
            test::allocations_left = failed;
            try {
                job = copies.start(
                    io, [large, &called] { called = large[0] == 0; },
                    [large, done]() mutable {
                        if (large[0] == 0)
                            done.arrive();
                    });
            } catch (const std::bad_alloc&) {
                threw = true;
            }
            test::allocations_left = -1;
            REQUIRE_FALSE(threw);
            if (job)
                done.wait_for(1);
            CHECK(called == (job != nullptr));
            CHECK(done.reached(1) == called);
            copies.finish();
            if (job)
                break;
        }
        // The functions, the job, and what the threads need.
        CHECK(failed >= 5);
    }
}

} // namespace test_serve_no_memory
