#include "plan_list_fixture.hpp"
#include "support/device_fixture.hpp"
#include "support/temporary_folder.hpp"

#include <coaccel/ops/memory.hpp>
#include <coaccel/plan/plan_builder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace test_device_shortened_file {

// Plans from a file that another program shortens afterwards: the device must not read what no longer exists.
namespace {

using namespace coaccel;
using test::await;

/// Copies a constant and a state with an initial content, from a file.
class saved_plan {
public:
    saved_plan(std::size_t constant, std::size_t state)
    {
        plan_builder b("saved");
        const auto y = b.output<float>(1);
        const auto z = b.output<float>(1);
        b.add(memory::copy<float>{b.constant<float>(std::vector<float>(constant, 2)).first(1), y});
        b.add(memory::copy<float>{b.state<float>(std::vector<float>(state, 3)).first(1), z});
        REQUIRE(b.finish().value().save(path));
        from_file = plan_description::load(path).value();
    }

    /// Removes the last bytes.
    void shorten(std::uintmax_t by) const { std::filesystem::resize_file(path, std::filesystem::file_size(path) - by); }

    void check(const error_code& ec) const
    {
        CHECK(ec == errc::file_failed);
        CHECK_MESSAGE(ec.message().find("cannot read " + path) != std::string::npos, ec.message());
        CHECK_MESSAGE(ec.message().find("another program has shortened it") != std::string::npos, ec.message());
    }

private:
    test::temporary_folder folder_;

public:
    const std::string path = folder_ / "plan";
    plan_description from_file;
};

struct fixture : test::device_fixture {
    fixture() : device_fixture(test::pool_options()) {}

    std::uint64_t live() { return await(io, gpu.async_stats()).value().live_buffers; }
};

} // namespace

TEST_SUITE_BEGIN("shortened plan file");

TEST_CASE_FIXTURE(fixture, "the load ends with an error that names the file, and leaves nothing")
{
    // The initial content of the state is the last one in the file; a page of it is missing, or all contents.
    for (const std::uintmax_t missing : {4096, 48 * 1024}) {
        CAPTURE(missing);
        const saved_plan plan(8192, 4096);
        const auto before = live();
        plan.shorten(missing);
        const auto refused = await(io, gpu.async_load(plan.from_file));
        REQUIRE_FALSE(refused);
        plan.check(refused.error());
        CHECK(live() == before);
    }
    const saved_plan whole(8192, 4096);
    CHECK(await(io, gpu.async_load(whole.from_file)));
}

TEST_CASE_FIXTURE(fixture, "a plan that cannot be loaded again answers its runs with this error")
{
    const saved_plan saved(8192, 4096);
    const auto loaded = await(io, gpu.async_load(saved.from_file));
    REQUIRE(loaded);
    float y = 0, z = 0;
    saved.shorten(4096);
    // What is on the device does not need the file.
    REQUIRE(await(io, loaded.value().async_run(to(std::span(&y, 1)), to(std::span(&z, 1)))));
    CHECK(y == 2);
    CHECK(z == 3);
    REQUIRE(await(io, gpu.async_replace()));
    const auto ran = await(io, loaded.value().async_run(to(std::span(&y, 1)), to(std::span(&z, 1))));
    REQUIRE_FALSE(ran);
    saved.check(ran.error());
    // The device serves other plans.
    const saved_plan other(8192, 4096);
    CHECK(await(io, gpu.async_load(other.from_file)));
}

TEST_CASE("a plan that is saved again names the file that was shortened, and leaves no new file")
{
    const saved_plan saved(8192, 4096);
    saved.shorten(4096);
    const std::string copy = saved.path + "-copy";
    const auto done = saved.from_file.save(copy);
    REQUIRE_FALSE(done);
    saved.check(done.error());
    CHECK_FALSE(std::filesystem::exists(copy));
}

TEST_CASE("the file is checked before each piece of a constant")
{
    using test::plan_lists::fake_context;
    constexpr std::size_t pieces_and_some = detail::plan_loading::most_bytes / sizeof(float) + 2048;
    const saved_plan saved(pieces_and_some, 1);
    detail::plan_list plans;
    fake_context context(plans);
    plans.add(std::make_shared<detail::loaded_plan>(saved.from_file, plan_options{}));
    while (context.names.empty() || context.names.back() != "memory.write<u8>")
        REQUIRE(context.step());
    saved.shorten(2 * 4096);
    detail::load_part* const part = plans.next();
    REQUIRE(part);
    CHECK(part->ops.front().info->name == "memory.write<u8>");
    saved.check(part->refusal);
    const auto news = plans.finished(*part, part->refusal);
    // The constants, the state and the memory of the instance.
    CHECK(news.unused.size() == context.live.size());
}

TEST_SUITE_END();

} // namespace test_device_shortened_file
