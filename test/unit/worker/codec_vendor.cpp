#include "cuda/loader/vendor_category.hpp"
#include "worker/protocol/codec.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace test_worker_codec_vendor {

using namespace coaccel;
using namespace coaccel::worker;

TEST_SUITE_BEGIN("codec");

TEST_CASE("an error of a vendor's library keeps its category")
{
    for (const char* name : {"coaccel.cuda", "coaccel.cublas", "coaccel.nvrtc", "coaccel.curand"}) {
        CAPTURE(name);
        const auto* category = cuda::find_category(name);
        REQUIRE(category);
        for (const int value : {1, 2, 700, 719, -5, std::numeric_limits<int>::max()}) {
            const error_code ec(value, *category);
            encoder out;
            out.put_error(ec);
            decoder in(out.record());
            error_code got;
            REQUIRE(in.get_error(got));
            CHECK(in.at_end());
            CHECK(&got.category() == category);
            CHECK(got.value() == value);
            CHECK(is_context_lost(got) == is_context_lost(ec));
            for (std::size_t n = 0; n < out.record().size(); ++n) {
                const std::vector<std::byte> part(out.record().begin(),
                                                  out.record().begin() + static_cast<std::ptrdiff_t>(n));
                decoder cut(part);
                CHECK_FALSE(cut.get_error(got));
            }
        }
    }
    CHECK(cuda::find_category("coaccel.other") == nullptr);
}

TEST_SUITE_END();

} // namespace test_worker_codec_vendor
